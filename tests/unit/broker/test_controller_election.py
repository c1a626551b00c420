"""Brokers of one coordination: who is the controller, and what it decides when brokers come, go and leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.commits import DECIDE_AGAIN_MS
from logkernel.broker.controller.controller_election import ControllerElection
from logkernel.broker.purgatory import RequestPurgatory
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Clock
from logkernel.broker.turn import Turn
from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Candidates, Elected, MetadataChange, RequestContext
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import Partition, Topic, partition_change
from logkernel.controller.state import State
from logkernel.errors import (
    ClusterAuthorizationFailed,
    KafkaStorageError,
    NetworkException,
    NotController,
    StaleBrokerEpoch,
    StaleControllerEpoch,
)
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.requests.replication import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from logkernel.requests.topics import CreateTopicsRequest, CreateTopicsResponse


class SetClock(Clock):
    def __init__(self) -> None:
        self.now = 1_000

    def wall_ms(self) -> int:
        return self.now

    def mono_ms(self) -> int:
        return self.now


class Coordination:
    """`contracts.Coordination` that keeps a list."""

    def __init__(self) -> None:
        self.rows: list[MetadataChange] = []
        self.fails = False

    def changes(self) -> Any:
        return iter(self.rows)

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        if self.fails:
            raise KafkaStorageError("no room")
        self.rows += changes

    def kept(self) -> int:
        return len(self.rows)

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self.rows = list(changes)

    def close(self) -> None: ...


class Broker:
    """An election, and as much of a broker as it needs."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        kernel = Kernel(plugins=cluster.plugins)
        config = BrokerConfig.load(None, [f"node.id={node_id}", *cluster.settings], kernel.declarations())
        self.runtime = Runtime(config, kernel, clock=cluster.clock)
        self.turn = Turn(RequestPurgatory(self.runtime))
        self.watched: list[MetadataChange] = []
        self.decided: list[tuple[int, bool]] = []
        self.obeyed: list[Any] = []
        self.offline: set[tuple[str, int]] = set()
        self.refuses = False
        self.controller = Controller(config, node_id, cluster.new_id, {}, kernel.placement)
        self.election = ControllerElection(self.runtime, self.turn, self.controller, self.send, self)
        self.channel = ControllerChannel(self.turn, self.controller, self.send, self.election.view)
        self.session: StoreSession | None = None
        self.start()

    def start(self) -> None:
        self.session = self.cluster.store.session()
        self.election.begin(self.session, lambda: self.cluster.rings.append(self))
        self.election.poll()
        self.election.announce({"listeners": {"P": ["h", self.node_id]}, "rack": None})

    def on_watched(self, changes: Sequence[MetadataChange]) -> None:
        self.watched += changes

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        self.decided.append((brokers, elected))

    def on_session_lost(self) -> None:
        self.start()

    def send(self, target: int, request: Any, done: Callable[[Any], None]) -> None:
        self.cluster.sent.append((self, target, request, done))

    def obey(self, request: Any) -> Any:
        if isinstance(request, CreateTopicsRequest):
            try:
                image = self.election.active.image
            except NotController:
                return CreateTopicsResponse()
            return self.election.active.commit(self.controller.create_topics(request, image))
        try:
            self.election.view.check_order(request, RequestContext())
        except (StaleBrokerEpoch, StaleControllerEpoch) as error:
            return UpdateMetadataResponse(error.code)
        if self.refuses:
            return UpdateMetadataResponse(ClusterAuthorizationFailed.code)
        self.obeyed.append(request)
        if isinstance(request, UpdateMetadataRequest):
            return UpdateMetadataResponse()
        if isinstance(request, StopReplicaRequest):
            return StopReplicaResponse()
        assert isinstance(request, LeaderAndIsrRequest)
        rows = [
            LeaderAndIsrTopicError(
                state.topic_id,
                [
                    LeaderAndIsrPartitionError(
                        row.partition_index, 56 * ((state.topic_name, row.partition_index) in self.offline)
                    )
                    for row in state.partition_states
                ],
            )
            for state in request.topic_states
        ]
        return LeaderAndIsrResponse(topics=rows)


