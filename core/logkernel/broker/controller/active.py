"""One term of a controller: made when the broker is elected and has loaded the facts, ended when it is deposed.

Its parts share the term's `Orders`, the image with it. Nothing of a term acts in another one: `end` closes what commits
and what sends, and whatever is still to run then finds nothing to do.

    live_brokers       whom elections count with
    leader_elections   who leads
    reassignments      where replicas move
    commits            change the cluster; each names the term
    order_sender       tells the brokers
    leader_balance     has preferred leaders lead again, by the clock

It reacts to events and to requests, by having its parts act: when a broker goes, `leader_elections` elects, and
`order_sender` tells the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from logkernel.broker.controller.channel import Send
from logkernel.broker.controller.commits import Commits, Counters
from logkernel.broker.controller.leader_balance import LeaderBalance
from logkernel.broker.controller.leader_elections import LeaderElections
from logkernel.broker.controller.live_brokers import LiveBrokers
from logkernel.broker.controller.newest_connections import NewestConnections
from logkernel.broker.controller.order_sender import OrderSender
from logkernel.broker.controller.reassignments import Reassignments
from logkernel.broker.controller.view import ControllerView
from logkernel.broker.metadata_compaction import MetadataCompaction
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import NO_LEADER, ClusterImage, Partition
from logkernel.controller.orders import Answered, Orders
from logkernel.errors import KafkaError

if TYPE_CHECKING:
    from logkernel.requests.placement import ElectLeadersRequest, ElectLeadersResponse

log = logging.getLogger("logkernel.controller")

HEARD: Final = frozenset({"broker", "config", "acl", "scram", "quota", "token", "rack", "secret", "log_dirs"})
"""Kinds that others than the controller commit."""
ASKED: Final = frozenset({"asked_move", "asked_leader"})
"""Kinds by which administrators ask the controller over the coordination."""


class TermEvents(Protocol):
    """The events of a term, for `ControllerElection`."""

    def on_deposed(self) -> None:
        """A commit was refused: another term is in force. It calls `end` before it returns."""
        ...

    def poll_soon(self) -> None:
        """The coordination may have news."""
        ...

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        """As of `controller_election.Watcher`."""
        ...


class BetweenTerms:
    """What a broker remembers from one of its terms to the next."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.compaction = MetadataCompaction()
        self.proposers = NewestConnections()


