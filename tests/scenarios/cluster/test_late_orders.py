"""Orders of a controller that outlive their connection, and arrive after what came later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from commanded import DELETED, NAME, Commanded

from logkernel.contracts import MetadataChange, RequestContext
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic, registration_change
from logkernel.controller.orders import Orders
from logkernel.errors import FencedLeaderEpoch, InconsistentTopicId, NetworkException, UnknownTopicId
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic
from logkernel.requests.replication import (
    UpdateMetadataBroker,
    UpdateMetadataRequest,
)

EARLIER, LATER = UUID(int=1), UUID(int=2)


@pytest.fixture
def one() -> Iterator[Commanded]:
    made = Commanded()
    yield made
    made.broker.abandon()


@pytest.mark.parametrize("told", [False, True])
def test_a_late_deletion_leaves_the_log_of_a_later_topic(told: bool, one: Commanded) -> None:
    assert one.lead(EARLIER) == 0
    one.tell(EARLIER)
    one.tell(EARLIER, DELETED)
    assert (one.stop(delete=False), one.stop(delete=True)) == (0, 0)
    assert one.topic_id is None
    assert one.lead(LATER) == 0
    if told:
        one.tell(LATER)
    assert [one.stop(delete=False), one.stop(delete=True)] == [FencedLeaderEpoch.code] * 2
    assert one.topic_id == LATER
    one.tell(LATER, DELETED)
    assert one.stop(delete=True) == 0
    assert NAME not in one.broker.logs.directories.logs


@pytest.mark.parametrize("told", [False, True])
def test_a_broker_that_missed_a_deletion_gives_its_log_up_for_the_later_topic(told: bool, one: Commanded) -> None:
    assert one.lead(EARLIER) == 0
    if told:
        one.tell(EARLIER)
    assert one.lead(LATER) == InconsistentTopicId.code
    assert "t" not in one.broker.metadata.image.topics
    assert one.stop(delete=True) == 0
    assert one.lead(LATER) == 0
    assert one.stop(delete=True) == FencedLeaderEpoch.code
    assert one.topic_id == LATER
    one.tell(LATER)
    assert one.broker.metadata.image.topics["t"].id == LATER


def test_a_consumer_that_asks_by_the_later_topics_id_reads_nothing_of_the_earlier(one: Commanded) -> None:
    """Between UpdateMetadata and LeaderAndIsr of the later topic it was given the earlier one's records."""
    assert one.lead(EARLIER) == 0
    one.tell(EARLIER)
    one.tell(LATER)
    assert one.topic_id == EARLIER
    request = FetchRequest(topics=[FetchTopic(topic_id=LATER, partitions=[FetchPartition(0)])], max_wait_ms=0)
    answers: list[Any] = []
    one.broker.submit(request, RequestContext(capabilities=frozenset({"topic_ids"})), answers.append)
    (row,) = answers[0].responses[0].partitions
    assert row.error_code == UnknownTopicId.code


def test_a_late_order_to_lead_makes_no_log_of_a_topic_that_was_deleted(one: Commanded) -> None:
    assert one.lead(EARLIER) == 0
    one.tell(EARLIER)
    one.tell(EARLIER, DELETED)
    assert one.stop(delete=True) == 0
    assert one.lead(EARLIER) == UnknownTopicId.code
    assert NAME not in one.broker.logs.directories.logs
    assert one.lead(LATER) == 0
    assert one.lead(EARLIER) == UnknownTopicId.code
    assert one.stop(delete=True) == FencedLeaderEpoch.code
    assert one.topic_id == LATER


def test_a_new_controller_comes_to_rest_with_a_broker_that_missed_a_deletion(one: Commanded) -> None:
    assert one.lead(EARLIER) == 0
    one.tell(EARLIER)
    controller_epoch, broker_epoch = one.epochs
    image = ClusterImage.of([Topic("t", LATER, [Partition((1,), (1,), 1)]).change()])
    orders = Orders(1, controller_epoch, image)
    orders.fold([registration_change(BrokerRegistration(1, {"REPLICATION": ("h", 1)}))])
    orders.broker_came(1, broker_epoch)
    for _ in range(6):
        request = orders.next_request(1, 0)
        if request is not None:
            orders.on_answer(1, request, one.answer(request), 0)
    assert orders.is_idle
    assert one.topic_id == LATER
    assert one.broker.metadata.image.topics["t"].id == LATER


def test_a_late_update_overwrites_no_newer_one(one: Commanded) -> None:
    one.tell(EARLIER, leader=-1, epoch=2, partition_epoch=5)
    for epoch, partition_epoch in ((1, 9), (2, 4)):
        one.tell(EARLIER, epoch=epoch, partition_epoch=partition_epoch)
        assert one.broker.metadata.image.topics["t"].partitions[0].leader == -1
    one.tell(EARLIER, epoch=2, partition_epoch=6)
    assert one.broker.metadata.image.topics["t"].partitions[0].leader == 1


def test_a_late_list_of_live_brokers_is_not_believed(one: Commanded) -> None:
    """It has no version. It was believed until the next one: leaders refused a follower that had come meanwhile."""
    controller_epoch, broker_epoch = one.epochs
    before, after = (
        UpdateMetadataRequest(1, controller_epoch, broker_epoch, [], [UpdateMetadataBroker(node) for node in nodes])
        for nodes in ((1,), (1, 2))
    )
    one.answer(before, connection_id=7)
    one.answer(after, connection_id=8)
    one.answer(before, NetworkException.code, connection_id=7)
    assert set(one.broker.metadata.image.nodes) == {1, 2}


def test_a_late_update_brings_no_topic_back_that_was_deleted(one: Commanded) -> None:
    one.tell(EARLIER)
    one.tell(EARLIER, DELETED)
    one.tell(LATER)
    one.tell(EARLIER)
    assert one.broker.metadata.image.topics["t"].id == LATER


@pytest.mark.parametrize("scope", ["topic:t", "broker:"])
@pytest.mark.parametrize("known", [False, True])
def test_settings_reach_a_replica_whose_topic_no_metadata_has_named_yet(
    known: bool, scope: str, one: Commanded
) -> None:
    """They come from the coordination, on another way than orders, and may come between the two."""
    assert one.lead(EARLIER) == 0
    if known:
        one.tell(EARLIER)
    one.broker.governance.on_watched([MetadataChange("config", scope, {"min.insync.replicas": "2"})])
    assert one.broker.replicas.led[NAME].settings.min_insync_replicas == 2
    one.tell(EARLIER)
    assert one.broker.replicas.led[NAME].settings.min_insync_replicas == 2