class Cluster:
    def __init__(self, *settings: str, plugins: Sequence[object] = ()) -> None:
        self.settings, self.plugins = settings, plugins
        self.clock = SetClock()
        self.keeper = Coordination()
        self.store = SharedStore(self.keeper)
        self.rings: list[Broker] = []
        self.sent: list[tuple[Broker, int, Any, Callable[[Any], None]]] = []
        self.away: set[int] = set()
        self._id = 0
        self.brokers = {number: Broker(self, number) for number in (1, 2, 3)}
        self.run()

    def new_id(self) -> UUID:
        self._id += 1
        return UUID(int=self._id)

    @property
    def controller(self) -> Broker:
        (found,) = (broker for broker in self.brokers.values() if broker.election.is_active)
        return found

    @property
    def election(self) -> ControllerElection:
        return self.controller.election

    def run(self, ms: int = 0) -> None:
        """Until nothing is left to do, and `ms` on."""
        until = self.clock.now + ms
        while True:
            for broker in self.brokers.values():
                broker.turn.end()
            if self.rings:
                rings, self.rings = self.rings, []
                for broker in dict.fromkeys(rings):
                    broker.election.poll()
            elif self.sent:
                self.deliver(*self.sent.pop(0))
            elif not any(broker.turn.soon for broker in self.brokers.values()):
                due = [
                    at for broker in self.brokers.values() if (at := broker.runtime.timers.next_deadline()) is not None
                ]
                if not due or min(due) > until:
                    break
                self.clock.now = max(self.clock.now, min(due))
                for broker in self.brokers.values():
                    broker.runtime.timers.run(self.clock.now)
        self.clock.now = until

    def deliver(self, source: Broker, target: int, request: Any, done: Callable[[Any], None]) -> None:
        done(None if target in self.away else self.brokers[target].obey(request))
        source.turn.end()

    def expire(self, node_id: int) -> None:
        session = self.brokers[node_id].session
        assert session is not None
        session.expire()

    def kill(self, node_id: int) -> None:
        session = self.brokers[node_id].session
        assert session is not None
        self.away.add(node_id)
        del self.brokers[node_id]
        session.close()
        self.run()

    def revive(self, node_id: int) -> None:
        self.away.discard(node_id)
        self.brokers[node_id] = Broker(self, node_id)
        self.run()

    def create(self, name: str, *rows: str) -> None:
        """A topic whose partitions have these replicas, the first of each its leader."""
        made = [(tuple(map(int, row)), int(row[0])) for row in rows]
        topic = Topic(name, self.new_id(), [Partition(replicas, replicas, leader) for replicas, leader in made])
        self.election.active.commit(ControllerResult([topic.change()], None, Effects()))
        self.run()

    def write(self, topic: str, index: int, row: Partition) -> None:
        self.election.active.commit(ControllerResult([partition_change(topic, index, row)], None, Effects()))
        self.run()

    def leaders(self, name: str) -> list[tuple[int, str, int]]:
        return [
            (row.leader, "".join(map(str, row.isr)), row.leader_epoch)
            for row in self.election.active.image.topics[name].partitions
        ]


def test_one_of_them_is_the_controller_and_all_know_it() -> None:
    cluster = Cluster()
    election = cluster.election
    assert {broker.election.view.controller_id for broker in cluster.brokers.values()} == {cluster.controller.node_id}
    assert (election.term, election.view.controller_epoch) == (1, 1)
    assert election.active.eligible == {
        number: broker.election.view.broker_epoch for number, broker in cluster.brokers.items()
    }
    other = next(broker.election for broker in cluster.brokers.values() if broker is not cluster.controller)
    with pytest.raises(NotController, match="ask broker 1"):
        _ = other.active
    assert cluster.controller.decided == [(0, True), (3, False)]
    for broker in cluster.brokers.values():
        last = broker.obeyed[-1]
        assert sorted(each.id for each in last.live_brokers) == [1, 2, 3]


