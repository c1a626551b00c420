"""One batch of a producer: records are encoded as they come; the outcome is asked for by place.

    state     event                          next
    OPEN      append                         OPEN, or no room
    OPEN      close                          CLOSED: compressed, takes no more
    CLOSED    stamp                          CLOSED; its header has producer id, epoch and sequence
    CLOSED    finish                         DONE: offsets, or an error
    CLOSED    split                          DONE: the children have the outcome

The batch's bytes exist once: the header is written before them in place, again for each new sequence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from logkernel.contracts import Codec
from logkernel.errors import InvalidRecord, KafkaError
from logkernel.record import loops
from logkernel.record.batch import ATTRIBUTES_OFFSET, COVERED, HEADER_BYTES, LOG_OVERHEAD, PREFIX, TRANSACTIONAL
from logkernel.record.crc import crc32c
from logkernel.record.decode import decode_all
from logkernel.vocabulary import RecordMetadata

log = logging.getLogger("logkernel.client")

OPEN, CLOSED, DONE = range(3)


Callback = Callable[[RecordMetadata | None, Exception | None], Any]
"""Told of a record's outcome: exactly one of the two is not None."""


class Section:
    """Records that were encoded elsewhere, behind room for the header, all of one timestamp: a builder that is full.
    It gives its bytes away once, as a batch outlives them."""

    def __init__(self, wire: bytearray, count: int, timestamp_ms: int) -> None:
        self._wire = wire
        self.count = count
        self.size = len(wire)
        self.base_timestamp_ms = self.max_timestamp_ms = timestamp_ms

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Any) -> int:
        return -1

    def put(self, kind: Any, batch: Any, timestamp: int, key: Any, value: Any, headers: Any) -> None:
        return None

    def finish(self) -> bytearray:
        wire, self._wire = self._wire, bytearray()
        return wire


