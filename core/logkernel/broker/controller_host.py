"""A broker's part in the control of its cluster: it hears of the coordination, and is the controller if it is elected.

Every broker whose coordination is shared has one. What it does:

    hears           who is the controller, which settings changed, whether its session lives
    decides         while it is the controller: elections when brokers come, go or leave, in-sync replicas, topics
    sends orders    of `controller.orders`, one request at a time to each broker, itself included

`controller.state` says which of this it does when. Only `commit` changes the cluster: each commit names the term. A
commit refused for its term ends this broker's office. A restarted broker counts as gone, then as started. The last
incarnation that elections counted is stored, so the next controller sees the restart too.

All of it happens on the broker's own thread. What follows from one event is carried out at the end of its turn.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from logkernel.attrs_lite import mutable
from logkernel.broker.controller_channel import Send
from logkernel.broker.leader_balance import LeaderBalance
from logkernel.broker.order_waits import OrderWaits
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn
from logkernel.contracts import Candidates, Elected, ElectionStrategy, MetadataChange, SharedCoordination
from logkernel.controller import elections
from logkernel.controller.compaction import due
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import NO_LEADER, WATCHED, ClusterImage, Partition, incarnation_change
from logkernel.controller.orders import Order, Orders
from logkernel.controller.state import ControllerState, State, ToDo
from logkernel.errors import (
    KafkaError,
    NetworkException,
    NotController,
    PluginError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
)

if TYPE_CHECKING:
    from logkernel.requests.placement import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ElectLeadersRequest,
        ElectLeadersResponse,
    )

log = logging.getLogger("logkernel.controller")

HEARD: Final = frozenset({"broker", "config", "acl", "scram", "quota", "log_dirs"})
"""Kinds that others than the controller commit."""
NO_EPOCH: Final = -1
DECIDE_AGAIN_MS: Final = 1_000
"""After a decision that could not be kept."""


class Watcher(Protocol):
    """The rest of the broker, as it hears of the cluster."""

    def on_watched(self, changes: Sequence[MetadataChange]) -> None:
        """Changes of `WATCHED` kinds were committed."""
        ...

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        """This broker is the controller: since now (`elected`), or brokers came; so many are alive."""
        ...

    def on_session_lost(self) -> None:
        """The session is over: begin a new one, and `join` with it."""
        ...


class _Nobody:
    """Elects nobody: stands in for a strategy that cannot be had."""

    def elect(self, candidates: Candidates) -> Elected | None:
        return None


@mutable
class Counters:
    """Counters since this broker started; read-only."""

    elections: int = 0
    """Partitions that got another leader, or the same in a new epoch."""
    unclean_elections: int = 0
    """Of them, those whose leader was not in sync."""
    isr_shrinks: int = 0
    isr_expansions: int = 0


class ControllerHost:
    """See the module. `join` begins it."""

    def __init__(self, runtime: Runtime, turn: Turn, controller: Controller, send: Send, watcher: Watcher) -> None:
        self._runtime = runtime
        self._turn = turn
        self._controller = controller
        self._send = send
        self._watcher = watcher
        self._state = ControllerState(runtime.node_id)
        self._to_do: deque[ToDo] = deque()
        self._coordination: SharedCoordination | None = None
        self._orders: Orders | None = None
        self._alive: dict[int, int] = {}
        """Node id → broker epoch, as elections counted with it."""
        self._leaving: set[int] = set()
        """Brokers that said that they are about to stop."""
        self._strategies: dict[str, ElectionStrategy] = {}
        self._will_send = self._is_checking = self._will_decide_again = False
        self._back_off: Timer | None = None
        self._balance = LeaderBalance(runtime, self._prefer_again)
        self._waits = OrderWaits(runtime, turn)
        self._proposed_over: dict[tuple[int, str], int] = {}
        """(broker, listener) → the newest connection by which it proposed in-sync replicas to this controller."""
        self._compaction_failed = False
        self._snapshot_size = 0
        self._heard_term = 0
        self.broker_epoch = NO_EPOCH
        """This broker's, since it was announced."""
        self.counters = Counters()

    # ------------------------------------------------------------ questions

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, and decides."""
        return self._state.is_active

    @property
    def state(self) -> State:
        return self._state.state

    @property
    def term(self) -> int:
        """In which this broker was elected last; 0 for never."""
        return self._state.term

    @property
    def controller_id(self) -> int:
        """Who is the controller, as far as this broker heard; -1 for nobody."""
        found = self._state.controller_id
        return NO_LEADER if found is None else found

    @property
    def controller_epoch(self) -> int:
        """The latest term that this broker heard of, from the coordination or by an order."""
        return max(self._state.known_term, self._heard_term)

    @property
    def image(self) -> ClusterImage:
        """All facts, while this broker is the controller. Raises `NotController`."""
        return self._deciding().image

    @property
    def orders(self) -> Orders:
        """What brokers have to be told, while this broker is the controller; read-only. Raises `NotController`."""
        return self._deciding()

    @property
    def eligible(self) -> Mapping[int, int]:
        """Brokers that may join in-sync replicas: node id → broker epoch of the live ones that stay."""
        return {node: epoch for node, epoch in self._alive.items() if node not in self._leaving}

    def offline_partitions(self) -> int:
        """Partitions without a leader. Raises `NotController`."""
        rows = (row for topic in self.image.topics.values() for row in topic.partitions)
        return sum(row.leader == NO_LEADER for row in rows)

    def _deciding(self) -> Orders:
        if self._orders is None or not self._state.is_active:
            raise NotController(
                f"broker {self._runtime.node_id} is not the controller; ask broker {self.controller_id}"
            )
        return self._orders

    def check_broker(self, node: int, broker_epoch: int) -> None:
        """Raises `StaleBrokerEpoch` for a broker that is away, or was started again since it sent that."""
        known = self._alive.get(node)
        if known is None or (broker_epoch != NO_EPOCH and broker_epoch != known):
            raise StaleBrokerEpoch(f"broker {node} is registered with epoch {known}, not {broker_epoch}")

    def check_connection(self, node: int, listener: str, connection_id: int) -> None:
        """Raises `NetworkException` for a proposal over an older connection of a broker than one by which it proposed
        meanwhile. Its leader does not wait for the answer any more, and may have been told that the proposal was
        refused; what it names then is not what that leader waits for."""
        newest = self._proposed_over.get((node, listener), 0)
        if connection_id < newest:
            raise NetworkException(f"broker {node} proposes over a newer connection now")
        self._proposed_over[node, listener] = connection_id

    def check_order(self, broker_epoch: int, term: int) -> None:
        """Whether an order is to be obeyed. Raises `StaleBrokerEpoch` for one that was meant for an earlier life of
        this broker, `StaleControllerEpoch` for one of a controller that was deposed."""
        if broker_epoch < self.broker_epoch:
            raise StaleBrokerEpoch(f"this broker's epoch is {self.broker_epoch}, not {broker_epoch}")
        if term < self.controller_epoch:
            raise StaleControllerEpoch(f"the controller's epoch is {self.controller_epoch}, not {term}")
        self._heard_term = term

    # ------------------------------------------------------------ life

    def join(self, coordination: SharedCoordination, ring: Callable[[], object]) -> None:
        """Begin with a session. `ring` has to bring `hear` about, on the broker's thread."""
        self._coordination = coordination
        coordination.subscribe(self, ring)
        self.hear()

    def announce(self, value: Mapping[str, Any]) -> int:
        """Register this broker; returns its broker epoch."""
        assert self._coordination is not None, "the broker has not joined"
        self.broker_epoch = self._coordination.announce(self._runtime.node_id, value)
        self._turn.call_soon(self.hear)
        return self.broker_epoch

    def close(self) -> None:
        """Decide nothing any more, and let another broker be elected."""
        self._drop()
        if self._coordination is not None:
            coordination, self._coordination = self._coordination, None
            self._state = ControllerState(self._runtime.node_id)
            coordination.resign()

    def hear(self) -> None:
        """Hear what happened, and do what follows."""
        if self._coordination is not None:
            self._coordination.hear()
            self._carry_on()

    def _carry_on(self) -> None:
        while self._to_do:
            self._follow(self._to_do.popleft())
        if self._is_checking:
            self._is_checking = False
            self._check_brokers()

    def _follow(self, doing: ToDo) -> None:
        if doing in (ToDo.DROP, ToDo.CAMPAIGN):
            self._drop()
        try:
            if doing is ToDo.CAMPAIGN and self._state.state is State.CAMPAIGNING:
                self._to_do.append(self._state.on_campaign(self._shared.campaign(self._runtime.node_id)))
            elif doing is ToDo.LOAD and self._state.state is State.LOADING:
                self._load()
        except KafkaError as error:  # the session is unsure, or lost: it tells
            log.warning("coordination not reached: state=%s error=%s", self._state.state.value, error)

    @property
    def _shared(self) -> SharedCoordination:
        assert self._coordination is not None, "the broker has not joined"
        return self._coordination

    # ------------------------------------------------------------ contracts.SessionEvents

    def on_controller(self, node_id: int | None, term: int) -> None:
        before = self.controller_id
        self._to_do.append(self._state.on_controller(node_id, term))
        if self.controller_id != before:
            log.info("controller: node_id=%s term=%d", node_id, term)

    def on_session(self, state: str) -> None:
        log.warning("session with the coordination: state=%s", state)
        self._to_do.append(self._state.on_session(state))
        if state == "lost":
            self.broker_epoch = NO_EPOCH
            self._turn.call_soon(self._watcher.on_session_lost)

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        watched = [change for change in changes if change.kind in WATCHED]
        if watched:
            self._watcher.on_watched(watched)
        orders = self._orders
        if orders is None:
            return
        heard = [change for change in changes if change.kind in HEARD]
        if heard:  # all else this controller committed itself, and knows
            orders.fold(heard)
            self._is_checking = self._is_checking or any(change.kind == "broker" for change in heard)
            self._configured([change.key for change in heard if change.kind == "config"])
            for change in heard:
                if change.kind == "log_dirs":
                    log.warning("a log directory failed: node_id=%s", change.key)
                    orders.replicas_again(int(change.key))
                    self._send_soon()

    # ------------------------------------------------------------ becoming the controller, and being it no longer

    def _load(self) -> None:
        self._shared.hear()  # what earlier controllers committed must not be heard after it was loaded
        if self._state.state is not State.LOADING:
            return
        image = ClusterImage.of(self._shared.changes())
        orders = self._orders = Orders(self._runtime.node_id, self._state.term, image)
        self._alive = _counted_with(image)
        self._state.on_loaded()
        log.info("this broker is the controller: term=%d topics=%d", self._state.term, len(image.topics))
        self._try_commit(self._controller.mark_internal(image))
        epochs = self._shared.broker_epochs()
        for node, epoch in self._alive.items():
            if node in image.nodes and epochs.get(node) == epoch:
                orders.broker_came(node, epoch)
        self._check_brokers()
        self._elect_all_leaderless()  # a controller may have died between a topic and its first leaders
        self._settle_leftovers(orders)
        self._finish_all_moves()
        self._send_soon()  # also where no broker came or went: what was kept before may not have been ordered
        self._balance.begin()
        self._tell_deciding(elected=True)

    def _drop(self) -> None:
        """Forget what a controller knows; whoever waits for it is told."""
        if self._orders is not None:
            log.info("this broker is not the controller any more: term=%d", self._state.term)
        self._orders = None
        self._alive, self._leaving = {}, set()
        self._balance.end()
        if self._back_off is not None:
            self._back_off.cancel()
            self._back_off = None
        self._waits.told()

    def _resign(self) -> None:
        self._to_do.append(self._state.on_deposed())
        self._turn.call_soon(self._carry_on)

    # ------------------------------------------------------------ commits

    def commit(self, result: ControllerResult) -> Any:
        """Commit what the controller decided, and order what follows; returns the response. Raises `NotController`, and
        `KafkaError` if the coordination cannot be reached. The commit may still have been stored; the session is then
        unsure, and everything is reloaded before the next decision."""
        orders = self._deciding()
        if result.changes:
            try:
                self._shared.commit_as_controller(result.changes, orders.term)
            except StaleControllerEpoch as error:
                self._resign()
                raise NotController(f"broker {self._runtime.node_id} was the controller until now") from error
            except KafkaError:
                self._turn.call_soon(self.hear)
                raise
            self._count(result.effects, orders.image)
            orders.fold(result.changes)
            self._compact(orders.image)
            self._send_soon()
            self._turn.call_soon(self.hear)
        return result.response

    def alter_partitions(self, result: ControllerResult) -> None:
        """As `commit`, of in-sync replicas that leaders proposed."""
        image = self.image
        sizes = []
        for change in result.changes:
            topic, _, index = change.key.rpartition(":")
            after = Partition.from_row((change.value or {})["row"])
            sizes.append((len(image.topics[topic].partitions[int(index)].isr), len(after.isr)))
        self.commit(result)
        self._finish_moves(change.key.rpartition(":") for change in result.changes)
        self.counters.isr_shrinks += sum(after < before for before, after in sizes)
        self.counters.isr_expansions += sum(after > before for before, after in sizes)

    def _count(self, effects: Effects, image: ClusterImage) -> None:
        """Before the result is folded."""
        for change in effects.leaders:
            self.counters.elections += 1
            row = image.topics[change.topic].partitions[change.partition]
            if change.leader != NO_LEADER and change.leader not in row.isr:
                self.counters.unclean_elections += 1
                log.warning(
                    "unclean election, records may be lost: topic=%s partition=%d leader=%d isr_was=%s",
                    change.topic, change.partition, change.leader, list(row.isr),
                )  # fmt: skip

    def _try_commit(self, result: ControllerResult) -> None:
        """As `commit`, for what no request waits for: what could not be kept is decided again, of all brokers."""
        try:
            self.commit(result)
        except NotController:
            pass  # another one decides
        except (KafkaError, OSError) as error:
            log.error("not committed, tried again: changes=%d error=%s", len(result.changes), error)
            if not self._will_decide_again:
                self._will_decide_again = True
                self._runtime.after(DECIDE_AGAIN_MS, self._decide_again)

    def _decide_again(self) -> None:
        self._will_decide_again = False
        if self._orders is not None:
            self._alive = _counted_with(self._orders.image)
            self._check_brokers()

    def _settle(self, topic_ids: Iterable[UUID]) -> None:
        """No broker holds anything of these deleted topics."""
        changes = [MetadataChange("gone", str(topic_id), None) for topic_id in topic_ids]
        if changes:
            self._try_commit(ControllerResult(changes, None, Effects()))

    def _settle_leftovers(self, orders: Orders) -> None:
        settled, orders.settled = orders.settled, []
        self._settle(settled)

    def _compact(self, image: ClusterImage) -> None:
        """Replace what is kept by a snapshot, where that is worth it."""
        if self._compaction_failed or not due(self._shared.kept(), max(image.size, self._snapshot_size)):
            return
        snapshot = list(image.snapshot())
        try:
            self._shared.replace(snapshot)
        except (OSError, KafkaError) as error:
            self._compaction_failed = True
            log.error("metadata not compacted: error=%s", error)
        else:
            self._snapshot_size = len(snapshot)

    # ------------------------------------------------------------ brokers come and go

    def _check_brokers(self) -> None:
        """Compare registered brokers with those of the last election, and elect for the difference."""
        orders = self._orders
        if orders is None or not self.is_active:
            return
        try:
            epochs = self._shared.broker_epochs()
        except KafkaError:
            return
        living = {node: epoch for node, epoch in epochs.items() if node in orders.image.nodes}
        gone = [node for node, epoch in self._alive.items() if living.get(node) != epoch]
        came = [node for node, epoch in living.items() if self._alive.get(node) != epoch]
        for node in gone:
            del self._alive[node]
            self._leaving.discard(node)
            orders.broker_gone(node)
        for node in gone:
            self._broker_gone(node, orders)
        for node in came:
            self._broker_came(node, living[node], orders)
        if gone or came:
            self._finish_all_moves()
            self._send_soon()
        if came:
            self._tell_deciding(elected=False)

    def _tell_deciding(self, *, elected: bool) -> None:
        """At the end of the turn, if this broker is the controller then."""

        def tell() -> None:
            if self.is_active:
                self._watcher.on_decides(len(self._alive), elected=elected)

        self._turn.call_soon(tell)

    def _broker_gone(self, node: int, orders: Orders) -> None:
        log.info("broker gone: node_id=%d", node)
        found = self._controller.broker_gone(
            orders.image, node, self._strategy, self._candidates(), offline=self._offline
        )
        if node in orders.image.incarnations:
            found.changes.append(MetadataChange("incarnation", str(node), None))
        self._try_commit(found)

    def _broker_came(self, node: int, broker_epoch: int, orders: Orders) -> None:
        log.info("broker came: node_id=%d broker_epoch=%d", node, broker_epoch)
        self._alive[node] = broker_epoch
        orders.broker_came(node, broker_epoch)
        found = self._controller.broker_started(
            orders.image, node, self._strategy, self._candidates(), offline=self._offline, leaving=self._leaving
        )
        found.changes.append(incarnation_change(node, broker_epoch))
        self._try_commit(found)
        self._settle_leftovers(orders)

    def _candidates(self) -> Collection[int]:
        """Brokers that may lead."""
        return self.eligible.keys()

    def _offline(self, topic: str, index: int) -> Collection[int]:
        return () if self._orders is None else self._orders.offline.get((topic, index), ())

    def _strategy(self, topic: str) -> tuple[ElectionStrategy, bool]:
        """The topic's election strategy, and whether it may be unclean."""
        settings = self._runtime.config.topic_settings(self.image.topic_config(topic))
        name = settings.election
        found = self._strategies.get(name)
        if found is None:
            try:
                found = self._strategies[name] = self._runtime.kernel.election(name)
            except PluginError as error:
                log.error("no leader is elected: topic=%s election=%s error=%s", topic, name, error)
                return _Nobody(), False
        return found, settings.unclean_leader_election_enable

    def _configured(self, keys: Iterable[str]) -> None:
        """Settings changed: a topic without a leader may have one now."""
        for key in keys:
            kind, _, name = key.partition(":")
            if kind == "topic":
                self._turn.call_soon(partial(self._elect_leaderless, name))
            elif kind == "broker":
                self._turn.call_soon(self._elect_all_leaderless)

    def _elect_all_leaderless(self) -> None:
        for topic in [] if self._orders is None else list(self._orders.image.topics):
            self._elect_leaderless(topic)

    def _elect_leaderless(self, topic: str) -> None:
        orders = self._orders
        found = None if orders is None or not self.is_active else orders.image.topics.get(topic)
        if orders is not None and found is not None and any(row.leader == NO_LEADER for row in found.partitions):
            strategy, unclean = self._strategy(topic)
            self._try_commit(
                self._controller.elect(
                    orders.image,
                    topic,
                    strategy,
                    self._candidates(),
                    unclean_allowed=unclean,
                    offline=self._offline,
                    leaving=self._leaving,
                )
            )

    def leave(self, node: int) -> list[tuple[str, int]]:
        """A broker is about to stop: lead its partitions elsewhere; returns those that it leads still, where it is not
        their only replica. Raises `NotController`, `KafkaError`."""
        orders = self._deciding()
        self._leaving.add(node)
        log.info("broker leaves: node_id=%d", node)
        left: list[tuple[str, int]] = self.commit(
            elections.broker_leaves(orders.image, node, self._candidates(), self._offline)
        )
        return left

    # ------------------------------------------------------------ preferred leaders

    def _prefer_again(self, percentage: int) -> None:
        if self.is_active:
            self.prefer(elections.imbalanced(self.image, self._alive, percentage))

    def prefer(self, names: Sequence[tuple[str, int]]) -> None:
        """Have the first replica of each partition lead, where it can."""
        if names:
            self._try_commit(elections.prefer(self.image, names, self._candidates(), self._offline))

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """What an administrator asks for. Raises `NotController`, `KafkaError`."""
        from logkernel.controller import leaders

        response: ElectLeadersResponse = self.commit(
            leaders.elect_in_cluster(request, self.image, self._candidates(), self._offline)
        )
        return response

    # ------------------------------------------------------------ moves

    def alter_reassignments(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        """Begin or cancel moves. Raises `NotController`, `KafkaError`."""
        from logkernel.controller import reassignment

        response: AlterPartitionReassignmentsResponse = self.commit(
            reassignment.alter_reassignments(request, self.image, self._candidates())
        )
        return response

    def _finish_moves(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """End the moves of these partitions whose new replicas are in sync by now."""
        image = self.image
        names = [(topic, int(index)) for topic, _, index in keys]
        if any(row.adding or row.removing for row in (image.topics[topic].partitions[index] for topic, index in names)):
            from logkernel.controller import reassignment

            self._try_commit(reassignment.finish(image, names, self._candidates()))

    def _finish_all_moves(self) -> None:
        if not self.is_active:
            return
        from logkernel.controller import reassignment

        self._try_commit(reassignment.finish(self.image, reassignment.moving(self.image), self._candidates()))

    # ------------------------------------------------------------ orders

    def _send_soon(self) -> None:
        if not self._will_send:
            self._will_send = True
            self._turn.call_soon(self._send_orders)

    def _send_orders(self) -> None:
        self._will_send = False
        orders = self._orders
        if orders is None or not self.is_active:
            return
        now = self._runtime.clock.mono_ms()
        for node in orders.ready(now):
            request = orders.next_request(node, now)
            if request is not None:
                self._send(node, request, partial(self._answered, orders, node, request))
        deadline = orders.next_deadline()
        if self._back_off is not None:
            self._back_off.cancel()
            self._back_off = None
        if deadline is not None:
            self._back_off = self._runtime.timers.at(max(deadline, now + 1), self._send_orders)
        if self._waits and orders.is_told(self._runtime.node_id):
            self._waits.told()

    def _answered(self, orders: Orders, node: int, request: Order, response: Any) -> None:
        if orders is not self._orders:
            return
        answered = orders.on_answer(node, request, response, self._runtime.clock.mono_ms())
        if answered.stale_controller:
            log.warning("broker %d knows of a later controller than term %d", node, orders.term)
            self._turn.call_soon(self.hear)
        if answered.stale_broker:
            self._check_brokers()
        if answered.refused:
            log.warning("orders refused: node_id=%d partitions=%s", node, answered.refused[:10])
        if answered.offline:
            log.warning("replicas offline: node_id=%d partitions=%s", node, answered.offline[:10])
            self._try_commit(
                elections.replicas_offline(
                    orders.image, node, answered.offline, self._strategy, self._candidates(), self._offline
                )
            )
        self._settle(answered.settled)
        self._send_soon()

    def when_told(self, work: Callable[[], None], timeout_ms: int) -> None:
        """Run `work` once this broker itself has confirmed what was ordered until now, or the time is up."""
        self._waits.add(work, timeout_ms)
        self._send_soon()


def _counted_with(image: ClusterImage) -> dict[int, int]:
    """Node id → broker epoch of those that elections counted with, and of those that lead or are in sync without that
    (`NO_EPOCH`): facts that were kept before there was a cluster."""
    found = dict(image.incarnations)
    for topic in image.topics.values():
        for row in topic.partitions:
            for node in (row.leader, *row.isr):
                if node != NO_LEADER:
                    found.setdefault(node, NO_EPOCH)
    return found