def test_a_broker_that_lets_nobody_command_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """It was asked ten times a second, and the controller's log did not say why the broker leads nothing."""

    def told() -> list[str]:
        rows = [row.getMessage() for row in caplog.records if "orders refused" in row.getMessage()]
        caplog.clear()
        return rows

    cluster = Cluster()
    cluster.brokers[2].refuses = True
    cluster.create("t", "12")
    cluster.run(60_000)
    (line,) = told()
    assert "broker=2 error=CLUSTER_AUTHORIZATION_FAILED; let the principal" in line
    cluster.brokers[2].refuses = False
    cluster.run(1_000)
    assert any(isinstance(request, LeaderAndIsrRequest) for request in cluster.brokers[2].obeyed)
    cluster.brokers[2].refuses = True
    cluster.create("u", "12")
    assert len(told()) == 1, "it refuses anew"


def test_a_topic_is_ordered_from_the_brokers_that_hold_it_and_told_to_all() -> None:
    cluster = Cluster()
    cluster.create("t", "12", "23")
    ordered = [
        (number, row.partition_index, row.leader)
        for number, broker in cluster.brokers.items()
        for request in broker.obeyed
        if isinstance(request, LeaderAndIsrRequest)
        for state in request.topic_states
        for row in state.partition_states
    ]
    assert ordered == [(1, 0, 1), (2, 0, 1), (2, 1, 2), (3, 1, 2)]
    assert all(broker.election.view.controller_id == 1 for broker in cluster.brokers.values())


def test_a_follower_s_broker_dies_and_another_leads_where_it_led() -> None:
    cluster = Cluster()
    cluster.create("t", "31", "13", "3")
    cluster.kill(3)
    assert cluster.leaders("t") == [(1, "1", 1), (1, "1", 1), (-1, "3", 1)]
    assert (cluster.election.active.offline_partitions(), cluster.election.counters.unclean_elections) == (1, 0)
    cluster.revive(3)
    assert cluster.leaders("t") == [(1, "1", 1), (1, "1", 1), (3, "3", 2)]


def test_the_controller_dies_and_the_next_one_goes_on() -> None:
    cluster = Cluster()
    cluster.create("t", "12", "23")
    cluster.kill(1)
    assert cluster.election.term == 2
    assert cluster.leaders("t") == [(2, "2", 1), (2, "23", 0)]
    orders = [request for request in cluster.brokers[3].obeyed if request.controller_epoch == 2]
    assert len(orders) >= 2
    assert isinstance(orders[0], UpdateMetadataRequest)
    assert {each.id for each in orders[0].live_brokers} == {2, 3}


def test_a_broker_that_was_started_again_between_two_looks_leads_in_a_new_epoch() -> None:
    cluster = Cluster()
    cluster.create("t", "2", "21", "12")
    cluster.expire(2)  # it begins with a new session at once
    cluster.run()
    assert cluster.leaders("t") == [(2, "2", 2), (1, "1", 1), (1, "1", 1)]


def test_the_next_controller_sees_that_a_broker_was_started_again_meanwhile() -> None:
    cluster = Cluster()
    cluster.create("t", "2", "3")
    first, second = cluster.brokers[1].session, cluster.brokers[2].session
    assert first is not None
    assert second is not None
    second.expire()
    first.expire()
    cluster.run()
    assert cluster.election.term == 2
    assert cluster.leaders("t") == [(2, "2", 2), (3, "3", 0)]


def test_a_deposed_controller_commits_nothing() -> None:
    cluster = Cluster()
    cluster.create("t", "12")
    old = cluster.controller
    found = old.controller.create_topic(old.election.active.image, "u", 1, 1)
    assert old.session is not None
    cluster.store.depose(old.session)  # it has not heard of that yet
    kept = cluster.keeper.kept()
    with pytest.raises(NotController):
        old.election.active.commit(found)
    assert cluster.keeper.kept() == kept
    cluster.run()
    assert cluster.election.term == 2


def test_a_controller_that_learns_amid_its_elections_that_it_was_deposed_ends_them_quietly() -> None:
    """The second election raised NotController out of the poll."""
    cluster = Cluster()
    cluster.create("t", "213", "312")
    old = cluster.controller
    for number in (2, 3):
        session = cluster.brokers[number].session
        assert session is not None
        session.close()
    assert old.session is not None
    cluster.store.depose(old.session)
    term = old.election.active
    term.check_brokers()
    assert not old.election.is_active
    assert [row.leader for row in term.image.topics["t"].partitions] == [2, 3]


