"""What a controller writes: from changes to operations on nodes. Pure.

A `Tree` is what the controller read when it took over, and wrote since. `Tree.plan` turns changes into operations, and
notes what they lead to: each operation on a partition's state names the version that it expects, and that version is
the partition's epoch. Where the tree and the changes do not fit, or an operation fails, the tree is wrong, and the
controller loads anew.

    change                 operations
    topic, new             config node, topic node, nodes and state of each partition
    topic, other rows      topic node if replicas are others, state of each row whose partition epoch grew
    topic, None            an entry in /admin/delete_topics; its nodes stay until no broker holds it any more
    gone, None             all nodes of the topic go, its config and the entry last
    topic, new, while its  the nodes of the old topic go at once, and what was in the queue becomes a fact of our own;
    name is in the queue   the nodes of the new one follow
    partition              as a topic's row
    producer_ids           the block of ids
    feature                /feature
    config of a topic      its node, and an entry in /config/changes
    asked_…, None          the row goes from the node by which it was asked for; that of a move when the move is over
    all else               a fact of our own

Operations go in stages: what is in a stage is sent when the stages before it are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import evolve, field, mutable
from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError, PolicyViolation

from .asked import KINDS, Asked
from .entities import change_data, config_data
from .layout import (
    CONFIG_CHANGES,
    DELETE_TOPICS,
    FACTS,
    FEATURE,
    MAX_NODE_BYTES,
    PRODUCER_IDS,
    TOPIC_CONFIGS,
    StateNode,
    TopicNode,
    dump,
    fact_path,
    features_data,
    partitions_path,
    producer_ids_data,
    state_path,
    topic_path,
)

MAX_OPERATIONS: Final = 100
"""Of one multi, with the check that leads it."""
MAX_MULTI_BYTES: Final = MAX_NODE_BYTES // 2
"""Of the data of one multi; a larger node goes alone."""
ANY_VERSION: Final = -1
NO_STATE: Final = -1
"""The partition epoch of a partition whose state was never written."""
LAST: Final = frozenset({"incarnation"})
"""Kinds of facts that say that all other changes of a commit were made."""


class Create(NamedTuple):
    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequence: bool = False


class Set(NamedTuple):
    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Operation = Create | Set | Delete | Check


class StaleTree(KafkaStorageError):
    """The tree is not what it was taken for."""


def size_of(operations: Iterable[Operation]) -> int:
    """About how many bytes they take."""
    return sum(len(each.path) + len(getattr(each, "data", None) or b"") for each in operations)


def check_sizes(operations: Iterable[Operation]) -> None:
    """Raises `PolicyViolation` for a node that ZooKeeper would not take."""
    for operation in operations:
        if size_of([operation]) >= MAX_NODE_BYTES - 1_000:
            raise PolicyViolation(
                f"{operation.path} would have {size_of([operation])} bytes, and ZooKeeper takes {MAX_NODE_BYTES}"
                f" (jute.maxbuffer); ask for fewer partitions or shorter settings"
            )


def grouped(operations: Iterable[Operation], lead: Sequence[Operation] = ()) -> Iterator[list[Operation]]:
    """Multis, each with `lead` before it. Raises `PolicyViolation` for a node that ZooKeeper would not take."""
    group, size = list(lead), 0
    for operation in operations:
        check_sizes([operation])
        length = size_of([operation])
        if len(group) > len(lead) and (len(group) == MAX_OPERATIONS or size + length > MAX_MULTI_BYTES):
            yield group
            group, size = list(lead), 0
        group.append(operation)
        size += length
    if len(group) > len(lead):
        yield group


@mutable
class StateShadow:
    """What is known of a partition's state node."""

    node: StateNode | None = None
    """None where it was never written."""
    version: int = NO_STATE
    has_folder: bool = True
    """Whether the node above it is there."""


@mutable
class TopicShadow:
    node: TopicNode
    version: int
    states: list[StateShadow]
    has_folder: bool = True
    """Whether the node above its partitions is there."""


