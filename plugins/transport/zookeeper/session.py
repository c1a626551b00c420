"""A broker's session with ZooKeeper: `contracts.SharedCoordination`.

    kazoo's threads   note what happened, and ring
    hear              on the broker's thread: looks at the connection, reads anew what watches told of, reports
    commits           on the broker's thread, each answer waited for, and for a bounded time

| session is | when | what it does |
|---|---|---|
| alive | ZooKeeper answers | everything |
| unsure | the connection was lost, a call had no answer, or the nodes are not as expected | refuses to commit |
| ended | ZooKeeper says so, or there was no connection for two thirds of the session timeout | tells `lost` once |

What is unsure comes back when ZooKeeper answers again: all that is watched is read anew first, and reported.

Every broker watches /controller, /feature, and what tells of changed settings, rules and facts. The controller alone
watches brokers, topics and the queue of deletions; where topics or the queue are not as it left them it is unsure for a
moment, and so loads anew.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kazoo.exceptions import BadVersionError

from logkernel.contracts import MetadataChange, SessionEvents
from logkernel.errors import DuplicateBrokerRegistration, KafkaError, KafkaStorageError, StaleControllerEpoch

from . import entities, layout, reading, writing
from .connection import Connection, Unanswered, failed
from .options import Options
from .plan import Check, Create, Delete, Operation, Set, StaleTree, Tree, grouped

ALIVE, UNSURE, ENDED = "alive", "unsure", "ended"
FIRST_LOOK_S: Final = 0.2
"""How long a broker that serves already waits for the connection of a new session, each time that it looks."""
STALE_MS: Final = 2_000
"""ZooKeeper ends sessions so much later than their timeout, at most."""
AGAIN_S: Final = (0.0, 0.5, 2.0)
"""Before a controller that found a wrong tree loads anew: the first time, the second, and from then on."""
CALM_S: Final = 30.0
"""After so long the next time counts as the first."""
KEPT_MS: Final = 15 * 60 * 1000
"""How long a node that tells of a change stays, as in Kafka."""
READS: Final = 5
"""How often /controller is read until it and the epoch are of one election."""
SETTINGS_BY_CONTROLLER: Final = frozenset({"config", "acl", "scram", "quota", "cluster"})

log = logging.getLogger("logkernel.zookeeper")


class Session:
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
        self._ring: Callable[[], object] | None = None
        self._state = ALIVE
        self._told = ALIVE
        """The state that was reported last."""
        self._rung: deque[str] = deque()
        """Areas that watches told of."""
        self._watches = {area: partial(self._noticed, area) for area in _AREAS}
        self._seen: dict[str, int] = {}
        """Folder of changes → the last that was heard."""
        self._controller: tuple[int | None, int] | None = None
        """Who is the controller in which term, as reported last."""
        self._term = 0
        """In which this session is the controller; 0: it is not."""
        self._epoch_version = 0
        """Of /controller_epoch, in that term."""
        self._node_id = -1
        self._tree: Tree | None = None
        self._brokers: dict[int, tuple[int, dict[str, Any]]] = {}
        self._configured: set[str] = set()
        self._levels: set[str] = set()
        self._rules: dict[entities.Resource, set[str]] = {}
        self._not_before_s = 0.0
        self._wrong = 0
        self._wrong_s = 0.0
        self._is_probing = False
        self.zk = zk or Connection(options)
        self.zk.ring = self._ring_up
        if not self.zk.wait(options.connection_timeout_ms / 1000):
            self.zk.close()
            raise KafkaStorageError(
                f"ZooKeeper at {options.address.hosts} gave no session in {options.connection_timeout_ms} ms; start it,"
                f" or correct zookeeper.connect"
            )
        self._session_id = self.zk.session_id
        self._drops = self.zk.drops
        try:
            self._prepare()
        except KafkaError:
            self.zk.close()
            raise

    def renew(self) -> Session:
        """A new session, in place of this one. Raises `KafkaStorageError` where ZooKeeper does not answer at once."""
        self.close(for_good=False)
        if self._next is None:
            self._next = Connection(self._options)
        if not self._next.wait(FIRST_LOOK_S):
            raise KafkaStorageError(f"ZooKeeper at {self._options.address.hosts} does not answer; it is tried again")
        zk, self._next = self._next, None
        return Session(self._options, zk, self._own | {self._session_id})

    def _prepare(self) -> None:
        """The nodes that must be there: the chroot, and what Kafka makes."""
        self.zk.make_folders(layout.PERSISTENT)
        if self.zk.exists(layout.FEATURE) is None:
            self.zk.multi([Create(layout.FEATURE, layout.features_data({}))])
        for area, folder in _FOLDERS.items():
            self._seen[area] = max(map(layout.sequence_number, self.zk.children(folder) or ()), default=-1)

    # ------------------------------------------------------------ kazoo's threads

    def _ring_up(self) -> None:
        ring = self._ring
        if ring is not None:
            ring()

    def _noticed(self, area: str, event: Any) -> None:
        self._rung.append(area)
        self._ring_up()

    # ------------------------------------------------------------ state

    def _check(self) -> None:
        """Raises `KafkaStorageError` where nothing can be asked of ZooKeeper."""
        if self._state == ALIVE and (self.zk.drops != self._drops or not self.zk.is_up):
            self._doubt()
        if self._state == ENDED or self.zk.is_lost:
            raise KafkaStorageError("the session with ZooKeeper is over; begin a new one")
        if self._state == UNSURE:
            raise KafkaStorageError("the connection to ZooKeeper is lost; try again when it is back")

    def _doubt(self, wait_s: float = 0.0) -> None:
        """Be unsure; come back after `wait_s` at the earliest."""
        if self._state == ALIVE:
            self._state = UNSURE
        self._tree = None
        self._not_before_s = time.monotonic() + wait_s
        if wait_s:
            self.zk.ring_in(wait_s)
        self._ring_up()

    def _unanswered(self) -> None:
        """A call had no answer: be unsure until what was sent before has one."""
        self._doubt()
        if self.zk.is_up and not self._is_probing:
            self._is_probing = True
            self.zk.probe(self._probed)

    def _probed(self) -> None:
        self._is_probing = False
        self._ring_up()

    def _misled(self, why: object) -> None:
        """The tree is not what it was taken for: load anew, sooner or later."""
        now = time.monotonic()
        self._wrong = 0 if now - self._wrong_s > CALM_S else self._wrong + 1
        self._wrong_s = now
        wait_s = AGAIN_S[min(self._wrong, len(AGAIN_S) - 1)]
        log.warning("ZooKeeper is not as this controller left it, and is read anew: why=%s", why)
        self._doubt(wait_s)

    def _end(self) -> None:
        self._state = ENDED
        self._term, self._tree = 0, None
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
            tree = reading.read_tree(zk, self._node_id, self._term)
        if wanted("broker"):
            yield from self._read_brokers()
        if tree is not None:
            yield from tree.topic_facts()
            if tree.next_producer_id:
                yield MetadataChange("producer_ids", "", {"next": tree.next_producer_id})
        if wanted("feature", "features_epoch"):
            yield from self._read_features()
        yield from (fact for fact in reading.own_facts(zk, tree) if wanted(fact.kind))
        if wanted("config", "scram", "quota"):
            self._configured = set(zk.children(layout.TOPIC_CONFIGS) or ())
            left_out = tree.deleting if tree is not None else zk.children(layout.DELETE_TOPICS) or ()
            yield from (fact for fact in reading.settings(zk, left_out) if wanted(fact.kind))
        if wanted("acl"):
            self._rules = reading.rules(zk)
            for keys in self._rules.values():
                yield from (MetadataChange("acl", key, {}) for key in sorted(keys))
        if self._term and tree is not None:
            self._tree = tree
            self._rung.extend(("topics", "deletions"))

    def _read_brokers(self) -> Iterator[MetadataChange]:
        names, node = (self._watches["brokers"], self._watches["broker"]) if self._term else (None, None)
        self._brokers = reading.brokers(self.zk, names, node)
        for node_id, (_, value) in self._brokers.items():
            yield MetadataChange("broker", str(node_id), value)

    def _read_features(self) -> list[MetadataChange]:
        found = reading.features(self.zk.get(layout.FEATURE), self._levels)
        self._levels = {change.key for change in found if change.kind == "feature" and change.value and change.key}
        return found

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._check()
        try:
            writing.write(self.zk, changes)
        except Unanswered:
            self._unanswered()
            raise

    def kept(self) -> int:
        """Nodes hold each fact once: nothing is ever to be replaced."""
        return 0

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self._check()
        if not self._term:
            raise StaleControllerEpoch("another broker is the controller, and replaces what is kept")

    def close(self, *, for_good: bool = True) -> None:
        """The session ends at once, as one does that says goodbye."""
        if self._state != ENDED:
            self._end()
        self._told = ENDED
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
        self._term, self._epoch_version, self._tree = term, version, None
        return term

    def resign(self) -> None:
        term, self._term, self._tree = self._term, 0, None
        if term and self._state == ALIVE:
            lead = Check(layout.CONTROLLER_EPOCH, self._epoch_version)
            try:
                self.zk.multi([lead, Delete(layout.CONTROLLER)])
            except Unanswered:
                self._unanswered()

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        """In multis of 100 operations, each led by a check of the epoch. Where one fails, those after it may have been
        carried out, but for the last stage; the session is unsure then, so that the controller loads anew."""
        self._check()
        if not self._term or term != self._term:
            raise StaleControllerEpoch(f"term {term} is over, or was never that of this broker")
        if self._tree is None:
            self._misled("the nodes were not read in this term")
            raise KafkaStorageError("ZooKeeper has to be read anew; try again")
        tree = self._tree
        names = {change.key for change in changes if change.kind == "topic"}
        others = [
            change for change in changes
            if change.kind in SETTINGS_BY_CONTROLLER
            and not (change.kind == "config" and change.key.removeprefix("topic:") in names)
        ]  # fmt: skip
        lead = [Check(layout.CONTROLLER_EPOCH, self._epoch_version)]
        try:
            stages = tree.plan([change for change in changes if change not in others])
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
                self._term, self._tree = 0, None
                raise StaleControllerEpoch("another controller was elected")
            where = next((i for i, result in enumerate(results) if result is error), 0)
            wrong.append(f"{group[min(where, len(group) - 1)].path}: {type(error).__name__}")
        if wrong:
            raise StaleTree(f"ZooKeeper refused changes ({', '.join(wrong[:3])}); the nodes are read anew")

    def broker_epochs(self) -> Mapping[int, int]:
        """Those of the brokers that were reported, on the controller; else those that are registered now."""
        self._check()
        if self._term and self._tree is not None:
            return {node_id: epoch for node_id, (epoch, _) in self._brokers.items()}
        try:
            return {node_id: epoch for node_id, (epoch, _) in reading.brokers(self.zk, None, None).items()}
        except Unanswered:
            self._unanswered()
            raise

    def subscribe(self, events: SessionEvents, ring: Callable[[], object]) -> None:
        """Who is the controller is told first."""
        self._check()
        self._events, self._ring, self._controller = events, ring, None
        self._rung.extend(_EVERY)

    def hear(self) -> None:
        events = self._events
        while events is not None and self._hear(events):
            events = self._events

    def _hear(self, events: SessionEvents) -> bool:
        """Whether there may be more to hear."""
        if self._told == ENDED:
            return False
        if self._state != ENDED and (self.zk.is_lost or self.zk.is_overdue):
            self._end()
        if self._state == ENDED:
            self._told = ENDED
            events.on_session("lost")
            return False
        if self._state == ALIVE and (self.zk.drops != self._drops or not self.zk.is_up):
            self._doubt()
        if self._state == UNSURE and self._told == ALIVE:
            self._told = UNSURE
            events.on_session("unsure")
        if self._state == UNSURE and not self._may_come_back():
            return False
        return self._catch_up(events)

    def _may_come_back(self) -> bool:
        if not self.zk.is_up or self._is_probing or time.monotonic() < self._not_before_s:
            return False
        self._drops = self.zk.drops
        self._rung.extend(_EVERY)
        return True

    def _catch_up(self, events: SessionEvents) -> bool:
        """Read what watches told of."""
        drops = self.zk.drops
        areas = dict.fromkeys(self._take_rung())
        try:
            for area in areas:
                _AREAS[area](self, events)
        except Unanswered:
            self._rung.extend(areas)
            self._unanswered()
            return True
        except KafkaError as error:
            log.error("not heard: areas=%s error=%s", list(areas), error)
        if self._state == UNSURE and not self._rung and drops == self.zk.drops and self._may_stay():
            self._state = self._told = ALIVE
            events.on_session("back")
            return True
        return bool(self._rung)

    def _may_stay(self) -> bool:
        return self.zk.is_up and time.monotonic() >= self._not_before_s

    def _take_rung(self) -> Iterator[str]:
        while self._rung:
            yield self._rung.popleft()

    # ------------------------------------------------------------ areas: read anew, and report

    def _hear_controller(self, events: SessionEvents) -> None:
        node_id, term = self._read_controller()
        if self._term and term != self._term:
            self._term, self._tree = 0, None
        if (node_id, term) != self._controller:
            self._controller = (node_id, term)
            events.on_controller(node_id, term)

    def _read_controller(self) -> tuple[int | None, int]:
        """Who, and in which term: read again until both are of one election, which is one transaction."""
        node_id, term = None, 0
        for _ in range(READS):
            found = self.zk.get(layout.CONTROLLER, self._watches["controller"])
            if found is None and self.zk.exists(layout.CONTROLLER, self._watches["controller"]) is not None:
                continue
            epoch = self.zk.get(layout.CONTROLLER_EPOCH)
            term = 0 if epoch is None else layout.parse_epoch(epoch.data)
            node_id = None if found is None else layout.parse_controller(found.data)
            if found is None or epoch is None or found.czxid == epoch.mzxid:
                break
        return node_id, term

    def _news(self, area: str) -> list[tuple[str, bytes | None]]:
        """(path, data) of the nodes that came since, in order; old ones are removed."""
        folder, watch = _FOLDERS[area], self._watches[area]
        names = self.zk.children(folder, watch)
        if names is None:
            if self.zk.exists(folder, watch) is not None:
                self._rung.append(area)
            return []
        ordered = sorted(names, key=layout.sequence_number)
        fresh = [name for name in ordered if layout.sequence_number(name) > self._seen[area]]
        if not fresh:
            return []
        nodes = self.zk.get_many([f"{folder}/{name}" for name in fresh])
        self._seen[area] = layout.sequence_number(fresh[-1])
        self._purge(folder, ordered, max((found.ctime for found in nodes if found is not None), default=0))
        return [(f"{folder}/{name}", found.data) for name, found in zip(fresh, nodes, strict=True) if found is not None]

    def _purge(self, folder: str, ordered: Sequence[str], newest_ms: int) -> None:
        """Remove the nodes that were there fifteen minutes before the newest came, by ZooKeeper's clock."""
        for name in ordered:
            found = self.zk.exists(f"{folder}/{name}")
            if found is not None and newest_ms - found.ctime <= KEPT_MS:
                return
            self.zk.multi([Delete(f"{folder}/{name}")])  # another broker may have been quicker

    def _hear_settings(self, events: SessionEvents) -> None:
        told = [reading.tolerant(entities.parse_change, data, path) for path, data in self._news("settings")]
        paths = list(dict.fromkeys(path for path in told if path is not None))
        self._report(events, reading.entity_facts(self.zk, paths))

    def _hear_topic_settings(self, events: SessionEvents) -> None:
        """A Kafka tells of no settings that a new topic has."""
        names = set(self.zk.children(layout.TOPIC_CONFIGS, self._watches["topic_settings"]) or ())
        came, gone = sorted(names - self._configured), sorted(self._configured - names)
        self._configured = names
        facts = reading.entity_facts(self.zk, [f"topics/{name}" for name in came])
        facts = [fact for fact in facts if fact.value is not None]
        self._report(events, [*facts, *(MetadataChange("config", f"topic:{name}", None) for name in gone)])

    def _hear_features(self, events: SessionEvents) -> None:
        if self.zk.exists(layout.FEATURE, self._watches["features"]) is not None:
            self._report(events, self._read_features())

    def _hear_facts(self, events: SessionEvents) -> None:
        told = [reading.tolerant(layout.load, data, path) for path, data in self._news("facts")]
        names = dict.fromkeys((str(found.get("kind")), str(found.get("key"))) for found in told if found is not None)
        nodes = self.zk.get_many([layout.fact_path(*name) for name in names])
        for (kind, key), found in zip(names, nodes, strict=True):
            value = None if found is None else layout.load(found.data, layout.fact_path(kind, key))
            self._report(events, [MetadataChange(kind, key, value)])

    def _hear_rules(self, events: SessionEvents) -> None:
        news = [*self._news("rules"), *self._news("prefixed_rules")]
        told = [reading.tolerant(entities.changed_resource, data, path) for path, data in news]
        resources = list(dict.fromkeys(resource for resource in told if resource is not None))
        facts: list[MetadataChange] = []
        for resource, keys in reading.rules_of(self.zk, resources).items():
            known = self._rules.get(resource, set())
            self._rules[resource] = keys
            facts.extend(MetadataChange("acl", key, None) for key in sorted(known - keys))
            facts.extend(MetadataChange("acl", key, {}) for key in sorted(keys - known))
        self._report(events, facts)

    def _hear_brokers(self, events: SessionEvents) -> None:
        if not self._term:
            return
        before = self._brokers
        list(self._read_brokers())
        gone = [MetadataChange("broker", str(node), None) for node in before if node not in self._brokers]
        came = [(node, row[1]) for node, row in self._brokers.items() if before.get(node) != row]
        self._report(events, [*gone, *(MetadataChange("broker", str(node), value) for node, value in came)])

    def _hear_topics(self, events: SessionEvents) -> None:
        if not self._term:
            return
        names = set(self.zk.children(layout.TOPICS, self._watches["topics"]) or ())
        queue = set(self.zk.children(layout.DELETE_TOPICS, self._watches["deletions"]) or ())
        tree = self._tree
        if tree is not None and (names != tree.topics.keys() | tree.broken or queue != tree.deleting):
            self._misled("others made or deleted topics")

    @staticmethod
    def _report(events: SessionEvents, changes: Sequence[MetadataChange]) -> None:
        if changes:
            events.on_changes(changes)


_FOLDERS: Final = {
    "settings": layout.CONFIG_CHANGES,
    "facts": layout.FACT_CHANGES,
    "rules": entities.ACL_CHANGES,
    "prefixed_rules": entities.PREFIXED_ACL_CHANGES,
}
_AREAS: Final[Mapping[str, Callable[[Session, SessionEvents], None]]] = {
    "controller": Session._hear_controller,
    "settings": Session._hear_settings,
    "topic_settings": Session._hear_topic_settings,
    "features": Session._hear_features,
    "facts": Session._hear_facts,
    "rules": Session._hear_rules,
    "prefixed_rules": Session._hear_rules,
    "brokers": Session._hear_brokers,
    "broker": Session._hear_brokers,
    "topics": Session._hear_topics,
    "deletions": Session._hear_topics,
}
_EVERY: Final = ("controller", "settings", "topic_settings", "features", "facts", "rules", "brokers", "topics")
