"""Which shards are loaded although nobody asked for them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.broker.service_host.shard_set import CREATE_AGAIN_MS, ShardSet
from logkernel.contracts import ServiceTopic
from logkernel.errors import CoordinatorNotAvailable

TOPIC = ServiceTopic("__state", "state.partitions", {})


class Member:
    """What a broker of a cluster lends, that leads nothing."""

    def __init__(self) -> None:
        self.count: int | None = None
        self.asked: list[str] = []
        self.later: list[Any] = []
        self.is_shared = True
        self.governance = self.cluster = self.runtime = self

    def partition_count(self, topic: str) -> int | None:
        return self.count

    def create_internal(self, topic: str) -> None:
        self.asked.append(topic)
        raise CoordinatorNotAvailable("it is being created")

    def after(self, ms: int, work: Any) -> None:
        assert ms == CREATE_AGAIN_MS
        self.later.append(work)


def shards_of(member: Any, *requests: str) -> ShardSet:
    made = ShardSet(member, TOPIC)
    declared = SimpleNamespace(name="mine", requests=requests)
    host: Any = SimpleNamespace(declared=declared, shard_count=2, replica=lambda number: None)
    made.hosts.append(host)
    return made


@pytest.mark.parametrize("count", [None, 2])
def test_what_another_broker_leads_is_not_loaded(count: int | None) -> None:
    """It was tried for ever, if the service answers no requests."""
    member = Member()
    member.count = count
    shards = shards_of(member)
    assert not shards.load_next()
    shards.topics_deleted(["orders"])


def test_the_topic_of_a_service_that_nobody_asks_is_created() -> None:
    member = Member()
    shards = shards_of(member)
    shards.create_topic()
    member.later.pop()()
    assert member.asked == ["__state"] * 2
    member.count = 2
    member.later.pop()()
    assert (member.asked, member.later) == (["__state"] * 2, [])


def test_the_topic_of_a_service_that_is_asked_waits_for_that() -> None:
    member = Member()
    shards_of(member, "FindCoordinatorRequest").create_topic()
    assert (member.asked, member.later) == ([], [])