def test_a_term_that_is_over_decides_and_sends_nothing_in_the_next_one() -> None:
    cluster = Cluster()
    cluster.create("t", "31")
    old = cluster.controller
    term, session = old.election.active, old.session
    assert session is not None
    cluster.keeper.fails = True
    cluster.kill(3)  # its election will be tried again
    cluster.keeper.fails = False
    told: list[str] = []
    term.when_confirmed(lambda: told.append("over"), 60_000)
    session.make_unsure()
    session.make_sure()
    cluster.run()
    assert (old.election.is_active, told) == (True, ["over"])
    assert old.election.active is not term
    assert cluster.leaders("t") == [(1, "1", 1)]
    with pytest.raises(NotController):
        term.commit(old.controller.create_topic(term.image, "u", 1, 1))
    before = len(cluster.sent)
    term.check_brokers()
    cluster.run(DECIDE_AGAIN_MS + 1)
    assert len(cluster.sent) == before
    assert cluster.leaders("t") == [(1, "1", 1)]


def test_a_controller_whose_session_is_unsure_decides_nothing_until_it_is_back() -> None:
    cluster = Cluster()
    cluster.create("t", "31")
    session = cluster.controller.session
    assert session is not None
    session.make_unsure()
    cluster.run()
    election = cluster.brokers[1].election
    assert election.state is State.SUSPENDED
    with pytest.raises(NotController):
        _ = election.active.image
    cluster.kill(3)
    session.make_sure()
    cluster.run()
    assert (cluster.election, election.term) == (election, 1)
    assert cluster.leaders("t") == [(1, "1", 1)]


def test_a_write_whose_answer_was_lost_is_ordered_when_the_session_is_back() -> None:
    """Found by the world's seed 51: where no broker came or went meanwhile, nothing was sent."""
    cluster = Cluster()
    cluster.create("t", "12")
    session = cluster.controller.session
    assert session is not None
    row = Partition((1, 2), (1, 2), 2, 1, 1)
    session.commit_as_controller([partition_change("t", 0, row)], cluster.election.term)  # and it does not hear of it
    session.make_unsure()
    cluster.run()
    session.make_sure()
    cluster.run()
    for number in (1, 2):
        orders = [request for request in cluster.brokers[number].obeyed if isinstance(request, LeaderAndIsrRequest)]
        assert orders[-1].topic_states[0].partition_states[0].leader == 2


def test_a_broker_that_leaves_leads_nothing_and_may_not_join() -> None:
    cluster = Cluster()
    cluster.create("t", "21", "2", "12")
    assert cluster.election.active.leave(2) == []
    cluster.run()
    assert cluster.leaders("t") == [(1, "1", 1), (2, "2", 0), (1, "1", 1)]
    assert 2 not in cluster.election.active.eligible
    cluster.kill(2)
    cluster.revive(2)
    assert 2 in cluster.election.active.eligible


def test_preferred_leaders_lead_again_after_a_while() -> None:
    cluster = Cluster("leader.imbalance.check.interval.seconds=10")
    cluster.create("t", "312", "123")
    cluster.election.active.leave(3)
    cluster.run()
    assert [row[0] for row in cluster.leaders("t")] == [1, 1]
    cluster.kill(3)
    cluster.revive(3)
    cluster.write("t", 0, Partition((3, 1, 2), (3, 1, 2), 1, 1, 9))
    cluster.run(9_000)
    assert [each[0] for each in cluster.leaders("t")] == [1, 1]
    cluster.run(2_000)
    assert [each[0] for each in cluster.leaders("t")] == [3, 1]


def test_an_offline_directory_costs_its_partitions_alone() -> None:
    cluster = Cluster()
    cluster.brokers[2].offline = {("t", 0)}
    cluster.create("t", "21", "21")
    assert cluster.leaders("t") == [(1, "1", 1), (2, "21", 0)]


def test_an_unclean_leader_is_elected_once_the_topic_allows_it_and_counted() -> None:
    cluster = Cluster()
    cluster.create("t", "32")
    cluster.write("t", 0, Partition((3, 2), (3,), 3, 0, 1))
    cluster.kill(3)
    assert cluster.leaders("t") == [(-1, "3", 1)]
    session = cluster.brokers[2].session
    assert session is not None
    session.commit([MetadataChange("config", "topic:t", {"election": "unclean"})])
    cluster.run()
    assert cluster.leaders("t") == [(2, "2", 2)]
    assert cluster.election.counters.unclean_elections == 1


