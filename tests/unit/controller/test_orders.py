"""What the controller tells brokers: in order, once, and again where no answer came."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from logkernel.contracts import MetadataChange
from logkernel.controller import orders as module
from logkernel.controller.image import (
    BrokerRegistration,
    ClusterImage,
    Partition,
    Topic,
    partition_change,
    registration_change,
)
from logkernel.controller.orders import REFUSED_MS, RETRY_MS, Answered, Orders
from logkernel.errors import (
    InconsistentTopicId,
    KafkaStorageError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnknownServerError,
)
from logkernel.requests.replication import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    Order,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

ONE, OTHER = UUID(int=1), UUID(int=2)


class Follower:
    """A broker that obeys, and keeps what it was told."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.live: set[int] = set()
        self.topics: dict[str, tuple[UUID, dict[int, tuple[Any, ...]]]] = {}
        self.logs: dict[tuple[str, int], UUID] = {}
        self.roles: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.seen: list[Order] = []

    def restart(self) -> None:
        self.live, self.topics, self.roles = set(), {}, {}

    def obey(self, request: Order) -> Any:
        self.seen.append(request)
        if isinstance(request, UpdateMetadataRequest):
            self.live = {broker.id for broker in request.live_brokers}
            for topic in request.topic_states:
                known, rows = self.topics.get(topic.topic_name, (topic.topic_id, {}))
                if all(row.leader == -2 for row in topic.partition_states):
                    if known == topic.topic_id:
                        self.topics.pop(topic.topic_name, None)
                    continue
                rows = rows if known == topic.topic_id else {}
                for row in topic.partition_states:
                    role = self.roles.get((topic.topic_name, row.partition_index))
                    if role is not None and self.node not in row.replicas and row.leader_epoch > role[1]:
                        del self.roles[topic.topic_name, row.partition_index]
                    rows[row.partition_index] = (
                        row.leader, row.leader_epoch, tuple(row.isr), row.partition_epoch, tuple(row.replicas)
                    )  # fmt: skip
                self.topics[topic.topic_name] = (topic.topic_id, rows)
            return UpdateMetadataResponse()
        if isinstance(request, StopReplicaRequest):
            for stopped in request.topic_states:
                for stop in stopped.partition_states:
                    name = (stopped.topic_name, stop.partition_index)
                    self.roles.pop(name, None)
                    if stop.delete_partition:
                        self.logs.pop(name, None)
            return StopReplicaResponse()
        response = LeaderAndIsrResponse()
        for state in request.topic_states:
            errors = LeaderAndIsrTopicError(state.topic_id)
            response.topics.append(errors)
            for order in state.partition_states:
                name = (state.topic_name, order.partition_index)
                code = 0
                if self.logs.setdefault(name, state.topic_id) != state.topic_id:
                    code = InconsistentTopicId.code
                else:
                    self.roles[name] = (order.leader, order.leader_epoch, tuple(order.replicas))
                errors.partition_errors.append(LeaderAndIsrPartitionError(order.partition_index, code))
        return response


def row(replicas: str, isr: str = "", leader: int | None = None, leader_epoch: int = 0, epoch: int = 0) -> Partition:
    members = tuple(map(int, replicas))
    return Partition(
        members, tuple(map(int, isr or replicas)), members[0] if leader is None else leader, leader_epoch, epoch
    )


def topic(name: str, topic_id: UUID, *rows: Partition) -> MetadataChange:
    return Topic(name, topic_id, list(rows)).change()


def node(number: int) -> MetadataChange:
    return registration_change(BrokerRegistration(number, {"P": ("h", number)}))


