"""The areas of ZooKeeper's tree that a session watches. When a watch fires, the area is read again and reported.

| area | watched by | reported |
|---|---|---|
| controller | every broker | the controller and its term |
| settings, facts, rules, prefixed_rules, tokens | every broker | what the new entries of a folder name |
| topic_settings | every broker | settings of topics that came, and that went |
| features | every broker | finalized levels |
| brokers, broker | the controller | registrations |
| log_dirs | the controller | brokers of which a log directory failed |
| topics, deletions | the controller | nothing: if another process changed them, the controller loads again |
| asked_move, asked_leader | the controller | what administrators ask for by a node that was not there |

A watch only notes its area and wakes the broker. A broker that missed a watch reads all areas again. An area that
cannot be read is logged and read again later; the others do not wait for it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from logkernel.attrs_lite import mutable
from logkernel.contracts import MetadataChange, SessionEvents
from logkernel.errors import KafkaError

from . import entities, fact_nodes, layout, reading, tokens
from .asked import KINDS
from .connection import Connection, Unanswered
from .plan import Delete, Tree
from .settings_reads import SettingsReads

KEPT_MS: Final = 15 * 60 * 1000
"""How long a notification node stays, as in Kafka."""
PURGED: Final = 100
"""Notification nodes that are looked at for removal, each time one comes."""
FIRST_WAIT_S: Final = 1.0
"""Seconds before an area that could not be read is read again; doubled each time."""
LONGEST_WAIT_S: Final = 60.0
READS: Final = 5
"""Attempts to read /controller and /controller_epoch of the same election."""

log = logging.getLogger("logkernel.zookeeper")


@mutable
class OwnTerm:
    """The term of this session as the controller, if it has one."""

    number: int = 0
    """The controller epoch; 0 if it is not the controller."""
    epoch_version: int = 0
    """Version of the node /controller_epoch in that term."""
    tree: Tree | None = None
    """What it has read and written in that term; None if the nodes must be read first."""

    def enter(self, number: int, version: int) -> None:
        self.number, self.epoch_version, self.tree = number, version, None

    def leave(self) -> None:
        self.number, self.tree = 0, None


class WatchedAreas:
    """See the module."""

    def __init__(
        self, zk: Connection, own_term: OwnTerm, wakeup: Callable[[], object], misled: Callable[[object], None]
    ) -> None:
        """`wakeup` is called from kazoo's threads; `misled` with the reason why the controller must load again."""
        self._zk = zk
        self.own_term = own_term
        self._wakeup = wakeup
        self._misled = misled
        self.settings_reads = SettingsReads(zk)
        self._fired: deque[str] = deque()
        self._failed: dict[str, tuple[float, float]] = {}
        """Area that could not be read → (back-off in s, its end in monotonic s)."""
        self._watches = {area: partial(self._noticed, area) for area in _AREAS}
        self._seen = {area: frozenset(zk.children(folder) or ()) for area, folder in _FOLDERS.items()}
        """Area → the notifications that were there when it was read last. Their numbers alone could be made up."""
        self._controller: tuple[int | None, int] | None = None
        """As reported last."""
        self.brokers: dict[int, tuple[int, dict[str, Any]]] = {}
        """Node id → (broker epoch, fact), as the controller read them last."""
        self._configured: set[str] = set()
        self._levels: set[str] = set()
        self._rules: dict[entities.Resource, set[str]] = {}

    # ------------------------------------------------------------ areas to read

    def _noticed(self, area: str, event: Any) -> None:
        self._fired.append(area)
        self._wakeup()

    @property
    def has_fired(self) -> bool:
        return bool(self._fired) or any(due_s <= time.monotonic() for _, due_s in self._failed.values())

    @property
    def knows_controller(self) -> bool:
        """Whether /controller could be read, and was reported."""
        return "controller" not in self._failed

    def begin(self) -> None:
        """There is a new listener."""
        self._controller = None
        self.all_again()

    def all_again(self) -> None:
        self._fired.extend(_EVERY)

    def queues_again(self) -> None:
        """The tree was read: watch what would change it."""
        self._fired.extend(("topics", "log_dirs", *KINDS))

    def poll(self, events: SessionEvents) -> None:
        """Read the areas whose watches fired, and report. Raises `Unanswered`; then all of them must be read again."""
        areas = dict.fromkeys(self._take())
        for area in areas:
            seen = dict(self._seen)
            try:
                _AREAS[area](self, events)
            except Unanswered:
                self._seen = seen
                self._fired.extend(areas)
                raise
            except Exception as error:
                self._seen = seen
                self._read_later(area, error)
            else:
                self._failed.pop(area, None)

    def _read_later(self, area: str, error: Exception) -> None:
        wait_s = min(2 * self._failed[area][0], LONGEST_WAIT_S) if area in self._failed else FIRST_WAIT_S
        unforeseen = None if isinstance(error, KafkaError) else error
        log.error("not read, and tried again: area=%s wait_s=%d error=%s", area, wait_s, error, exc_info=unforeseen)
        self._failed[area] = (wait_s, time.monotonic() + wait_s)
        self._zk.wakeup_in(wait_s)

    def _take(self) -> Iterator[str]:
        while self._fired:
            yield self._fired.popleft()
        now_s = time.monotonic()
        yield from [area for area, (_, due_s) in self._failed.items() if due_s <= now_s]

    # ------------------------------------------------------------ read for `changes`, too

    def read_brokers(self) -> Iterator[MetadataChange]:
        names, node = (self._watches["brokers"], self._watches["broker"]) if self.own_term.number else (None, None)
        self.brokers = reading.brokers(self._zk, names, node)
        for node_id, (_, value) in self.brokers.items():
            yield MetadataChange("broker", str(node_id), value)

    def read_features(self) -> list[MetadataChange]:
        found = reading.features(self._zk.get(layout.FEATURE), self._levels)
        self._levels = {change.key for change in found if change.kind == "feature" and change.value and change.key}
        return found

    def read_settings(self, tree: Tree | None) -> Iterator[MetadataChange]:
        self._configured = set(self._zk.children(layout.TOPIC_CONFIGS) or ())
        left_out = tree.deleting if tree is not None else self._zk.children(layout.DELETE_TOPICS) or ()
        return reading.settings(self._zk, left_out)

    def read_rules(self) -> Iterator[MetadataChange]:
        self._rules = reading.rules(self._zk)
        for keys in self._rules.values():
            yield from (MetadataChange("acl", key, {}) for key in sorted(keys))

    # ------------------------------------------------------------ areas

    def _report_controller(self, events: SessionEvents) -> None:
        node_id, term = self.read_controller()
        if self.own_term.number and term != self.own_term.number:
            self.own_term.leave()
        if (node_id, term) != self._controller:
            self._controller = (node_id, term)
            events.on_controller(node_id, term)

    def read_controller(self) -> tuple[int | None, int]:
        """Return (node id of the controller or None, term), both of one election. A node that is not in Kafka's format
        counts as no controller, and as no new term."""
        known = self._controller[1] if self._controller is not None else self.own_term.number
        node_id, term = None, 0
        for _ in range(READS):
            found = self._zk.get(layout.CONTROLLER, self._watches["controller"])
            if found is None and self._zk.exists(layout.CONTROLLER, self._watches["controller"]) is not None:
                continue
            epoch = self._zk.get(layout.CONTROLLER_EPOCH)
            read = 0 if epoch is None else reading.tolerant(layout.parse_epoch, epoch.data)
            term = known if read is None else read
            node_id = None if found is None else reading.tolerant(layout.parse_controller, found.data)
            if found is None or epoch is None or found.czxid == epoch.mzxid:
                break
        return node_id, term

    def _news(self, area: str) -> list[tuple[str, bytes | None]]:
        """(path, data) of the nodes that came since, in order; old ones are removed."""
        folder, watch = _FOLDERS[area], self._watches[area]
        names = self._zk.children(folder, watch)
        if names is None:
            self._seen[area] = frozenset()
            if self._zk.exists(folder, watch) is not None:
                self._fired.append(area)
            return []
        ordered = sorted(names, key=layout.sequence_number)
        fresh = [name for name in ordered if name not in self._seen[area]]
        nodes = self._zk.get_many([f"{folder}/{name}" for name in fresh])
        self._seen[area] = frozenset(names)
        if not fresh:
            return []
        self._purge(folder, ordered, max((found.ctime for found in nodes if found is not None), default=0))
        return [(f"{folder}/{name}", found.data) for name, found in zip(fresh, nodes, strict=True) if found is not None]

    def _purge(self, folder: str, ordered: Sequence[str], newest_ms: int) -> None:
        """Remove the nodes that were there fifteen minutes before the newest came, by ZooKeeper's clock: some at once,
        as everybody waits meanwhile."""
        for name in ordered[:PURGED]:
            found = self._zk.exists(f"{folder}/{name}")
            if found is not None and newest_ms - found.ctime <= KEPT_MS:
                return
            self._zk.multi([Delete(f"{folder}/{name}")])  # another broker may have been quicker

    def _report_settings(self, events: SessionEvents) -> None:
        told = [reading.tolerant(entities.parse_change, data, path) for path, data in self._news("settings")]
        paths = list(dict.fromkeys(path for path in told if path is not None))
        facts = reading.entity_facts(self._zk, paths)
        self.settings_reads.answer()
        self._report(events, facts)

    def _report_topic_settings(self, events: SessionEvents) -> None:
        """Report the settings of new topics: Kafka writes no notification for these."""
        names = set(self._zk.children(layout.TOPIC_CONFIGS, self._watches["topic_settings"]) or ())
        came, gone = sorted(names - self._configured), sorted(self._configured - names)
        facts = reading.entity_facts(self._zk, [f"topics/{name}" for name in came])
        self._configured = names
        facts = [fact for fact in facts if fact.value is not None]
        self.settings_reads.answer()
        self._report(events, [*facts, *(MetadataChange("config", f"topic:{name}", None) for name in gone)])

    def _report_features(self, events: SessionEvents) -> None:
        if self._zk.exists(layout.FEATURE, self._watches["features"]) is not None:
            self._report(events, self.read_features())

    def _report_facts(self, events: SessionEvents) -> None:
        told = [reading.tolerant(fact_nodes.changed, data, path) for path, data in self._news("facts")]
        names = dict.fromkeys(name for name in told if name is not None)
        nodes = self._zk.get_many([layout.fact_path(*name) for name in names])
        for (kind, key), found in zip(names, nodes, strict=True):
            gone = MetadataChange(kind, key, None)
            fact = gone if found is None else reading.tolerant(fact_nodes.fact, kind, key, found.data)
            if fact is not None:
                self._report(events, [fact])

    def _report_rules(self, events: SessionEvents) -> None:
        news = [*self._news("rules"), *self._news("prefixed_rules")]
        told = [reading.tolerant(entities.changed_resource, data, path) for path, data in news]
        resources = list(dict.fromkeys(resource for resource in told if resource is not None))
        facts: list[MetadataChange] = []
        for resource, keys in reading.rules_of(self._zk, resources).items():
            known = self._rules.get(resource, set())
            self._rules[resource] = keys
            facts.extend(MetadataChange("acl", key, None) for key in sorted(known - keys))
            facts.extend(MetadataChange("acl", key, {}) for key in sorted(keys - known))
        self._report(events, facts)

    def _report_tokens(self, events: SessionEvents) -> None:
        told = [reading.tolerant(tokens.changed, data, path) for path, data in self._news("tokens")]
        ids = list(dict.fromkeys(token_id for token_id in told if token_id is not None))
        self._report(events, reading.delegation_tokens(self._zk, ids) if ids else ())

    def _report_brokers(self, events: SessionEvents) -> None:
        if not self.own_term.number:
            return
        before = self.brokers
        list(self.read_brokers())
        gone = [MetadataChange("broker", str(node), None) for node in before if node not in self.brokers]
        came = [(node, row[1]) for node, row in self.brokers.items() if before.get(node) != row]
        self._report(events, [*gone, *(MetadataChange("broker", str(node), value) for node, value in came)])

    def _report_log_dirs(self, events: SessionEvents) -> None:
        if not self.own_term.number:
            return
        names = self._zk.children(layout.LOG_DIR_EVENTS, self._watches["log_dirs"]) or []
        paths = [f"{layout.LOG_DIR_EVENTS}/{name}" for name in sorted(names, key=layout.sequence_number)]
        brokers: dict[int, None] = {}
        for path, found in zip(paths, self._zk.get_many(paths), strict=True):
            node = None if found is None else reading.tolerant(layout.parse_log_dir_event, found.data, path)
            if node is not None:
                brokers[node] = None
            self._zk.multi([Delete(path)])
        self._report(events, [MetadataChange("log_dirs", str(node), {"event": 1}) for node in brokers])

    def _report_topics(self, events: SessionEvents) -> None:
        if not self.own_term.number:
            return
        names = set(self._zk.children(layout.TOPICS, self._watches["topics"]) or ())
        queue = set(self._zk.children(layout.DELETE_TOPICS, self._watches["deletions"]) or ())
        tree = self.own_term.tree
        if tree is not None and (names != tree.topics.keys() | tree.broken or queue != tree.deleting):
            self._misled("others made or deleted topics")

    def _report_asked(self, events: SessionEvents, kind: str) -> None:
        tree = self.own_term.tree
        if not self.own_term.number or tree is None:
            return
        asked = tree.asked[kind]
        is_there = self._zk.exists(asked.path, self._watches[kind]) is not None
        found = self._zk.get(asked.path) if is_there else None
        data, version = (None, 0) if found is None else (found.data, found.version)
        self._report(events, reading.tolerant(asked.read, data, version, tree.is_moving) or ())

    @staticmethod
    def _report(events: SessionEvents, changes: Sequence[MetadataChange]) -> None:
        if changes:
            events.on_changes(changes)


