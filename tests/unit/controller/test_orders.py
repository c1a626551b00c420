"""What the controller tells brokers: in order, once, and again where no answer came."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from told_brokers import ONE, Cluster, kinds, row, topic

from logkernel.contracts import MetadataChange
from logkernel.controller.image import Partition, partition_change
from logkernel.controller.orders import RETRY_MS, Answered
from logkernel.requests.replication import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataEndpoint,
    UpdateMetadataRequest,
)


def test_a_new_broker_hears_of_the_others_first_then_of_its_replicas_then_of_all_partitions() -> None:
    cluster = Cluster(topic("t", ONE, row("12"), row("23")))
    cluster.run()
    cluster.check()
    first, second, third = cluster.seen(1)
    assert isinstance(first, UpdateMetadataRequest)
    assert ([broker.id for broker in first.live_brokers], first.topic_states) == ([1, 2, 3], [])
    assert first.live_brokers[1].endpoints[0] == UpdateMetadataEndpoint(2, "h", "P")
    assert isinstance(second, LeaderAndIsrRequest)
    assert [state.partition_index for state in second.topic_states[0].partition_states] == [0]
    assert [leader.broker_id for leader in second.live_leaders] == [1]
    assert isinstance(third, UpdateMetadataRequest)
    assert [state.partition_index for state in third.topic_states[0].partition_states] == [0, 1]
    assert {request.controller_epoch for request in (first, second, third)} == {1}
    assert cluster.orders.ready(cluster.now) == []


def test_a_change_costs_one_partition() -> None:
    cluster = Cluster(topic("t", ONE, *(row("12") for _ in range(50))))
    cluster.run()
    for number in (1, 2, 3):
        cluster.seen(number)
    cluster.orders.fold([partition_change("t", 7, row("12", "2", 2, 1, 1))])
    cluster.run()
    cluster.check()
    ordered, told = cluster.seen(1)
    assert isinstance(ordered, LeaderAndIsrRequest)
    (state,) = ordered.topic_states[0].partition_states
    assert (state.partition_index, state.leader, state.leader_epoch, state.is_new) == (7, 2, 1, False)
    assert isinstance(told, UpdateMetadataRequest)
    assert [each.partition_index for each in told.topic_states[0].partition_states] == [7]
    assert kinds(cluster.seen(3)) == ["UpdateMetadata"]


def test_in_sync_replicas_alone_are_no_order() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.seen(1)
    cluster.orders.fold([partition_change("t", 0, row("12", "1", 1, 0, 1))])
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == ["UpdateMetadata"]


def test_a_partition_that_is_made_is_new_until_that_is_confirmed() -> None:
    cluster = Cluster()
    cluster.run()
    cluster.orders.fold([topic("t", ONE, row("1"))])
    cluster.deliver(1, lost=True)
    assert cluster.deliver(1) is None
    cluster.now += RETRY_MS
    cluster.run()
    cluster.orders.fold([partition_change("t", 0, row("1", "1", 1, 1, 1))])
    cluster.run()
    orders = [request for request in cluster.seen(1) if isinstance(request, LeaderAndIsrRequest)]
    assert [order.topic_states[0].partition_states[0].is_new for order in orders] == [True, True, False]


def test_what_changes_on_its_way_is_told_again() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, LeaderAndIsrRequest)
    assert cluster.orders.next_request(1, cluster.now) is None
    cluster.orders.fold([partition_change("t", 0, row("1", "1", 1, 1, 1))])
    cluster.orders.on_answer(1, request, cluster.followers[1].obey(request), cluster.now)
    cluster.run()
    cluster.check()


def test_a_new_controller_tells_everybody_everything_once() -> None:
    cluster = Cluster(topic("t", ONE, row("12"), row("23")))
    cluster.run()
    for number in (1, 2, 3):
        cluster.seen(number)
    cluster.elect(2, list(cluster.orders.image.snapshot()))
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"]


def test_a_broker_that_was_started_again_is_told_everything_and_answers_to_its_earlier_life_count_for_nothing() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.orders.fold([partition_change("t", 0, row("12", "2", 2, 1, 1))])
    old = cluster.orders.next_request(1, cluster.now)
    assert old is not None
    cluster.start(1)
    cluster.seen(1)
    assert cluster.orders.on_answer(1, old, LeaderAndIsrResponse(), cluster.now) == Answered()
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == ["UpdateMetadata", "LeaderAndIsr", "UpdateMetadata"]


def test_requests_are_bounded_and_a_topic_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logkernel.controller.backlog.MAX_PARTITIONS", 4)
    cluster = Cluster(*(topic(f"t{n}", UUID(int=10 + n), row("1"), row("1"), row("1")) for n in range(3)))
    cluster.run()
    cluster.check()
    sizes = {
        kind: [
            sum(len(state.partition_states) for state in request.topic_states)
            for request in cluster.followers[1].seen
            if isinstance(request, kind)
        ]
        for kind in (LeaderAndIsrRequest, UpdateMetadataRequest)
    }
    assert sizes == {LeaderAndIsrRequest: [4, 4, 1], UpdateMetadataRequest: [0, 6, 3]}


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_lost_all_brokers_know_the_image_in_the_end(seed: int) -> None:
    draw = Random(seed)
    cluster = Cluster()
    ids = iter(range(100, 10_000))
    away: set[int] = set()
    for _ in range(120):
        image = cluster.orders.image
        what = draw.random()
        names = sorted(image.topics)
        if what < 0.15:
            number = draw.choice((1, 2, 3))
            if number in away:
                cluster.start(number)
                away.discard(number)
            elif draw.random() < 0.5:
                cluster.start(number)
            else:
                cluster.stop(number)
                away.add(number)
        elif what < 0.25:
            name = draw.choice("abc")
            living = sorted(image.nodes)
            if name not in names and living:
                rows = [row("".join(map(str, draw.sample(living, draw.randint(1, len(living)))))) for _ in range(3)]
                cluster.orders.fold([topic(name, UUID(int=next(ids)), *rows)])
        elif what < 0.3 and names:
            cluster.orders.fold([MetadataChange("topic", draw.choice(names), None)])
        elif what < 0.4 and names and image.nodes:
            name = draw.choice(names)
            old = image.topics[name].partitions[1]
            replicas = tuple(draw.sample(sorted(image.nodes), draw.randint(1, len(image.nodes))))
            new = Partition(replicas, replicas, replicas[0], old.leader_epoch + 1, old.partition_epoch + 1)
            cluster.orders.fold([partition_change(name, 1, new)])
        elif what < 0.43:
            cluster.elect(cluster.orders.term + 1, list(image.snapshot()))
        else:
            number = draw.choice((1, 2, 3))
            cluster.deliver(number, lost=draw.random() < 0.3, unheard=draw.random() < 0.1)
            cluster.now += draw.choice((0, 0, RETRY_MS))
    for number in away:
        cluster.start(number)
    cluster.run()
    cluster.check()
