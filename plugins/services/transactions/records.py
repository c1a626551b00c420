"""The bytes of __transaction_state, as Apache Kafka writes and reads them.

    key (0):    version i16 | transactional id string
    value:      version i16 | producer id i64 | epoch i16 | timeout ms i32 | state i8 | topics array?
                | last update ms i64 | start ms i64 | tags (1)
    topic:      name string | partitions array of i32 | tags (1)

A null value deletes. In version 0 a string is i16 length and UTF-8, an array an i32 count (-1 is null); in version 1
these lengths are an unsigned varint of length + 1 (0 is null), and a tagged field that has its default is left out:

    tag 0  previous producer id i64 (-1)
    tag 1  next producer id i64 (-1)
    tag 2  the client's transaction.version i16 (0)

Other tags are skipped. An Empty transaction has null for its topics. Version 1 is written where the feature
transaction.version is on or a client of version 2 is at work, 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from logkernel.errors import CorruptMessage
from logkernel.record.fields import FieldReader, uvarint
from logkernel.vocabulary import TopicPartition

from .state import NO_PRODUCER, V2, State, Transaction

KEY_VERSION: Final = 0
FLEXIBLE: Final = 1
MAX_STRING_BYTES: Final = 32_767
PREVIOUS_PRODUCER, NEXT_PRODUCER, CLIENT_VERSION = 0, 1, 2
"""Tags."""

_I16 = Struct(">h")
_I32 = Struct(">i")
_I64 = Struct(">q")
_HEAD = Struct(">hqhib")
_TIMES = Struct(">qq")


def fits(text: str) -> bool:
    """Whether a text can be kept: its length goes into 16 bits."""
    return len(text) * 3 <= MAX_STRING_BYTES or len(text.encode()) <= MAX_STRING_BYTES


# ---------------------------------------------------------------- write


def encode_key(transactional_id: str) -> bytes:
    data = transactional_id.encode()
    return _I16.pack(KEY_VERSION) + _I16.pack(len(data)) + data


def encode_value(txn: Transaction, level: int) -> bytes:
    """`level` is the finalized `transaction.version`."""
    flexible = level >= 1 or txn.client_version >= V2
    version = FLEXIBLE if flexible else 0
    head = _HEAD.pack(version, txn.producer_id, txn.epoch, txn.timeout_ms, STATE_IDS[txn.state])
    topics = None if txn.state is State.EMPTY else by_topic(txn.partitions)
    parts = [head, *_topics(topics, flexible), _TIMES.pack(txn.updated_ms, txn.started_ms)]
    if flexible:
        parts.append(_tags(txn))
    return b"".join(parts)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic → its partitions, both ascending."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return found


def _topics(topics: dict[str, list[int]] | None, flexible: bool) -> Iterator[bytes]:
    yield _length(None if topics is None else len(topics), flexible)
    for name, numbers in (topics or {}).items():
        data = name.encode()
        yield _length(len(data), True) if flexible else _I16.pack(len(data))
        yield data
        yield _length(len(numbers), flexible)
        yield Struct(f">{len(numbers)}i").pack(*numbers)
        if flexible:
            yield b"\0"


def _tags(txn: Transaction) -> bytes:
    present: list[tuple[int, bytes]] = []
    if txn.previous_producer_id != NO_PRODUCER:
        present.append((PREVIOUS_PRODUCER, _I64.pack(txn.previous_producer_id)))
    if txn.next_producer_id != NO_PRODUCER:
        present.append((NEXT_PRODUCER, _I64.pack(txn.next_producer_id)))
    if txn.client_version:
        present.append((CLIENT_VERSION, _I16.pack(txn.client_version)))
    return uvarint(len(present)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in present)


def _length(count: int | None, flexible: bool) -> bytes:
    if flexible:
        return uvarint(0 if count is None else count + 1)
    return _I32.pack(-1 if count is None else count)


# ---------------------------------------------------------------- read

STATE_IDS: Final = {
    State.EMPTY: 0,
    State.ONGOING: 1,
    State.PREPARE_COMMIT: 2,
    State.PREPARE_ABORT: 3,
    State.COMPLETE_COMMIT: 4,
    State.COMPLETE_ABORT: 5,
}
"""Kafka's numbers; its 6 (Dead) and 7 (PrepareEpochFence) are never written."""
_STATES: Final = {number: state for state, number in STATE_IDS.items()}


def decode_key(key: bytes) -> str | None:
    """The transactional id; None for records that are not ours. Raises `CorruptMessage`."""
    reader = _Reader(key)
    return reader.string() if reader.i16() == KEY_VERSION else None


def decode_value(value: bytes) -> Transaction:
    """Raises `CorruptMessage` for bytes that are no value of versions 0 and 1."""
    reader = _Reader(value)
    version = reader.i16()
    if not 0 <= version <= FLEXIBLE:
        raise CorruptMessage(f"__transaction_state: value of version {version}, of which 0 and {FLEXIBLE} are known")
    reader.flexible = version == FLEXIBLE
    producer_id, epoch, timeout_ms, number = reader.i64(), reader.i16(), reader.i32(), reader.i8()
    state = _STATES.get(number)
    if state is None:
        raise CorruptMessage(f"__transaction_state: {number} is no state")
    partitions = frozenset(_partitions(reader))
    updated_ms, started_ms = reader.i64(), reader.i64()
    tags = reader.tags()
    return Transaction(
        state=state,
        producer_id=producer_id,
        epoch=epoch,
        timeout_ms=timeout_ms,
        partitions=partitions,
        started_ms=started_ms,
        updated_ms=updated_ms,
        previous_producer_id=_tagged(tags, PREVIOUS_PRODUCER, _I64, NO_PRODUCER),
        next_producer_id=_tagged(tags, NEXT_PRODUCER, _I64, NO_PRODUCER),
        client_version=_tagged(tags, CLIENT_VERSION, _I16, 0),
    )


def _tagged(tags: dict[int, bytes], tag: int, layout: Struct, default: int) -> int:
    data = tags.get(tag)
    if data is None:
        return default
    if len(data) != layout.size:
        raise CorruptMessage(f"__transaction_state: tag {tag} of {len(data)} bytes")
    return int(layout.unpack(data)[0])


def _partitions(reader: _Reader) -> Iterator[TopicPartition]:
    for _ in range(reader.count(nullable=True)):
        topic = reader.string()
        for _ in range(reader.count(nullable=True)):
            yield TopicPartition(topic, reader.i32())
        reader.tags()


class _Reader(FieldReader):
    __slots__ = ()
    where = "__transaction_state"
