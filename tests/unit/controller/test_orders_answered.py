"""What follows from brokers' answers: replicas that are offline, and orders that are refused."""

from __future__ import annotations

import pytest
from told_brokers import ONE, OTHER, Cluster, answer_of, kinds, row, topic

from logkernel.contracts import MetadataChange
from logkernel.controller.backlog import REFUSED_MS
from logkernel.controller.image import partition_change
from logkernel.controller.orders import RETRY_MS
from logkernel.errors import KafkaStorageError, StaleBrokerEpoch, StaleControllerEpoch, UnknownServerError
from logkernel.requests.replication import LeaderAndIsrRequest, UpdateMetadataRequest, UpdateMetadataResponse


def test_what_was_refused_is_not_told_again_where_the_topic_or_the_replica_went_meanwhile() -> None:
    cluster = Cluster(topic("t", ONE, row("12")), topic("u", OTHER, row("12")))
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert request is not None
    cluster.orders.on_answer(1, request, answer_of(request, UnknownServerError.code), cluster.now)
    cluster.orders.fold([MetadataChange("topic", "t", None), partition_change("u", 0, row("23", "2", 2, 1, 1))])
    cluster.now += REFUSED_MS
    cluster.seen(1)
    cluster.run()
    cluster.check()
    assert "LeaderAndIsr" not in kinds(cluster.seen(1))


def test_a_replica_in_an_offline_directory_is_offline_until_its_broker_starts_again() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert request is not None
    answered = cluster.orders.on_answer(1, request, answer_of(request, KafkaStorageError.code), cluster.now)
    assert answered.offline == [("t", 0)]
    assert cluster.orders.alive("t", 0, frozenset((1, 2))) == {2}
    cluster.run()
    last = cluster.seen(3)[-1]
    assert isinstance(last, UpdateMetadataRequest)
    assert last.topic_states[0].partition_states[0].offline_replicas == [1]
    cluster.start(1)
    cluster.run()
    assert cluster.orders.alive("t", 0, frozenset((1, 2))) == {1, 2}
    last = cluster.seen(3)[-1]
    assert isinstance(last, UpdateMetadataRequest)
    assert last.topic_states[0].partition_states[0].offline_replicas == []


def test_a_replica_that_is_made_later_is_online_by_its_answer() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert request is not None
    cluster.orders.on_answer(1, request, answer_of(request, KafkaStorageError.code), cluster.now)
    cluster.run()
    cluster.orders.replicas_again(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, LeaderAndIsrRequest)
    answered = cluster.orders.on_answer(1, request, answer_of(request, 0), cluster.now)
    assert (answered.online, answered.offline) == ([("t", 0)], [])
    assert cluster.orders.alive("t", 0, frozenset((1, 2))) == {1, 2}


def test_a_replica_that_stays_offline_is_news_to_nobody() -> None:
    """A broker that lacked room for one log had all brokers told of it every ten seconds."""
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    for told in (True, False):
        cluster.seen(2)
        cluster.orders.replicas_again(1)
        request = cluster.orders.next_request(1, cluster.now)
        assert request is not None
        cluster.orders.on_answer(1, request, answer_of(request, KafkaStorageError.code), cluster.now)
        cluster.run()
        assert bool(cluster.seen(2)) == told


def test_what_a_broker_refuses_is_told_again_and_holds_nothing_up() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert request is not None
    refused = answer_of(request, UnknownServerError.code)
    assert cluster.orders.on_answer(1, request, refused, cluster.now).refused == [(("t", 0), UnknownServerError.code)]
    cluster.orders.fold([topic("u", OTHER, row("1"))])
    cluster.deliver(1)
    assert ("u", 0) in cluster.followers[1].roles
    cluster.deliver(1)
    assert cluster.orders.ready(cluster.now) == [2, 3]
    cluster.now += REFUSED_MS
    cluster.run()
    cluster.check()


@pytest.mark.parametrize(
    ("code", "stale_controller", "stale_broker"),
    [(StaleControllerEpoch.code, True, False), (StaleBrokerEpoch.code, False, True), (31, False, False)],
)
def test_an_order_that_is_refused_as_a_whole_is_sent_again(
    code: int, stale_controller: bool, stale_broker: bool
) -> None:
    cluster = Cluster()
    request = cluster.orders.next_request(1, cluster.now)
    assert request is not None
    answered = cluster.orders.on_answer(1, request, UpdateMetadataResponse(code), cluster.now)
    assert (answered.stale_controller, answered.stale_broker) == (stale_controller, stale_broker)
    assert cluster.orders.next_request(1, cluster.now) is None
    assert cluster.orders.next_deadline() is not None
    assert cluster.orders.next_request(1, cluster.now + RETRY_MS) == request