class Cluster:
    """Orders, and brokers that obey them."""

    def __init__(self, *changes: MetadataChange, nodes: tuple[int, ...] = (1, 2, 3)) -> None:
        self.followers = {number: Follower(number) for number in nodes}
        self.epochs = dict.fromkeys(nodes, 0)
        self.now = 1_000
        self.elect(1, [*map(node, nodes), *changes])

    def elect(self, term: int, changes: list[MetadataChange]) -> None:
        self.orders = Orders(1, term, ClusterImage.of(changes))
        for number in self.orders.image.nodes:
            self.orders.broker_came(number, self.epochs[number])

    def start(self, number: int) -> None:
        self.epochs[number] += 1
        self.followers[number].restart()
        self.orders.fold([node(number)])
        self.orders.broker_came(number, self.epochs[number])

    def stop(self, number: int) -> None:
        self.orders.fold([MetadataChange("broker", str(number), None)])
        self.orders.broker_gone(number)

    def deliver(self, number: int, *, lost: bool = False, unheard: bool = False) -> Answered | None:
        request = self.orders.next_request(number, self.now)
        if request is None:
            return None
        assert request.broker_epoch == self.epochs[number]
        if isinstance(request, LeaderAndIsrRequest):
            leaders = {row.leader for state in request.topic_states for row in state.partition_states}
            assert leaders & self.orders.image.nodes.keys() <= self.followers[number].live, "a leader not told of"
        response = None if unheard else self.followers[number].obey(request)
        return self.orders.on_answer(number, request, None if lost else response, self.now)

    def run(self) -> list[Answered]:
        """Deliver everything."""
        found = []
        while not self.orders.is_idle:
            ready = self.orders.ready(self.now)
            if not ready:
                deadline = self.orders.next_deadline()
                assert deadline is not None
                assert deadline > self.now
                self.now = deadline
            for number in ready:
                answered = self.deliver(number)
                assert answered is not None
                found.append(answered)
        return found

    def seen(self, number: int) -> list[Order]:
        seen, self.followers[number].seen = self.followers[number].seen, []
        return seen

    def check(self) -> None:
        image = self.orders.image
        for number in image.nodes:
            broker = self.followers[number]
            assert broker.live == set(image.nodes)
            assert {name: found[0] for name, found in broker.topics.items()} == {
                name: found.id for name, found in image.topics.items()
            }
            held = {}
            for name, found in image.topics.items():
                for index, each in enumerate(found.partitions):
                    told = broker.topics[name][1][index]
                    assert told == (each.leader, each.leader_epoch, each.isr, each.partition_epoch, each.replicas)
                    if number in each.replicas:
                        held[name, index] = (each.leader, each.leader_epoch, each.replicas)
                        assert broker.logs[name, index] == found.id
            assert broker.roles == held


def kinds(seen: list[Order]) -> list[str]:
    return [type(request).__name__.removesuffix("Request") for request in seen]


def test_a_new_broker_hears_of_the_others_first_then_of_its_replicas_then_of_all_partitions() -> None:
    cluster = Cluster(topic("t", ONE, row("12"), row("23")))
    cluster.run()
    cluster.check()
    first, second, third = cluster.seen(1)
    assert isinstance(first, UpdateMetadataRequest)
    assert ([broker.id for broker in first.live_brokers], first.topic_states) == ([1, 2, 3], [])
    assert first.live_brokers[1].endpoints[0] == module.UpdateMetadataEndpoint(2, "h", "P")
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


def answer_of(request: Order, code: int) -> Any:
    """A LeaderAndIsr answer that says `code` of every partition."""
    assert isinstance(request, LeaderAndIsrRequest)
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                state.topic_id,
                [LeaderAndIsrPartitionError(row.partition_index, code) for row in state.partition_states],
            )
            for state in request.topic_states
        ]
    )


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


def test_requests_are_bounded_and_a_topic_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PARTITIONS", 4)
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


def test_a_log_in_an_offline_directory_is_deleted_when_its_broker_is_back() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.run()
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    for _ in range(2):
        cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, StopReplicaRequest)
    offline = StopReplicaResponse(partition_errors=[StopReplicaPartitionError("t", 0, KafkaStorageError.code)])
    assert cluster.orders.on_answer(1, request, offline, cluster.now) == Answered()
    cluster.run()
    assert cluster.followers[1].logs == {("t", 0): ONE}
    cluster.start(1)
    assert [answer.erased for answer in cluster.run() if answer.erased] == [[ONE]]
    assert cluster.followers[1].logs == {}


def test_a_later_topic_of_the_same_name_is_not_deleted_when_its_broker_is_back() -> None:
    cluster = Cluster(topic("t", ONE, row("1")))
    cluster.run()
    cluster.orders.fold([MetadataChange("topic", "t", None)])
    for _ in range(2):
        cluster.deliver(1)
    request = cluster.orders.next_request(1, cluster.now)
    assert isinstance(request, StopReplicaRequest)
    offline = StopReplicaResponse(partition_errors=[StopReplicaPartitionError("t", 0, KafkaStorageError.code)])
    cluster.orders.on_answer(1, request, offline, cluster.now)
    cluster.followers[1].logs.clear()  # out of reach
    cluster.orders.fold([topic("t", OTHER, row("1"))])
    cluster.run()
    cluster.seen(1)
    cluster.start(1)
    assert cluster.orders.erased == [ONE]
    cluster.run()
    cluster.check()
    assert "StopReplica" not in kinds(cluster.seen(1))
