"""Checking a segment after an unclean end, byte by byte, and rebuilding what follows from it.

Every batch must be whole, have the right checksum and come after the one before; the file is cut
where the first one does not: an interrupted write, garbage, or the zeros of a page that never
reached the disk. Indexes, transaction index, leader epochs and producer state come out of the same pass.
"""

from __future__ import annotations

from collections import deque

from logkernel.attrs_lite import field, mutable
from logkernel.errors import KafkaError
from logkernel.record.batch import (
    ATTRIBUTES_OFFSET,
    CONTROL,
    HEADER,
    HEADER_BYTES,
    LEGACY_MIN_BYTES,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    TRANSACTIONAL,
    parse_header,
)
from logkernel.record.crc import crc32c
from logkernel.record.validate import check_stored
from logkernel.storage.disk import Disk, File
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.segment import MAX_RELATIVE, Segment
from logkernel.vocabulary import REMEMBERED_BATCHES, BatchFacts

CHUNK_BYTES = 1 << 21


@mutable
class Damage:
    """Where a segment was cut, and why."""

    path: str
    position: int
    lost_bytes: int
    reason: str


class _Window:
    """A stretch of a file in one reused buffer."""

    __slots__ = ("_file", "_size", "buffer", "end", "start", "view")

    def __init__(self, file: File, size: int) -> None:
        self._file = file
        self._size = size
        self.buffer = bytearray(min(CHUNK_BYTES, max(size, 1)))
        self.view = memoryview(self.buffer)
        self.start = self.end = 0
        """File positions of the buffer's first byte and behind its last valid one."""

    def move(self, position: int, at_least: int) -> bool:
        """Have the bytes from `position` at the buffer's start, `at_least` of them; False where the file ends first."""
        if self._size - position < at_least:
            return False
        keep = self.end - position
        if at_least > len(self.buffer):
            grown = bytearray(at_least)
            grown[:keep] = self.view[position - self.start : self.end - self.start]
            self.buffer, self.view = grown, memoryview(grown)
        elif keep > 0:
            self.view[:keep] = bytes(self.view[position - self.start : self.end - self.start])
        want = min(len(self.buffer), self._size - position)
        got = self._file.read_into(position + keep, self.view[keep:want])
        self.start, self.end = position, position + keep + got
        return keep + got >= at_least


@mutable
class ProducerReplay:
    """Feeds a ledger. Of a producer's plain batches only the newest few matter: the others cost but a look."""

    ledger: ProducerLedger
    segment: Segment
    _waiting: dict[int, deque[tuple[int, tuple[int, ...]]]] = field(init=False, factory=dict)

    def note(self, position: int, header: tuple[int, ...], control: bytes | None) -> None:
        producer_id = header[9]
        if header[5] & (TRANSACTIONAL | CONTROL):
            self._replay_waiting(producer_id)
            self._replay(position, header, control)
        else:
            waiting = self._waiting.get(producer_id)
            if waiting is None:
                waiting = self._waiting[producer_id] = deque(maxlen=REMEMBERED_BATCHES)
            waiting.append((position, header))

    def _replay_waiting(self, producer_id: int) -> None:
        for position, header in self._waiting.pop(producer_id, ()):
            self._replay(position, header, None)

    def _replay(self, position: int, header: tuple[int, ...], control: bytes | None) -> None:
        base, length, epoch, magic, _, attributes, delta, *rest = header
        facts = BatchFacts(position, length + LOG_OVERHEAD, base, base + delta, epoch, magic, attributes, *rest)
        aborted = self.ledger.replay(facts, control)
        if aborted is not None:
            self.segment.txns.append(aborted)

    def finish(self) -> None:
        """Hand over what was held back, in log order."""
        rows = sorted(row for waiting in self._waiting.values() for row in waiting)
        self._waiting.clear()
        for position, header in rows:
            self._replay(position, header, None)


def rot(disk: Disk, path: str, *, torn_is_well: bool) -> tuple[int, str] | None:
    """(position, what) of the first batch in a segment that is not whole and right, read only.

    With `torn_is_well` what a crash may tear is passed over: bytes at the end behind which no whole batch lies.
    """
    file = disk.open(path, write=False)
    data, position, fault = file.read(0, file.size), 0, None
    while position < len(data):
        try:
            facts = check_stored(data, position)
        except KafkaError as error:
            fault = position, str(error)
            break
        position += facts.size
    if fault is None or not torn_is_well:
        return fault
    for at in range(position + 1, len(data) - HEADER_BYTES):
        if data[at + MAGIC_OFFSET] == 2:
            try:
                check_stored(data, at)
            except KafkaError:
                continue
            return fault
    return None