class Batch:
    """See the module. `reserved` is what it holds of the pool."""

    __slots__ = (
        "append",
        "append_time_ms",
        "attempts",
        "base_offset",
        "builder",
        "callbacks",
        "children",
        "codec_id",
        "count",
        "created_ms",
        "done",
        "drained_ms",
        "epoch",
        "error",
        "faults",
        "lost",
        "maybe_written",
        "owner",
        "partition",
        "producer_id",
        "put",
        "reserved",
        "retry_ms",
        "sequence",
        "serial",
        "state",
        "topic",
        "waiters",
        "wire",
    )

    def __init__(
        self, topic: str, partition: int, limit: int, reserved: int, created_ms: int, section: Section | None = None
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.reserved = reserved
        self.created_ms = created_ms
        self.builder: Any = loops.BatchBuilder(limit, HEADER_BYTES) if section is None else section
        self.append: Callable[[int, Any, Any, Any], int] = self.builder.append
        self.put: Callable[..., Any] = self.builder.put
        self.wire: bytearray = bytearray()
        """Header and records, once it is closed."""
        self.count = 0
        self.state = OPEN
        self.done = False
        """Whether the outcome is here, or with the children."""
        self.owner: Any = None
        """The driver, to wait with."""
        self.codec_id = 0
        self.attempts = 0
        self.retry_ms = 0
        """Not before this time may it be sent again."""
        self.drained_ms = 0
        self.producer_id = self.epoch = self.sequence = -1
        self.serial = 0
        """How many batches of its partition got a sequence before it."""
        self.lost = False
        """An attempt got no answer: it may still be on its way to a broker."""
        self.maybe_written = False
        """An attempt ended without a word on whether the broker wrote it."""
        self.callbacks: list[tuple[int, int, Callback]] = []
        """(place, timestamp, callback)."""
        self.waiters: list[Callable[[], None]] | None = None
        """Called at the outcome."""
        self.base_offset = -1
        self.append_time_ms = -1
        self.error: Exception | None = None
        self.faults: dict[int, str | None] | None = None
        """Places that the broker found at fault, with its words (KIP-467)."""
        self.children: list[tuple[int, Batch]] | None = None
        """(first place, batch) of those that it was split into."""

    def close(self, codec: Codec | None) -> None:
        """No more records; compresses them."""
        if self.state != OPEN:
            return
        wire: bytearray = self.builder.finish()
        self.count = self.builder.count  # only now does nobody put one more
        if codec is not None:
            packed = codec.compress(memoryview(wire)[HEADER_BYTES:])
            wire = bytearray(HEADER_BYTES)
            wire += packed
            self.codec_id = codec.codec_id
        self.wire = wire
        self.state = CLOSED

    def stamp(self, producer_id: int, epoch: int, sequence: int, transactional: bool) -> None:
        """Write the header, with its CRC."""
        self.producer_id, self.epoch, self.sequence = producer_id, epoch, sequence
        wire, builder = self.wire, self.builder
        attributes = self.codec_id | (TRANSACTIONAL if transactional else 0)
        last = self.count - 1
        COVERED.pack_into(
            wire,
            ATTRIBUTES_OFFSET,
            attributes,
            last,
            builder.base_timestamp_ms,
            builder.max_timestamp_ms,
            producer_id,
            epoch,
            sequence,
            self.count,
        )
        with memoryview(wire) as view:
            crc = crc32c(view[ATTRIBUTES_OFFSET:], 0)
        PREFIX.pack_into(wire, 0, 0, len(wire) - LOG_OVERHEAD, -1, 2, crc)

    def finish(self, base_offset: int, append_time_ms: int, error: Exception | None) -> None:
        """The outcome of every record; the bytes are let go."""
        self.base_offset, self.append_time_ms, self.error = base_offset, append_time_ms, error
        self.state = DONE
        self.wire = bytearray()
        self.done = True

    def split(self, codec: Codec | None, codec_for: Callable[[int], Codec]) -> list[Batch]:
        """Two or more batches with the same records, of about half the size; they have the outcome from now on."""
        records = decode_all(bytes(self.wire), codec_for)
        plain = sum(len(record.key or b"") + len(record.value or b"") + 16 for record in records)
        limit = HEADER_BYTES + max(1, plain // 2)
        made: list[tuple[int, Batch]] = []
        for place, record in enumerate(records):
            stamped = (record.timestamp_ms, record.key, record.value, record.headers)
            if not made or made[-1][1].append(*stamped) < 0:
                child = Batch(self.topic, self.partition, limit, 0, self.created_ms)
                child.append(*stamped)
                made.append((place, child))
        for first, child in made:
            child.close(codec)
            child.owner = self.owner
            child.attempts, child.reserved = self.attempts, len(child.wire)
            end = first + child.count
            child.callbacks = [(place - first, at, tell) for place, at, tell in self.callbacks if first <= place < end]
            if self.sequence >= 0:
                sequence = (self.sequence + first) & 0x7FFFFFFF
                child.producer_id, child.epoch, child.sequence = self.producer_id, self.epoch, sequence
        self.children = made
        self.callbacks = []
        self.state = DONE
        self.wire = bytearray()
        self.done = True
        return [child for _, child in made]

    # ------------------------------------------------------------ the outcome

    def announce(self) -> None:
        """Run the callbacks with the outcome, then wake waiting calls."""
        callbacks, self.callbacks = self.callbacks, []
        for index, timestamp_ms, callback in callbacks:
            error = self.error_of(index)
            try:
                if error is None:
                    callback(self.metadata(index, timestamp_ms), None)
                else:
                    callback(None, error)
            except Exception:
                log.exception("a callback of send failed")
        waiters = self.waiters
        if waiters is not None:
            self.waiters = None
            for wake in waiters:
                wake()

    def place(self, index: int) -> tuple[Batch, int]:
        """The batch that has the outcome of the record at `index`, and its place there."""
        batch = self
        while batch.children is not None:
            first, child = next(pair for pair in reversed(batch.children) if pair[0] <= index)
            batch, index = child, index - first
        return batch, index

    def metadata(self, index: int, timestamp_ms: int) -> RecordMetadata:
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        time_ms = self.append_time_ms if self.append_time_ms >= 0 else timestamp_ms
        return RecordMetadata(self.topic, self.partition, offset, time_ms)

    def error_of(self, index: int) -> Exception | None:
        """The error of one record: its own fault, or that it shared a batch with one at fault."""
        if self.error is None or not self.faults:
            return self.error
        if index in self.faults:
            return InvalidRecord(self.faults[index] or str(self.error))
        kind = type(self.error) if isinstance(self.error, KafkaError) else InvalidRecord
        return kind("refused because another record of its batch was at fault; it may be sent again")
