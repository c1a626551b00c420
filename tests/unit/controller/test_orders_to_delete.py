"""What the controller tells brokers of deleted topics, and of replicas that are taken away."""

from __future__ import annotations

from told_brokers import ONE, OTHER, Cluster, answer_of, kinds, row, topic

from logkernel.contracts import MetadataChange
from logkernel.controller.backlog import REFUSED_MS
from logkernel.controller.image import partition_change
from logkernel.controller.orders import RETRY_MS, Answered
from logkernel.errors import InconsistentTopicId, KafkaStorageError, UnknownServerError
from logkernel.requests.replication import (
    LeaderAndIsrRequest,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
)


def test_a_deleted_topic_is_forgotten_then_quiet_then_gone() -> None:
    cluster = Cluster(topic("t", ONE, row("12"), row("1")))
    cluster.run()
    cluster.seen(1)
    cluster.seen(3)
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    answers = cluster.run()
    cluster.check()
    forgets, quiets, stops = cluster.seen(1)
    assert isinstance(forgets, UpdateMetadataRequest)
    assert [state.leader for state in forgets.topic_states[0].partition_states] == [-2, -2]
    for request, delete in ((quiets, False), (stops, True)):
        assert isinstance(request, StopReplicaRequest)
        states = request.topic_states[0].partition_states
        assert [(state.leader_epoch, state.delete_partition) for state in states] == [(-2, delete)] * 2
    assert kinds(cluster.seen(3)) == ["UpdateMetadata"]
    assert [found for answer in answers for found in answer.erased] == [ONE]
    assert cluster.followers[1].logs == {}


def test_a_topic_made_again_under_its_name_waits_until_the_old_one_is_gone() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.seen(1)
    cluster.orders.fold([MetadataChange("topic", "t", None), topic("t", OTHER, row("12"))])
    for lost in (False, True):  # forget, then the first StopReplica, whose answer is lost
        cluster.deliver(1, lost=lost)
    cluster.now += RETRY_MS
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == [
        "UpdateMetadata", "StopReplica", "StopReplica", "StopReplica", "LeaderAndIsr", "UpdateMetadata"
    ]  # fmt: skip
    assert cluster.followers[1].logs == {("t", 0): OTHER}


def test_a_broker_that_was_away_during_a_deletion_is_told_of_it_when_it_is_back() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.stop(2)
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    assert [answer.erased for answer in cluster.run() if answer.erased] == []
    cluster.start(2)
    assert [answer.erased for answer in cluster.run() if answer.erased] == [[ONE]]
    assert cluster.followers[2].logs == {}


def test_a_log_of_an_earlier_topic_is_deleted_before_the_new_one_is_made() -> None:
    cluster = Cluster(topic("t", OTHER, row("12")))
    cluster.followers[1].logs["t", 0] = ONE
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == [
        "UpdateMetadata", "LeaderAndIsr", "StopReplica", "LeaderAndIsr", "UpdateMetadata"
    ]  # fmt: skip


def test_a_log_of_an_earlier_topic_that_stays_is_deleted_again_later_and_holds_nothing_up() -> None:
    cluster = Cluster(topic("t", OTHER, row("1")), nodes=(1,))
    cluster.deliver(1)
    for expected in (LeaderAndIsrRequest, StopReplicaRequest, LeaderAndIsrRequest):
        request = cluster.orders.next_request(1, cluster.now)
        assert isinstance(request, expected)
        stays = isinstance(request, LeaderAndIsrRequest)
        response = answer_of(request, InconsistentTopicId.code) if stays else StopReplicaResponse()
        answered = cluster.orders.on_answer(1, request, response, cluster.now)
    assert answered.refused == [(("t", 0), InconsistentTopicId.code)]
    cluster.deliver(1)
    assert kinds(cluster.seen(1))[-1] == "UpdateMetadata"
    assert cluster.orders.ready(cluster.now) == []
    cluster.followers[1].logs["t", 0] = ONE
    cluster.now += REFUSED_MS
    cluster.run()
    cluster.check()
    assert kinds(cluster.seen(1)) == ["LeaderAndIsr", "StopReplica", "LeaderAndIsr"]


def test_a_replica_that_is_taken_away_goes_and_may_come_back() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.seen(2)
    cluster.orders.fold([partition_change("t", 0, row("13", "13", 1, 1, 1))])
    cluster.run()
    cluster.check()
    stop, _ = cluster.seen(2)
    assert isinstance(stop, StopReplicaRequest)
    (state,) = stop.topic_states[0].partition_states
    assert (state.leader_epoch, state.delete_partition) == (1, True)
    cluster.orders.fold([partition_change("t", 0, row("12", "1", 1, 2, 2))])
    cluster.run()
    cluster.check()


def test_a_refused_stop_holds_the_new_topic_of_that_name_back() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.run()
    cluster.orders.fold([MetadataChange("topic", "t", None), topic("t", OTHER, row("1"))])
    cluster.deliver(1)
    cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, StopReplicaRequest)
    refused = StopReplicaResponse(partition_errors=[StopReplicaPartitionError("t", 0, UnknownServerError.code)])
    cluster.orders.on_answer(1, request, refused, cluster.now)
    cluster.seen(1)
    cluster.deliver(1)
    assert kinds(cluster.seen(1)) == ["UpdateMetadata"]
    cluster.now += REFUSED_MS
    cluster.run()
    cluster.check()


def test_a_new_controller_finishes_a_deletion() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    cluster.elect(2, list(cluster.orders.image.snapshot()))
    assert [answer.erased for answer in cluster.run() if answer.erased] == [[ONE]]
    cluster.check()
    assert cluster.followers[1].logs == cluster.followers[2].logs == {}


def test_a_new_controller_does_not_delete_a_later_topic_of_the_same_name() -> None:
    cluster = Cluster(topic("t", ONE, row("12")))
    cluster.run()
    cluster.orders.fold([MetadataChange("topic", "t", None), topic("t", OTHER, row("12"))])
    cluster.run()
    cluster.seen(1)
    cluster.elect(2, list(cluster.orders.image.snapshot()))
    assert cluster.orders.erased == [ONE]
    cluster.run()
    cluster.check()
    assert "StopReplica" not in kinds(cluster.seen(1))


def deleted_out_of_reach(cluster: Cluster) -> Answered:
    """Topic t is deleted while broker 1 has its log in a directory that is offline; what comes of its answer."""
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    for _ in range(2):
        cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, StopReplicaRequest)
    offline = StopReplicaResponse(partition_errors=[StopReplicaPartitionError("t", 0, KafkaStorageError.code)])
    return cluster.orders.on_answer(1, request, offline, cluster.now)


def test_a_log_in_an_offline_directory_is_deleted_when_its_broker_is_back() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.run()
    assert deleted_out_of_reach(cluster) == Answered()
    cluster.run()
    assert cluster.followers[1].logs == {("t", 0): ONE}
    cluster.start(1)
    assert [answer.erased for answer in cluster.run() if answer.erased] == [[ONE]]
    assert cluster.followers[1].logs == {}


def test_a_later_topic_of_the_same_name_is_not_deleted_when_its_broker_is_back() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.run()
    deleted_out_of_reach(cluster)
    cluster.followers[1].logs.clear()  # out of reach
    cluster.orders.fold([topic("t", OTHER, row("1"))])
    cluster.run()
    cluster.seen(1)
    cluster.start(1)
    assert cluster.orders.erased == [ONE]
    cluster.run()
    cluster.check()
    assert "StopReplica" not in kinds(cluster.seen(1))