def test_an_election_plugin_that_raises_costs_its_own_topics_alone() -> None:
    class Broken:
        def elect(self, candidates: Candidates) -> Elected | None:
            raise ZeroDivisionError("a fault")

    class Plugin:
        @hookimpl
        def logkernel_election(self, name: str) -> object:
            return Broken() if name == "broken" else None

        @hookimpl
        def logkernel_names(self) -> list[tuple[str, str]]:
            return [("election", "broken")]

    cluster = Cluster(plugins=[Plugin()])
    cluster.create("a", "31")
    cluster.create("b", "31")
    cluster.election.active.commit(
        cluster.controller.controller.apply_topic_settings(cluster.election.active.image, "a", {"election": "broken"})
    )
    cluster.kill(3)
    assert cluster.leaders("a") == [(-1, "31", 1)]
    assert cluster.leaders("b") == [(1, "1", 1)]


def test_what_could_not_be_kept_is_decided_again() -> None:
    cluster = Cluster()
    cluster.create("t", "31")
    cluster.keeper.fails = True
    cluster.kill(3)
    assert cluster.leaders("t") == [(3, "31", 0)]
    cluster.keeper.fails = False
    cluster.run(DECIDE_AGAIN_MS + 1)
    assert cluster.leaders("t") == [(1, "1", 1)]


def test_settings_are_heard_by_every_broker_and_by_the_controller() -> None:
    cluster = Cluster()
    session = cluster.brokers[2].session
    assert session is not None
    change = MetadataChange("config", "topic:t", {"retention.ms": "1"})
    session.commit([change])
    cluster.run()
    assert all(change in broker.watched for broker in cluster.brokers.values())
    assert cluster.election.active.image.topic_config("t") == {"retention.ms": "1"}


def test_a_broker_asks_the_controller_for_a_topic_once_at_a_time() -> None:
    cluster = Cluster()
    other = cluster.brokers[3]
    for _ in range(2):
        other.channel.ask_for_topic("auto", cluster.election.active.image)
    assert len(cluster.sent) == 1
    cluster.run()
    assert "auto" in cluster.election.active.image.topics


def test_who_waits_for_orders_is_told_when_this_broker_confirmed_them_or_the_time_is_up() -> None:
    cluster = Cluster()
    told: list[str] = []
    cluster.away.add(1)
    election = cluster.election
    election.active.commit(cluster.controller.controller.create_topic(election.active.image, "t", 3, 1))
    election.active.when_confirmed(lambda: told.append("late"), 500)
    cluster.run(499)
    assert told == []
    cluster.run(1)
    assert told == ["late"]
    election.active.when_confirmed(lambda: told.append("soon"), 500)
    cluster.away.clear()
    cluster.run(200)
    assert told == ["late", "soon"]


def test_an_order_of_an_earlier_life_or_of_a_deposed_controller_is_not_obeyed() -> None:
    cluster = Cluster()
    election = cluster.brokers[2].election
    view, own = election.view, election.view.broker_epoch

    def check(controller: int, epoch: int, broker_epoch: int, connection_id: int = 1) -> None:
        order = UpdateMetadataRequest(controller, epoch, broker_epoch)
        view.check_order(order, RequestContext(connection_id=connection_id))

    with pytest.raises(StaleBrokerEpoch):
        check(1, 1, own - 1)
    with pytest.raises(StaleControllerEpoch):
        check(1, 0, own)
    check(1, 5, own + 1, connection_id=2)
    assert view.controller_epoch == 5
    with pytest.raises(NetworkException):
        check(1, 5, own, connection_id=1)
    check(1, 5, own, connection_id=2)
    check(3, 6, own, connection_id=1)  # another controller may have come over an earlier connection


def test_facts_are_compacted_by_the_controller() -> None:
    cluster = Cluster()
    election = cluster.election
    for _ in range(1_200):
        election.active.commit(cluster.controller.controller.allocate_producer_ids(election.active.image))
    assert cluster.keeper.kept() < 1_000
    assert election.active.image.next_producer_id == 1_200_000
