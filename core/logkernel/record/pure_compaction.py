"""What compaction does to a batch's records, in plain Python; `_loops` holds the same compiled, without the GIL.

The layout of a record is drawn in `layout`. All functions raise `InvalidRecord` for records that break it.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage, InvalidRecord
from logkernel.record.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    TRANSACTIONAL,
    computed_crc,
    parse_header,
    stored_crc,
)
from logkernel.record.layout import BAD_TIMESTAMP, MAX_LONG, MIN_LONG, MIN_RECORD_BYTES, fault
from logkernel.record.pure_decode import each_record, read_varint, record_bytes
from logkernel.record.pure_encode import varint_bytes
from logkernel.vocabulary import NO_TIMESTAMP

ROW = Struct("=7q")
"""What is said of a batch among many; see `small_batches`."""
MOST_ROWS = 2048
"""Of one call."""
NONE_STAYS, ALL_STAY, LOOK_CLOSER = range(3)
NOT_PLAIN = CODEC_MASK | TRANSACTIONAL | CONTROL | DELETE_HORIZON


def survey_records(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    mask: bytearray,
    tombstones_before: int,
) -> tuple[int, int, int]:
    """(records kept, null values among them, their largest timestamp) of the records in `buf[start:end]`.

    `mask` has a byte each record, not 0 where it stays; null values at offsets below `tombstones_before` are
    taken out of it.
    """
    _bound_mask(mask, count)
    kept, nulls, largest = 0, 0, NO_TIMESTAMP
    parsed = each_record(record_bytes(buf, start, end, count), count, base_timestamp_ms)
    for index, (timestamp, place, _, value, _, _, _) in enumerate(parsed):
        if not mask[index]:
            continue
        if value is None:
            if base_offset + place < tombstones_before:
                mask[index] = 0
                continue
            nulls += 1
        kept += 1
        largest = max(largest, timestamp)
    return kept, nulls, largest


def copy_records(
    buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int, mask: Buffer, new_base_timestamp_ms: int
) -> bytes:
    """The records in `buf[start:end]` that `mask` keeps, with their offset deltas, as they are, or with their
    timestamps told from another base."""
    _bound_mask(mask, count)
    data = record_bytes(buf, start, end, count)
    parts: list[bytes] = []
    at = 0
    for index, (timestamp, _, _, _, _, _, behind) in enumerate(each_record(data, count, base_timestamp_ms)):
        if mask[index] and new_base_timestamp_ms == base_timestamp_ms:
            parts.append(data[at:behind])
        elif mask[index]:
            elapsed = timestamp - new_base_timestamp_ms
            if not MIN_LONG <= elapsed <= MAX_LONG:
                raise fault(index, BAD_TIMESTAMP)
            attributes = read_varint(data, at)[1]
            rest = read_varint(data, attributes + 1, 10)[1]
            body = data[attributes : attributes + 1] + varint_bytes(elapsed) + data[rest:behind]
            parts += (varint_bytes(len(body)), body)
        at = behind
    return b"".join(parts)


def _bound_mask(mask: Buffer, count: int) -> None:
    if len(mask) < count:
        raise InvalidRecord(f"a mask of {len(mask)} bytes does not cover {count} records")


class OffsetMap:
    """Hashed key → the offset of the record that wins it, in one buffer of fixed size, by open addressing.

        | hash of the key, 16 bytes | offset + 1 i64 (0: free) | [version i64] |       24 or 32 bytes an entry

    A key is known by 128 bits of a hash with a secret of the map's own, so nobody can make two keys that meet. Among
    records of one key the highest offset wins; in a `versioned` map the highest version, then the highest offset.
    """

    __slots__ = ("_entry", "_seed", "_table", "capacity", "size", "slots")

    def __init__(self, memory_bytes: int, load_factor: float, seed: bytes, versioned: bool = False) -> None:
        """`load_factor` of the slots may be taken; `seed` is 16 random bytes."""
        self._entry = Struct("=16sqq" if versioned else "=16sq")
        self.slots = max(0, memory_bytes) // self._entry.size
        self.capacity = min(int(self.slots * load_factor), self.slots - 1)
        """Keys that it takes."""
        if len(seed) != 16 or self.capacity < 1:
            raise ValueError(f"no map of {memory_bytes} bytes, load factor {load_factor}, seed of {len(seed)} bytes")
        self.size = 0
        """Keys in it."""
        self._table = bytearray(self.slots * self._entry.size)
        self._seed = seed

    def _find(self, key: bytes) -> tuple[int, bytes, tuple[int, ...] | None]:
        """(place, digest, (offset[, version]) or None where the place is free)."""
        digest = blake2b(key, digest_size=16, key=self._seed).digest()
        size, unpack = self._entry.size, self._entry.unpack_from
        slot = int.from_bytes(digest[:8], "little") % self.slots
        while True:
            found, after, *version = unpack(self._table, slot * size)
            if after == 0:
                return slot * size, digest, None
            if found == digest:
                return slot * size, digest, (after - 1, *version)
            slot = slot + 1 if slot + 1 < self.slots else 0

    def add(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        from_offset: int,
        versions: Buffer | None = None,
    ) -> int:
        """Take in the keys of the records in `buf[start:end]` from `from_offset` on; null keys are passed over.

        Returns how many records were looked at: fewer than `count` where the map is full. `versions`: an int64,
        native, each record.
        """
        told = self._versions(versions, count)
        parsed = each_record(record_bytes(buf, start, end, count), count, 0)
        for index, (_, place, key, _, _, _, _) in enumerate(parsed):
            offset = base_offset + place
            if key is None or offset < from_offset:
                continue
            version = (told[index],) if told is not None else ()
            at, digest, found = self._find(key)
            if found is None:
                if self.size >= self.capacity:
                    return index
                self.size += 1
            elif (*version, offset) < (*found[1:], found[0]):
                continue
            self._entry.pack_into(self._table, at, digest, offset + 1, *version)
        return count

    def keep(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        before_offset: int,
        versions: Buffer | None = None,
    ) -> bytearray:
        """A byte each record in `buf[start:end]`: 1 where no other record wins its key, or where it lies at
        `before_offset` or later; 0 for null keys."""
        told = self._versions(versions, count)
        mask = bytearray(count)
        parsed = each_record(record_bytes(buf, start, end, count), count, 0)
        for index, (_, place, key, _, _, _, _) in enumerate(parsed):
            offset = base_offset + place
            if offset >= before_offset:
                mask[index] = 1
            elif key is not None:
                found = self._find(key)[2]
                version = (told[index],) if told is not None else ()
                mask[index] = found is None or (*version, offset) >= (*found[1:], found[0])
        return mask

    def _versions(self, versions: Buffer | None, count: int) -> memoryview | None:
        if (versions is not None) != (self._entry.size == 32):
            raise ValueError("versions go with a versioned map, and only with one")
        if versions is None:
            return None
        if len(versions) != 8 * count:
            raise ValueError(f"{len(versions)} bytes are no {count} versions")
        return memoryview(versions).cast("q")

    def add_batches(self, buf: Buffer, rows: bytes, from_offset: int) -> int:
        """As `add` of each batch that `rows` names (see `small_batches`), until one breaks the layout or finds the map
        full; returns how many batches were taken in."""
        self._versions(None, 0)
        for index, (position, size, count, base, last, _, _) in enumerate(_bound_rows(buf, rows)):
            if last < from_offset:
                continue
            try:
                if self.add(buf, position + HEADER_BYTES, position + size, count, base, from_offset) < count:
                    return index
            except InvalidRecord:
                return index
        return len(rows) // ROW.size

    def keep_batches(self, buf: Buffer, rows: bytes, before_offset: int) -> bytearray:
        """As `keep` of each batch that `rows` names, until one breaks the layout: a verdict each, `NONE_STAYS`,
        `ALL_STAY` and there is no null value, or `LOOK_CLOSER`."""
        self._versions(None, 0)
        verdicts = bytearray()
        for position, size, count, base, _, base_ms, _ in _bound_rows(buf, rows):
            start, end = position + HEADER_BYTES, position + size
            try:
                mask = self.keep(buf, start, end, count, base, before_offset)
                kept, nulls, _ = survey_records(buf, start, end, count, base, base_ms, mask, MIN_LONG)
            except InvalidRecord:
                break
            verdicts.append(NONE_STAYS if not kept else LOOK_CLOSER if nulls or kept < count else ALL_STAY)
        return verdicts


def _bound_rows(buf: Buffer, rows: bytes) -> list[tuple[int, ...]]:
    found = list(ROW.iter_unpack(rows[: len(rows) // ROW.size * ROW.size]))
    for position, size, count, *_ in found:
        if size < HEADER_BYTES or not 0 <= position <= len(buf) - size:
            raise ValueError(f"no batch of {size} bytes lies at {position} of {len(buf)}")
        if not 0 <= count <= (size - HEADER_BYTES) // MIN_RECORD_BYTES:
            raise ValueError(f"{count} records do not fit {size} bytes")
    return found


def small_batches(buf: Buffer, start: int, end: int, most_bytes: int, barriers: Buffer) -> tuple[bytes, int]:
    """(rows, where they stop) of the batches in `buf[start:end]`, as long as each is whole, right by its CRC, plain (of
    magic 2, not compressed, no transaction's, no marker, without delete horizon, not empty), of `most_bytes` at most,
    and does not end at an offset in `barriers` (int64, native, ascending).

    A row is `ROW`: position, bytes, records, base offset, last offset, base timestamp, largest timestamp.
    """
    if not 0 <= start <= end <= len(buf):
        raise ValueError(f"batches from {start} to {end} do not lie in {len(buf)} bytes")
    walls = frozenset(memoryview(barriers).cast("B").cast("q"))
    rows: list[bytes] = []
    while end - start > HEADER_BYTES and len(rows) < MOST_ROWS and buf[start + MAGIC_OFFSET] == 2:
        size = int.from_bytes(buf[start + LENGTH_OFFSET : start + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if not HEADER_BYTES <= size <= min(end - start, most_bytes):
            break
        try:
            facts = parse_header(buf, start)
        except CorruptMessage:
            break
        if (
            facts.attributes & NOT_PLAIN
            or not 0 < facts.count <= (size - HEADER_BYTES) // MIN_RECORD_BYTES
            or facts.last_offset in walls
            or stored_crc(buf, start) != computed_crc(buf, start, size)
        ):
            break
        rows.append(
            ROW.pack(start, size, facts.count, facts.base_offset, facts.last_offset, facts.base_timestamp_ms,
                     facts.max_timestamp_ms)
        )  # fmt: skip
        start += size
    return b"".join(rows), start
