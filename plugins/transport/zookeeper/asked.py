"""What administrators ask of the controller by nodes of ZooKeeper, as the tools of Kafka before 2.4 do. Pure.

    /admin/reassign_partitions           {"version": 1, "partitions": [{"topic", "partition", "replicas"}]}
    /admin/preferred_replica_election    {"version": 1, "partitions": [{"topic", "partition"}]}

Kafka 3.9's controller still watches both. It takes out what was moved or elected, and what it refuses; a node without
rows goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MetadataChange
from logkernel.vocabulary import MAX_PARTITIONS

from . import layout

MOVES: Final = "/admin/reassign_partitions"
LEADERS: Final = "/admin/preferred_replica_election"
KINDS: Final[Mapping[str, str]] = {"asked_move": MOVES, "asked_leader": LEADERS}
"""Kind of the fact that the controller is told of → the node."""

Rows = dict[str, tuple[int, ...]]
"""topic:partition → replicas; none in what asks for leaders."""


def parse(data: bytes | None, path: str) -> Rows:
    """Raises `CorruptMessage`."""
    found = layout.load(data, path).get("partitions")
    if not isinstance(found, list) or len(found) > MAX_PARTITIONS:
        raise layout.bad(path, "it has no list of partitions")
    return dict(_row(row, path) for row in found)


def _row(row: Any, path: str) -> tuple[str, tuple[int, ...]]:
    if not isinstance(row, dict) or not isinstance(row.get("topic"), str):
        raise layout.bad(path, f"{row!r:.100} names no topic")
    index = layout.bounded(row.get("partition"), 0, MAX_PARTITIONS, path)
    return f"{row['topic']}:{index}", layout.node_ids(row.get("replicas"), path) if path == MOVES else ()


@mutable
class Asked:
    """One of the nodes, as the controller read and wrote it last."""

    kind: str
    rows: Rows = field(factory=dict)
    version: int = 0
    moving: set[str] = field(factory=set)
    """Of `rows`: those that were seen to move since."""

    @property
    def path(self) -> str:
        return KINDS[self.kind]

    def read(self, data: bytes | None, version: int, is_moving: Callable[[str], bool]) -> list[MetadataChange]:
        """What is asked for that was not before. Raises `CorruptMessage`; nothing is asked for then."""
        before, self.rows, self.version = self.rows, {}, version
        if data is not None:
            self.rows = parse(data, self.path)
        self.moving = set(filter(is_moving, self.rows))
        fresh = {key: replicas for key, replicas in self.rows.items() if before.get(key) != replicas}
        return [MetadataChange(self.kind, key, {"replicas": list(replicas)}) for key, replicas in fresh.items()]

    def take_out(self, answered: Collection[str], is_moving: Callable[[str], bool]) -> bool:
        """Take out what was answered, and what moved and does not any more; whether the node is another now."""
        moving = set(filter(is_moving, self.rows))
        over = [key for key in self.rows if key not in moving and (key in answered or key in self.moving)]
        self.moving = moving
        for key in over:
            del self.rows[key]
        return bool(over)

    def data(self) -> bytes:
        """Of the node, with what is left."""
        partitions: list[dict[str, Any]] = []
        for key, replicas in self.rows.items():
            topic, _, index = key.rpartition(":")
            row: dict[str, Any] = {"topic": topic, "partition": int(index)}
            partitions.append({**row, "replicas": list(replicas)} if self.path == MOVES else row)
        return layout.dump({"version": 1, "partitions": partitions})
