"""The hash of the topics that a group reads, by which its coordinator sees that a new target is due (KIP-1101).

It is Apache Kafka's to the bit, so that a group keeps its epoch as its broker is replaced by Kafka or the reverse.
XXH3 of 64 bits is taken of

    a topic    0 u8 | id: its upper and its lower half, u64 each | name | number of partitions i32
               | for each partition: its number i32, and for each of its replicas' racks, sorted: length i32 | rack
    a group    the hashes of its topics that exist, in the order of their names, u64 each

Numbers are little-endian; a text is its UTF-16 code units, u16 each, and their number i32. Replicas on brokers without
a rack, or of one that is not known, are left out. So a group sees that a topic was made or deleted, grew, or moved to
other racks; not that replicas moved within their racks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from struct import Struct, pack
from typing import Final
from uuid import UUID

from xxhash import xxh3_64_intdigest as xxh3_64

from logkernel.contracts import ClusterView

NO_HASH: Final = 0
"""The hash of a group of which no topic exists."""

_VERSION: Final = b"\0"
_I32 = Struct("<i")
_U64 = Struct("<Q")


class TopicHashes:
    """Hashes of topics, kept until one changes."""

    __slots__ = ("_cluster", "_known")

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._known: dict[str, int] = {}

    def of(self, topics: Iterable[str]) -> int:
        """Return the hash of a group that reads these topics, signed as in records; those that do not exist are left
        out."""
        found = [self._of_topic(name) for name in sorted(topics)]
        return group_hash([value for value in found if value is not None])

    def forget(self, topics: Iterable[str]) -> None:
        """These topics changed."""
        for name in topics:
            self._known.pop(name, None)

    def _of_topic(self, name: str) -> int | None:
        known = self._known.get(name)
        if known is None:
            topic_id = self._cluster.topic_id(name)
            count = self._cluster.partition_count(name)
            if topic_id is None or count is None:
                return None
            known = self._known[name] = topic_hash(name, topic_id, count, self._cluster.racks(name))
        return known


def topic_hash(name: str, topic_id: UUID, partitions: int, racks: Sequence[Collection[str]]) -> int:
    """`racks` are those of each partition's replicas, in any order. From 0 to 2**64 - 1."""
    identity = topic_id.int
    parts = [
        _VERSION,
        _U64.pack(identity >> 64),
        _U64.pack(identity & (1 << 64) - 1),
        _text(name),
        _I32.pack(partitions),
    ]
    for number in range(partitions):
        parts.append(_I32.pack(number))
        for rack in sorted(racks[number], key=_units) if number < len(racks) else ():
            text = _text(rack)
            parts += (text[-4:], text)
    return xxh3_64(b"".join(parts))


def group_hash(topics: Sequence[int]) -> int:
    """Of the topics' hashes, by name; signed."""
    if not topics:
        return NO_HASH
    value = xxh3_64(pack(f"<{len(topics)}Q", *topics))
    return value - (1 << 64) if value >> 63 else value


def _text(value: str) -> bytes:
    units = value.encode("utf-16-le")
    return units + _I32.pack(len(units) // 2)


def _units(value: str) -> bytes:
    """In this order Java sorts strings."""
    return value.encode("utf-16-be")
