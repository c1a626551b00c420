"""A share session whose topic is forbidden meanwhile: told at the next fetch, and nothing of it is acquired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from logkernel import errors as e
from logkernel.record.encode import encode_batch
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.requests.share_delivery import FetchPartition, FetchTopic, ShareFetchRequest
from logkernel.vocabulary import AclOperation, Record, ResourceType

REFUSED = e.TopicAuthorizationFailed.code


def produce(world: Any, topic: str) -> None:
    batch = bytes(encode_batch([Record(None, b"x")]))
    world.ask("root", ProduceRequest(None, -1, 1_000, [TopicProduceData(topic, [PartitionProduceData(0, batch)])]))


def fetched(world: Any, user: str, epoch: int, ids: dict[UUID, str], *, names: bool = False) -> dict[str, Any]:
    """Topic → error code, or its acquired records as (first, last, deliveries)."""
    topics = [FetchTopic(topic_id, [FetchPartition(0)]) for topic_id in ids] if names else []
    answer = world.ask(user, ShareFetchRequest("app", user, epoch, 0, 1, 1 << 20, 100, 100, topics=topics))
    assert answer.error_code == 0, answer
    return {
        ids[topic.topic_id]: row.error_code
        or [(one.first_offset, one.last_offset, one.delivery_count) for one in row.acquired_records]
        for topic in answer.responses
        for row in topic.partitions
    }


def test_it_is_told_at_once_and_its_records_stay_for_others(start: Callable[..., Any]) -> None:
    world = start("share.coordinator.state.topic.num.partitions=1")
    for name in ("a", "b"):
        world.topic(name)
    ids = {world.broker.cluster.topic_id(name): name for name in ("a", "b")}
    for user in ("ann", "bob"):
        world.allow(user, AclOperation.READ, ResourceType.GROUP, "app")
        for name in ("a", "b"):
            world.allow(user, AclOperation.READ, ResourceType.TOPIC, name)
    assert fetched(world, "ann", 0, ids, names=True) == {}
    for name in ("a", "b"):
        produce(world, name)
    world.forbid("ann")
    world.allow("ann", AclOperation.READ, ResourceType.GROUP, "app")
    world.allow("ann", AclOperation.READ, ResourceType.TOPIC, "a")
    assert fetched(world, "ann", 1, ids) == {"a": [(0, 0, 1)], "b": REFUSED}
    assert fetched(world, "ann", 2, ids) == {"b": REFUSED}
    assert fetched(world, "bob", 0, ids, names=True) == {"b": [(0, 0, 1)]}
