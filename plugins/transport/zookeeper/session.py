"""A broker's session with ZooKeeper: `contracts.SharedCoordination`.

    kazoo's threads   note what happened, and call `wakeup`
    poll              on the broker's thread: looks at the connection, reads anew what watches told of, reports
    commits           on the broker's thread, each answer waited for, and for a bounded time
    settings_reads    asked for, and answered by a later poll

`session_state` tabulates when it is alive, unsure and ended; this drives it. What is unsure comes back when ZooKeeper
answers again: all that is watched is read anew first, and reported. An area that cannot be read is read again later,
and only /controller is waited for.

Every broker watches /controller, /feature, and what tells of changed settings, rules and facts. The controller alone
watches brokers, topics and the queue of deletions; where topics or the queue are not as it left them it is unsure for a
moment, and so loads anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kazoo.exceptions import BadVersionError

from logkernel.contracts import MetadataChange, SessionEvents, SettingsAnswered
from logkernel.errors import DuplicateBrokerRegistration, KafkaError, KafkaStorageError, StaleControllerEpoch

from . import layout, reading, writing
from .connection import Connection, Unanswered, failed
from .options import Options
from .plan import Check, Create, Delete, Operation, Set, StaleTree, grouped
from .session_state import SessionState, State
from .watched import OwnTerm, WatchedAreas

FIRST_LOOK_S: Final = 0.02
"""Seconds that a serving broker waits for the connection of a new session, at each attempt."""
STALE_MS: Final = 2_000
"""ZooKeeper ends a session at most this much later than its timeout."""
SETTINGS_BY_CONTROLLER: Final = frozenset({"config", "acl", "scram", "quota", "token", "cluster"})

log = logging.getLogger("logkernel.zookeeper")


class ZooKeeperSession:
    """See the module."""

    def __init__(self, options: Options, zk: Connection | None = None, own: frozenset[int] = frozenset()) -> None:
        """Begin a session, over `zk` if that is connected already; wait for a new connection for
        zookeeper.connection.timeout.ms at most. `own` are earlier sessions of this process, which are over. Raises
        `KafkaStorageError`."""
        self._options = options
        self._own = own
        self._next: Connection | None = None
        """Of the session that follows this one."""
        self.stale_ms = options.session_timeout_ms + STALE_MS
        self._events: SessionEvents | None = None
        self._wakeup: Callable[[], object] | None = None
        self._state = SessionState()
        self._own_term = OwnTerm()
        self._node_id = -1
        self._is_probing = False
        self.zk = zk or Connection(options)
        if zk is not None:
            zk.hurry()
        self.zk.wakeup = self._wake_up
        if not self.zk.wait(options.connection_timeout_ms / 1000):
            refusal = self.zk.refusal()
            self.zk.close()
            if refusal is not None:
                raise KafkaStorageError(f"ZooKeeper gave no session: {refusal}")
            raise KafkaStorageError(
                f"ZooKeeper at {options.address.hosts} gave no session in {options.connection_timeout_ms} ms; start it,"
                f" or correct zookeeper.connect"
            )
        self._session_id = self.zk.session_id
        self._drops = self.zk.drops
        self._has_nodes = False
        try:
            self._watched = WatchedAreas(self.zk, self._own_term, self._wake_up, self._misled)
        except KafkaError:
            self.zk.close()
            raise

    def renew(self) -> ZooKeeperSession:
        """A new session, in place of this one. Raises `KafkaStorageError` where ZooKeeper does not answer at once."""
        self.close(for_good=False)
        if self._next is None:
            self._next = Connection(self._options)
        if not self._next.wait(FIRST_LOOK_S):
            refusal = self._next.refusal(certain=True) or f"ZooKeeper at {self._options.address.hosts} does not answer"
            if self._next.is_lost:  # it tries no more
                self._next.close()
                self._next = None
            raise KafkaStorageError(f"{refusal}; it is tried again")
        zk, self._next = self._next, None
        return ZooKeeperSession(self._options, zk, self._own | {self._session_id})

    def _make_nodes(self) -> None:
        """Make the nodes that must be there before anything is watched or written: the chroot, and what Kafka makes."""
        if self._has_nodes:
            return
        self.zk.make_folders(layout.PERSISTENT)
        if self.zk.exists(layout.FEATURE) is None:
            self.zk.multi([Create(layout.FEATURE, layout.features_data({}))])
        if self._options.set_acl and (found := self.zk.open_nodes((*layout.PERSISTENT, *layout.SENSITIVE))):
            log.warning(
                "zookeeper.set.acl=true, but anybody may read or change nodes that were made without it: %s; give these"
                " and what is below them an ACL (Kafka's zookeeper-security-migration does, but for /logkernel)",
                ", ".join(dict.fromkeys(found)),
            )
        self._has_nodes = True

    def _wake_up(self) -> None:
        """From kazoo's threads, too."""
        wakeup = self._wakeup
        if wakeup is not None:
            wakeup()

    # ------------------------------------------------------------ state

    def _check(self) -> None:
        """Raises `KafkaStorageError` where nothing can be asked of ZooKeeper."""
        self._look()
        if self._is(State.ENDED) or self.zk.is_lost:
            raise KafkaStorageError("the session with ZooKeeper is over; begin a new one")
        if self._is(State.UNSURE):
            raise KafkaStorageError("the connection to ZooKeeper is lost; try again when it is back")

    def _is(self, state: State) -> bool:
        return self._state.state is state

    def _look(self) -> None:
        """Be unsure where the connection was lost."""
        if self._is(State.ALIVE) and (self.zk.drops != self._drops or not self.zk.is_up):
            self._doubt()

    def _doubt(self) -> None:
        self._state.doubt(time.monotonic())
        self._own_term.tree = None
        self._wake_up()

    def _unanswered(self) -> None:
        """A call had no answer: be unsure until what was sent before has one."""
        self._doubt()
        if self.zk.is_up and not self._is_probing:
            self._is_probing = True
            self.zk.probe(self._probed)

    def _probed(self) -> None:
        self._is_probing = False
        self._wake_up()

    def _misled(self, why: object) -> None:
        """The tree was changed by another process: load again, after a back-off."""
        log.warning("ZooKeeper's nodes were changed by another process; they are read again: why=%s", why)
        wait_s = self._state.misled(time.monotonic())
        self._own_term.tree = None
        if wait_s:
            self.zk.wakeup_in(wait_s)
        self._wake_up()

    def _end(self) -> None:
        self._state.end()
        self._own_term.leave()
        self.zk.close()

    # ------------------------------------------------------------ contracts.Coordination

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        """All facts, or those of some kinds. What the controller reads here it takes for the state of its term."""
        self._check()
        try:
            return iter(list(self._read(kinds)))
        except Unanswered:
            self._unanswered()
            raise
        except KafkaError as error:
            self._misled(error)
            raise

    def _read(self, kinds: Collection[str] | None) -> Iterator[MetadataChange]:
        def wanted(*names: str) -> bool:
            return kinds is None or any(name in kinds for name in names)

        zk = self.zk
        if wanted("cluster"):
            yield from reading.cluster(zk)
        tree = None
        if wanted("topic", "partition", "producer_ids"):
            tree = reading.read_tree(zk, self._node_id, self._own_term.number)
        if wanted("broker"):
            yield from self._watched.read_brokers()
        if tree is not None:
            yield from tree.topic_facts()
            if tree.next_producer_id:
                yield MetadataChange("producer_ids", "", {"next": tree.next_producer_id})
        if wanted("feature", "features_epoch"):
            yield from self._watched.read_features()
        yield from (fact for fact in reading.own_facts(zk, tree) if wanted(fact.kind))
        if wanted("config", "scram", "quota"):
            yield from (fact for fact in self._watched.read_settings(tree) if wanted(fact.kind))
        if wanted("acl"):
            yield from self._watched.read_rules()
        if wanted("token"):
            yield from reading.delegation_tokens(zk)
        if self._own_term.number and tree is not None:
            self._own_term.tree = tree
            self._watched.queues_again()

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._check()
        try:
            self._make_nodes()
            writing.write(self.zk, changes)
        except Unanswered:
            self._unanswered()
            raise

    def kept(self) -> int:
        """Nodes hold each fact once: nothing is ever to be replaced."""
        return 0

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self._check()
        if not self._own_term.number:
            raise StaleControllerEpoch("another broker is the controller, and replaces what is kept")

    def close(self, *, for_good: bool = True) -> None:
        """The session ends at once, as one does that says goodbye."""
        if not self._is(State.ENDED):
            self._end()
        self._state.mute()
        self._events = None
        if for_good and self._next is not None:
            self._next.close()
            self._next = None

    # ------------------------------------------------------------ contracts.SharedCoordination

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        """The broker epoch is the transaction that made the node. Raises `DuplicateBrokerRegistration` where a session
        of another process has that id; one that was killed has it until its session timeout."""
        self._check()
        path, data = layout.broker_path(node_id), self._broker_data(value)
        self._node_id = node_id
        try:
            self._make_nodes()
            for _ in range(writing.ATTEMPTS):
                found = self.zk.exists(path)
                if found is not None and found.owner != self._session_id and found.owner not in self._own:
                    raise DuplicateBrokerRegistration(
                        f"broker {node_id} is registered in ZooKeeper by another session; give this one another node.id"
                    )
                room = [] if found is None else [Delete(path, found.version)]
                results = self.zk.multi([*room, Create(path, None, ephemeral=True), Set(path, data, 0)])
                error = failed(results)
                if error is None:
                    return int(results[-1].czxid)
                if not isinstance(error, writing.CONFLICTS):
                    raise KafkaStorageError(f"ZooKeeper refused to register broker {node_id} ({error!r})")
        except Unanswered:
            self._unanswered()
            raise
        raise KafkaStorageError(
            f"broker {node_id} could not be registered, as its node changes all the time; try again"
        )

    def _broker_data(self, value: Mapping[str, Any]) -> bytes:
        return layout.broker_data(value, int(time.time() * 1000))

    def campaign(self, node_id: int) -> int | None:
        self._check()
        self._node_id = node_id
        try:
            self._make_nodes()
            return self._campaign(node_id)
        except Unanswered:
            self._unanswered()
            raise

    def _campaign(self, node_id: int) -> int | None:
        for _ in range(writing.ATTEMPTS):
            epoch = self.zk.get(layout.CONTROLLER_EPOCH)
            if epoch is None:
                self.zk.multi([Create(layout.CONTROLLER_EPOCH, b"0")])
                continue
            term = layout.parse_epoch(epoch.data)
            found = self.zk.exists(layout.CONTROLLER)
            if found is not None and found.owner == self._session_id and found.czxid == epoch.mzxid:
                return self._elected(term, epoch.version)  # an earlier answer was lost
            if found is not None and found.owner not in self._own:
                return None
            data = layout.controller_data(node_id, int(time.time() * 1000))
            room: list[Operation] = [] if found is None else [Delete(layout.CONTROLLER, found.version)]
            room += [
                Create(layout.CONTROLLER, data, ephemeral=True),
                Set(layout.CONTROLLER_EPOCH, str(term + 1).encode(), epoch.version),
            ]
            error = failed(self.zk.multi(room))
            if error is None:
                return self._elected(term + 1, epoch.version + 1)
            if not isinstance(error, writing.CONFLICTS):
                raise KafkaStorageError(f"ZooKeeper refused an election ({error!r}); its log may say why")
        return None

    def _elected(self, term: int, version: int) -> int:
        self._own_term.enter(term, version)
        return term

    def resign(self) -> None:
        term = self._own_term.number
        self._own_term.leave()
        if term and self._is(State.ALIVE):
            lead = Check(layout.CONTROLLER_EPOCH, self._own_term.epoch_version)
            try:
                self.zk.multi([lead, Delete(layout.CONTROLLER)])
            except Unanswered:
                self._unanswered()

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        """In multis of 100 operations, each led by a check of the epoch. Where one fails, those after it may have been
        carried out, but for the last stage; the session is unsure then, so that the controller loads again."""
        self._check()
        own_term = self._own_term
        if not own_term.number or term != own_term.number:
            raise StaleControllerEpoch(f"term {term} is over, or was never that of this broker")
        if own_term.tree is None:
            self._misled("the nodes were not read in this term")
            raise KafkaStorageError("the nodes in ZooKeeper must be read again; retry")
        names = {change.key for change in changes if change.kind == "topic"}
        others = [
            change for change in changes
            if change.kind in SETTINGS_BY_CONTROLLER
            and not (change.kind == "config" and change.key.removeprefix("topic:") in names)
        ]  # fmt: skip
        lead = [Check(layout.CONTROLLER_EPOCH, own_term.epoch_version)]
        try:
            stages = own_term.tree.plan([change for change in changes if change not in others])
            for stage in stages:
                self._carry_out(list(grouped(stage, lead)))
            if others:
                writing.write(self.zk, others)
        except Unanswered:
            self._unanswered()
            raise
        except StaleControllerEpoch:
            raise
        except KafkaError as error:
            self._misled(error)
            raise

    def _carry_out(self, groups: Sequence[Sequence[Operation]]) -> None:
        wrong: list[str] = []
        for group, results in zip(groups, self.zk.multis(groups), strict=True):
            error = failed(results)
            if error is None:
                continue
            if results and isinstance(results[0], BadVersionError):
                self._own_term.leave()
                raise StaleControllerEpoch("another controller was elected")
            where = next((i for i, result in enumerate(results) if result is error), 0)
            wrong.append(f"{group[min(where, len(group) - 1)].path}: {type(error).__name__}")
        if wrong:
            raise StaleTree(f"ZooKeeper refused changes ({', '.join(wrong[:3])}); the nodes are read anew")

    def broker_epochs(self) -> Mapping[int, int]:
        """Those of the brokers that were reported, on the controller; else those that are registered now."""
        self._check()
        if self._own_term.number and self._own_term.tree is not None:
            return {node_id: epoch for node_id, (epoch, _) in self._watched.brokers.items()}
        try:
            return {node_id: epoch for node_id, (epoch, _) in reading.brokers(self.zk, None, None).items()}
        except Unanswered:
            self._unanswered()
            raise

    def read_controller(self) -> tuple[int | None, int]:
        self._check()
        try:
            return self._watched.read_controller()
        except Unanswered:
            self._unanswered()
            raise

    def partition_count(self, topic: str) -> int | None:
        """A topic that is queued for deletion counts as deleted. One whose node is not as Kafka writes it is no
        answer."""
        self._check()
        path = layout.topic_path(topic)
        try:
            self.zk.sync(path)
            found, deleting = self.zk.get_many([path, f"{layout.DELETE_TOPICS}/{topic}"])
        except Unanswered:
            self._unanswered()
            raise
        return None if found is None or deleting is not None else len(layout.TopicNode.parse(found.data, path).replicas)

    def read_topic_settings(self, topics: Collection[str], answered: SettingsAnswered) -> None:
        self._check()
        self._watched.settings_reads.ask(topics, answered)

    def subscribe(self, events: SessionEvents, wakeup: Callable[[], object]) -> None:
        """Subscribe; the first notification names the controller."""
        self._check()
        try:
            self._make_nodes()
        except Unanswered:
            self._unanswered()
            raise
        self._events, self._wakeup = events, wakeup
        self._watched.begin()
        self.zk.hurry()

    def poll(self) -> None:
        events = self._events
        while events is not None and self._poll(events):
            events = self._events

    def _poll(self, events: SessionEvents) -> bool:
        """Whether `poll` may have more to report."""
        if self._state.has_reported_end:
            return False
        if not self._is(State.ENDED) and (self.zk.is_lost or self.zk.is_overdue):
            self._end()
        if not self._is(State.ENDED):
            self._watched.settings_reads.answer()
        self._look()
        report = self._state.report()
        if report is not None:
            events.on_session(report)
        if self._is(State.ENDED) or (self._is(State.UNSURE) and not self._may_come_back()):
            return False
        return self._catch_up(events)

    def _may_come_back(self) -> bool:
        if self._is_probing or not self._may_stay():
            return False
        self._drops = self.zk.drops
        self._watched.all_again()
        return True

    def _catch_up(self, events: SessionEvents) -> bool:
        """Read what watches told of."""
        drops, was_unsure = self.zk.drops, self._is(State.UNSURE)
        try:
            self._watched.poll(events)
        except Unanswered:
            self._unanswered()
            return True
        if self._is(State.UNSURE) and not was_unsure:
            return True
        is_current = not self._watched.has_fired and self._watched.knows_controller
        if was_unsure and self._is(State.UNSURE) and is_current and drops == self.zk.drops and self._may_stay():
            events.on_session(self._state.trust())
            return True
        return self._watched.has_fired

    def _may_stay(self) -> bool:
        return self.zk.is_up and self._state.may_be_trusted(time.monotonic())