def recover_segment(
    segment: Segment,
    index_interval_bytes: int,
    ledger: ProducerLedger,
    epochs: LeaderEpochCache,
) -> Damage | None:
    """Check all of `segment`, cut it at the first rotten byte, rebuild its indexes; the ledger ends at its end.

    The ledger's state must be that at the segment's base.
    """
    segment.index.reset()
    segment.times.reset()
    segment.txns.reset()
    segment.start_over()
    replay = ProducerReplay(ledger, segment)
    size = segment.file.size
    valid, reason = _check(segment, size, index_interval_bytes, replay, epochs)
    replay.finish()
    segment.file.truncate(valid)
    segment.size = valid
    if not reason:
        return None
    segment.file.sync()  # what was cut must not come back under what is appended now
    return Damage(segment.log_path, valid, size - valid, reason)


def _check(
    segment: Segment,
    size: int,
    index_interval_bytes: int,
    replay: ProducerReplay,
    epochs: LeaderEpochCache,
) -> tuple[int, str]:
    """(valid bytes, why no more); the hot loop of a restart."""
    window = _Window(segment.file, size)
    unpack, base, note = HEADER.unpack_from, segment.base, segment.note
    expected, latest = base, epochs.latest
    position = 0
    while position < size:
        at = position - window.start
        if window.end - position < HEADER_BYTES:
            if not window.move(position, min(HEADER_BYTES, size - position)):
                return position, "the file ended while it was read"
            at = 0
        if size - position < HEADER_BYTES or window.buffer[at + MAGIC_OFFSET] != 2:
            whole, last, max_ms, reason = _check_legacy(window, position, size)
            if reason:
                return position, reason
        else:
            header = unpack(window.buffer, at)
            first, length, epoch, _, crc, attributes, delta, _, max_ms, producer_id, _, _, _ = header
            whole, last = length + LOG_OVERHEAD, first + delta
            if whole < HEADER_BYTES or delta < 0:
                return position, f"length {length} or last offset delta {delta} make no sense"
            if window.end - position < whole:
                if not window.move(position, whole):
                    return position, f"a batch of {whole} bytes was interrupted"
                at = 0
            if crc32c(window.view[at + ATTRIBUTES_OFFSET : at + whole]) != crc:
                return position, "the checksum is wrong"
            if first < expected:
                return position, f"offset {first} follows {expected - 1}"
            if last - base > MAX_RELATIVE:
                return position, f"offset {last} is too far from base offset {base}"
            if epoch > latest:
                epochs.assign(epoch, first)
                latest = epochs.latest
            if producer_id >= 0:
                control = bytes(window.view[at : at + whole]) if attributes & CONTROL else None
                replay.note(position, header, control)
        if last < expected:
            return position, f"offset {last} follows {expected - 1}"
        note(position, whole, last, max_ms, index_interval_bytes)
        expected = last + 1
        position += whole
    return position, ""


def _check_legacy(window: _Window, position: int, size: int) -> tuple[int, int, int, str]:
    """(whole bytes, last offset, timestamp, what is wrong) of a message of magic 0 or 1."""
    if size - position < LEGACY_MIN_BYTES:
        return 0, 0, 0, f"{size - position} bytes are no batch"
    at = position - window.start
    whole = int.from_bytes(window.view[at + LENGTH_OFFSET : at + LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    if whole < LEGACY_MIN_BYTES:
        return 0, 0, 0, f"length {whole - LOG_OVERHEAD} makes no sense"
    if window.buffer[at + MAGIC_OFFSET] not in (0, 1):
        return 0, 0, 0, f"magic {window.buffer[at + MAGIC_OFFSET]} is unknown or its header was interrupted"
    if window.end - position < whole:
        if not window.move(position, whole):
            return 0, 0, 0, f"a message of {whole} bytes was interrupted"
        at = 0
    try:
        check_stored(window.view[at : at + whole], 0)
        facts = parse_header(window.view[at : at + whole], 0)
    except KafkaError as error:
        return 0, 0, 0, str(error)
    return whole, facts.last_offset, facts.max_timestamp_ms, ""