class ActiveController:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        controller: Controller,
        view: ControllerView,
        coordination: SharedCoordination,
        orders: Orders,
        send: Send,
        kept: BetweenTerms,
        events: TermEvents,
    ) -> None:
        self._turn = turn
        self._controller = controller
        self._coordination = coordination
        self._orders = orders
        self._counters = kept.counters
        self._events = events
        self.proposers = kept.proposers
        self.brokers = LiveBrokers(orders.image)
        self._commits = commits = Commits(runtime, view, coordination, orders, kept.compaction, kept.counters, self)
        self._elections = LeaderElections(runtime, turn, controller, orders, self.brokers, commits)
        self.reassignments = Reassignments(orders, self.brokers, commits)
        self._sender = OrderSender(runtime, turn, orders, send, self._answered)
        self._balance = LeaderBalance(runtime, self._elections.prefer_where_imbalanced)

    # ------------------------------------------------------------ questions

    @property
    def image(self) -> ClusterImage:
        """All facts."""
        return self._orders.image

    @property
    def eligible(self) -> Mapping[int, int]:
        """See `LiveBrokers.eligible`."""
        return self.brokers.eligible

    def offline_partitions(self) -> int:
        """Partitions without a leader."""
        rows = (row for topic in self.image.topics.values() for row in topic.partitions)
        return sum(row.leader == NO_LEADER for row in rows)

    # ------------------------------------------------------------ begin and end

    def begin(self) -> None:
        """Handle what happened while there was no controller. Raises `KafkaError`."""
        orders = self._orders
        log.info("this broker is the controller: term=%d topics=%d", orders.term, len(self.image.topics))
        self._commits.attempt(self._controller.mark_internal(self.image))
        registered = self._coordination.broker_epochs()
        for node, epoch in self.brokers.epochs.items():
            if node in self.image.nodes and registered.get(node) == epoch:
                orders.broker_came(node, epoch)
        self.check_brokers()
        self._elections.elect_all_leaderless()  # a controller may have died between a topic and its first leaders
        self._forget_leftovers()
        self.reassignments.finish_all()
        self._sender.send_soon()  # also where no broker came or went: what was kept before may not have been ordered
        if self._commits.is_open:
            self._balance.begin()
        self._tell_deciding(elected=True)

    def end(self) -> None:
        """End the term: do nothing more, and answer requests that wait for orders."""
        log.info("this broker is not the controller any more: term=%d", self._orders.term)
        self._commits.close()
        self._sender.close()
        self._balance.end()

    # ------------------------------------------------------------ what brokers and administrators ask

    def commit(self, result: ControllerResult) -> Any:
        """See `Commits.commit`."""
        return self._commits.commit(result)

    def when_confirmed(self, work: Callable[[], None], timeout_ms: int) -> None:
        """See `OrderSender.when_confirmed`."""
        self._sender.when_confirmed(work, timeout_ms)

    def alter_partitions(self, result: ControllerResult) -> None:
        """As `commit`, of in-sync replicas that leaders proposed."""
        names, sizes = [], []
        for change in result.changes:
            topic, _, index = change.key.rpartition(":")
            names.append((topic, int(index)))
            after = Partition.from_row((change.value or {})["row"])
            sizes.append((len(self.image.topics[topic].partitions[int(index)].isr), len(after.isr)))
        self.commit(result)
        self.reassignments.finish(names)
        self._counters.isr_shrinks += sum(after < before for before, after in sizes)
        self._counters.isr_expansions += sum(after > before for before, after in sizes)

    def leave(self, node: int) -> list[tuple[str, int]]:
        """A broker is about to stop; see `LeaderElections.broker_leaves`."""
        self.brokers.leaves(node)
        log.info("broker leaves: node_id=%d", node)
        return self._elections.broker_leaves(node)

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """See `LeaderElections.elect`."""
        return self._elections.elect(request)

    # ------------------------------------------------------------ brokers come and go

    def check_brokers(self) -> None:
        """Compare registered brokers with those of the last election, and elect for the difference."""
        orders = self._orders
        try:
            epochs = self._coordination.broker_epochs() if self._commits.is_open else None
        except KafkaError:
            return
        if epochs is None:
            return
        registered = {node: epoch for node, epoch in epochs.items() if node in orders.image.nodes}
        gone, came = self.brokers.compare(registered)
        for node in gone:
            self.brokers.gone(node)
            orders.broker_gone(node)
        for node in gone:
            log.info("broker gone: node_id=%d", node)
            self._elections.broker_gone(node)
        for node in came:
            epoch = registered[node]
            log.info("broker came: node_id=%d broker_epoch=%d", node, epoch)
            self.brokers.came(node, epoch)
            orders.broker_came(node, epoch)
            self._elections.broker_came(node, epoch)
            self._forget_leftovers()
        if gone or came:
            self.reassignments.finish_all()
            self._sender.send_soon()
        if came:
            self._tell_deciding(elected=False)

    def _tell_deciding(self, *, elected: bool) -> None:
        """At the end of the turn, if the term lasts then."""

        def tell() -> None:
            if self._commits.is_open:
                self._events.on_decides(len(self.brokers.epochs), elected=elected)

        self._turn.call_soon(tell)

    # ------------------------------------------------------------ what others committed

    def on_changes(self, changes: Sequence[MetadataChange]) -> bool:
        """Returns whether brokers may have come or gone: `check_brokers` then, when all was heard."""
        asked = [change for change in changes if change.kind in ASKED]
        if asked:
            self._turn.call_soon(partial(self._take_up, asked))
        heard = [change for change in changes if change.kind in HEARD]
        if not heard:  # this controller committed it itself, and knows
            return False
        self._orders.fold(heard)
        self._elections.configured([change.key for change in heard if change.kind == "config"])
        for change in heard:
            if change.kind == "log_dirs":
                log.warning("a broker asks for its replicas, some were or are offline: node_id=%s", change.key)
                self._orders.replicas_again(int(change.key))
                self._sender.send_soon()
        return any(change.kind == "broker" for change in heard)

    def _take_up(self, asked: Sequence[MetadataChange]) -> None:
        """Do what administrators ask for over the coordination, and say there what came of it."""
        self.reassignments.take_up([change for change in asked if change.kind == "asked_move"])
        self._elections.prefer_as_asked([change for change in asked if change.kind == "asked_leader"])

    # ------------------------------------------------------------ commits.CommitEvents

    def on_committed(self) -> None:
        self._sender.send_soon()
        self._events.poll_soon()

    def on_unsure(self) -> None:
        self._events.poll_soon()

    def on_deposed(self) -> None:
        self._events.on_deposed()

    def decide_again(self) -> None:
        self.brokers.begin_anew(self.image)
        self.check_brokers()

    # ------------------------------------------------------------ answers to orders

    def _answered(self, node: int, answered: Answered) -> None:
        if answered.stale_controller:
            log.warning("broker %d knows of a later controller than term %d", node, self._orders.term)
            self._events.poll_soon()
        if answered.stale_broker:
            self.check_brokers()
        if answered.refused:
            log.warning("orders refused: node_id=%d partitions=%s", node, answered.refused[:10])
        if answered.offline:
            log.warning("replicas offline: node_id=%d partitions=%s", node, answered.offline[:10])
            self._elections.replicas_offline(node, answered.offline)
        if answered.online:
            self._elections.replicas_online(answered.online)
        self._forget_erased(answered.erased)

    def _forget_leftovers(self) -> None:
        erased, self._orders.erased = self._orders.erased, []
        self._forget_erased(erased)

    def _forget_erased(self, topic_ids: Iterable[UUID]) -> None:
        """No broker holds anything of these deleted topics."""
        changes = [MetadataChange("gone", str(topic_id), None) for topic_id in topic_ids]
        if changes:
            self._commits.attempt(ControllerResult(changes, None, Effects()))