_FOLDERS: Final = {
    "settings": layout.CONFIG_CHANGES,
    "facts": layout.FACT_CHANGES,
    "rules": entities.ACL_CHANGES,
    "prefixed_rules": entities.PREFIXED_ACL_CHANGES,
    "tokens": tokens.CHANGES,
}
_AREAS: Final[Mapping[str, Callable[[WatchedAreas, SessionEvents], None]]] = {
    "controller": WatchedAreas._report_controller,
    "settings": WatchedAreas._report_settings,
    "topic_settings": WatchedAreas._report_topic_settings,
    "features": WatchedAreas._report_features,
    "facts": WatchedAreas._report_facts,
    "rules": WatchedAreas._report_rules,
    "prefixed_rules": WatchedAreas._report_rules,
    "tokens": WatchedAreas._report_tokens,
    "brokers": WatchedAreas._report_brokers,
    "broker": WatchedAreas._report_brokers,
    "log_dirs": WatchedAreas._report_log_dirs,
    "topics": WatchedAreas._report_topics,
    "deletions": WatchedAreas._report_topics,
    **{kind: partial(WatchedAreas._report_asked, kind=kind) for kind in KINDS},
}
_EVERY: Final = (
    "controller",
    "settings",
    "topic_settings",
    "features",
    "facts",
    "rules",
    "tokens",
    "brokers",
    "topics",
    "log_dirs",
    *KINDS,
)