@mutable
class Tree:
    """See the module."""

    node_id: int
    term: int
    topics: dict[str, TopicShadow] = field(factory=dict)
    broken: set[str] = field(factory=set)
    """Topics whose node is not as Kafka writes it; they are left alone."""
    deleting: set[str] = field(factory=set)
    """Names in /admin/delete_topics."""
    configured: set[str] = field(factory=set)
    """Topics that have a config node."""
    next_producer_id: int = 0
    producer_ids_version: int = 0
    features: dict[str, int] = field(factory=dict)
    feature_version: int = 0
    facts: set[tuple[str, str]] = field(factory=set)
    """(kind, key) of the facts of our own."""
    kinds: set[str] = field(factory=set)
    """Of the facts of our own, those whose folder is there."""
    asked: dict[str, Asked] = field(factory=lambda: {kind: Asked(kind) for kind in KINDS})

    # ------------------------------------------------------------ facts

    def topic_facts(self) -> Iterator[MetadataChange]:
        """Topics, and those that wait for their deletion as deleted ones."""
        for name, shadow in self.topics.items():
            rows = [self._row(shadow, index) for index in range(len(shadow.states))]
            assert shadow.node.id is not None, "a topic without an id was not given one"
            yield MetadataChange("topic", name, {"id": str(shadow.node.id), "internal": False, "partitions": rows})
            if name in self.deleting:
                yield MetadataChange("topic", name, None)

    @staticmethod
    def _row(shadow: TopicShadow, index: int) -> list[Any]:
        """A partition that never had a state has no leader yet, and all replicas are in sync."""
        replicas, state = shadow.node.replicas[index], shadow.states[index]
        if state.node is None:
            row: list[Any] = [list(replicas), list(replicas), -1, -1, NO_STATE]
        else:
            isr = [node for node in state.node.isr if node in replicas]
            row = [list(replicas), isr, state.node.leader, state.node.leader_epoch, state.version]
        adding, removing = shadow.node.adding.get(index, ()), shadow.node.removing.get(index, ())
        return [*row, list(adding), list(removing)] if adding or removing else row

    # ------------------------------------------------------------ changes

    def plan(self, changes: Sequence[MetadataChange]) -> list[list[Operation]]:
        """The stages; empty ones are left out. The tree is as if they had been carried out: load anew where they were
        not. Raises `StaleTree`."""
        first: list[Operation] = []
        last: list[Operation] = []
        configs = {change.key: change for change in changes if change.kind == "config"}
        for change in changes:
            if change.kind == "topic":
                first.extend(self._topic(change, configs))
            elif change.kind == "partition":
                name, _, index = change.key.rpartition(":")
                shadow = self.topics.get(name)
                if shadow is None or int(index) >= len(shadow.states):
                    raise StaleTree(f"there is no partition {name}-{index} in ZooKeeper; its nodes were deleted")
                first.extend(self._rows(name, shadow, {int(index): (change.value or {})["row"]}))
            elif change.kind == "gone":
                first.extend(self._gone(change))
            elif change.kind == "producer_ids":
                first.append(self._producer_ids((change.value or {})["next"]))
            elif change.kind == "feature":
                first.append(self._feature(change))
            elif change.kind in ("config", "features_epoch") or change.kind in KINDS:
                continue  # with its topic; the version of /feature; below
            elif change.kind in LAST:
                last.extend(self.fact(change))
            else:
                first.extend(self.fact(change))
        last.extend(self._take_out_asked(changes))
        return [stage for stage in (first, last) if stage]

    def is_moving(self, key: str) -> bool:
        """Whether replicas of partition topic:index are being added or removed."""
        name, _, index = key.rpartition(":")
        shadow = self.topics.get(name)
        return shadow is not None and bool(shadow.node.adding.get(int(index)) or shadow.node.removing.get(int(index)))

    def _take_out_asked(self, changes: Sequence[MetadataChange]) -> Iterator[Operation]:
        for kind, asked in self.asked.items():
            answered = {change.key for change in changes if change.kind == kind}
            if asked.take_out(answered, self.is_moving):
                if asked.rows:
                    yield Set(asked.path, asked.data(), asked.version)
                    asked.version += 1
                else:
                    yield Delete(asked.path, asked.version)

    def _topic(self, change: MetadataChange, configs: Mapping[str, MetadataChange]) -> Iterator[Operation]:
        name, value = change.key, change.value
        shadow = self.topics.get(name)
        if value is None:
            if shadow is not None and name not in self.deleting:
                self.deleting.add(name)
                yield Create(f"{DELETE_TOPICS}/{name}")
            return
        if shadow is not None and name in self.deleting:
            yield from self._make_room(name, shadow)
            shadow = None
        if shadow is None:
            yield from self._create(name, value, configs.get(f"topic:{name}"))
            return
        if shadow.node.id != UUID(value["id"]):
            raise StaleTree(f"topic {name} has the id {shadow.node.id} in ZooKeeper, not {value['id']}")
        yield from self._rows(name, shadow, dict(enumerate(value["partitions"])))

    def _create(self, name: str, value: Mapping[str, Any], config: MetadataChange | None) -> Iterator[Operation]:
        settings = {} if config is None else dict(config.value or {})
        if name in self.configured:
            yield Set(f"{TOPIC_CONFIGS}/{name}", config_data(settings))
        else:
            yield Create(f"{TOPIC_CONFIGS}/{name}", config_data(settings))
            self.configured.add(name)
        rows = dict(enumerate(value["partitions"]))
        node = TopicNode(UUID(value["id"]), ())
        node = _with_rows(node, rows)
        shadow = self.topics[name] = TopicShadow(node, 0, [], has_folder=False)
        yield Create(topic_path(name), node.data())
        yield from self._rows(name, shadow, rows)

    def _rows(self, name: str, shadow: TopicShadow, rows: Mapping[int, Sequence[Any]]) -> Iterator[Operation]:
        node = _with_rows(shadow.node, rows)
        if node != shadow.node:
            yield Set(topic_path(name), node.data(), shadow.version)
            shadow.node, shadow.version = node, shadow.version + 1
        while len(shadow.states) < len(node.replicas):
            shadow.states.append(StateShadow(has_folder=False))
        for index, row in rows.items():
            yield from self._state(name, shadow, index, row)

    def _state(self, name: str, shadow: TopicShadow, index: int, row: Sequence[Any]) -> Iterator[Operation]:
        state, epoch = shadow.states[index], row[4]
        if epoch == state.version:
            return
        if epoch != state.version + 1:
            raise StaleTree(
                f"{name}-{index} has partition epoch {state.version} in ZooKeeper, and {epoch} is to follow"
            )
        path = state_path(name, index)
        if state.node is None:
            if not shadow.has_folder:
                yield Create(partitions_path(name))
                shadow.has_folder = True
            if not state.has_folder:
                yield Create(f"{partitions_path(name)}/{index}")
                state.has_folder = True
            state.node = StateNode(row[2], row[3], tuple(row[1]), self.term)
            yield Create(path, state.node.data())
        else:
            state.node = state.node.with_row(row, self.term)
            yield Set(path, state.node.data(), state.version)
        state.version = epoch

    # ------------------------------------------------------------ deletion

    def _gone(self, change: MetadataChange) -> Iterator[Operation]:
        if change.value is None and ("gone", change.key) not in self.facts:
            name = next((each for each in self.deleting if self._has_id(each, change.key)), None)
            if name is not None:
                yield from self._remove(name)
            return
        yield from self.fact(change)

    def _has_id(self, name: str, topic_id: str) -> bool:
        shadow = self.topics.get(name)
        return shadow is not None and shadow.node.id == UUID(topic_id)

    def _remove(self, name: str) -> Iterator[Operation]:
        yield from self._remove_nodes(name, self.topics.pop(name))
        if name in self.configured:
            self.configured.discard(name)
            yield Delete(f"{TOPIC_CONFIGS}/{name}")
        self.deleting.discard(name)
        yield Delete(f"{DELETE_TOPICS}/{name}")

    def _make_room(self, name: str, shadow: TopicShadow) -> Iterator[Operation]:
        replicas = [list(nodes) for nodes in shadow.node.replicas]
        yield from self.fact(MetadataChange("gone", str(shadow.node.id), {"topic": name, "replicas": replicas}))
        yield from self._remove(name)

    @staticmethod
    def _remove_nodes(name: str, shadow: TopicShadow) -> Iterator[Operation]:
        for index, state in enumerate(shadow.states):
            if state.node is not None:
                yield Delete(state_path(name, index))
            if state.has_folder:
                yield Delete(f"{partitions_path(name)}/{index}")
        if shadow.has_folder:
            yield Delete(partitions_path(name))
        yield Delete(topic_path(name))

    # ------------------------------------------------------------ the rest

    def _producer_ids(self, end: int) -> Operation:
        data = producer_ids_data(self.node_id, self.next_producer_id, end)
        version, self.producer_ids_version = self.producer_ids_version, self.producer_ids_version + 1
        self.next_producer_id = end
        return Set(PRODUCER_IDS, data, version)

    def _feature(self, change: MetadataChange) -> Operation:
        self.features.pop(change.key, None)
        if change.value is not None:
            self.features[change.key] = change.value["level"]
        version, self.feature_version = self.feature_version, self.feature_version + 1
        return Set(FEATURE, features_data(self.features), version)

    def fact(self, change: MetadataChange) -> Iterator[Operation]:
        """Keep a fact that Kafka has no node for."""
        name, path = (change.kind, change.key), fact_path(change.kind, change.key)
        if change.value is None:
            if name in self.facts:
                self.facts.discard(name)
                yield Delete(path)
            return
        if name in self.facts:
            yield Set(path, dump(change.value))
            return
        if change.kind not in self.kinds:
            self.kinds.add(change.kind)
            yield Create(f"{FACTS}/{change.kind}")
        self.facts.add(name)
        yield Create(path, dump(change.value))


def change_note(entity_path: str) -> Create:
    """Tells every broker that the settings of an entity changed."""
    return Create(f"{CONFIG_CHANGES}/config_change_", change_data(entity_path), sequence=True)


def _stands(node: TopicNode, index: int, row: Sequence[Any]) -> bool:
    """Whether a partition is assigned as the node has it."""
    if index >= len(node.replicas) or len(row) > 5 or node.replicas[index] != tuple(row[0]):
        return False
    return index not in node.adding and index not in node.removing


def _with_rows(node: TopicNode, rows: Mapping[int, Sequence[Any]]) -> TopicNode:
    if all(_stands(node, index, row) for index, row in rows.items()):
        return node
    replicas = list(node.replicas)
    adding, removing = dict(node.adding), dict(node.removing)
    for index, row in sorted(rows.items()):
        if index == len(replicas):
            replicas.append(())
        replicas[index] = tuple(row[0])
        for nodes, moving in ((row[5] if len(row) > 5 else (), adding), (row[6] if len(row) > 6 else (), removing)):
            moving.pop(index, None)
            if nodes:
                moving[index] = tuple(nodes)
    return evolve(node, replicas=tuple(replicas), adding=adding, removing=removing)
