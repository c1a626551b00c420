"""Checks one log: every batch, every record's structure, and all that was derived from them.

One pass over the records notes where each batch lies; the indexes are then held against these notes, the producer
snapshots and the transaction index against a ledger that saw every batch, the epochs against the batch headers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator

from attrs import Factory, define, field

from logkernel.errors import CorruptMessage, KafkaError, LogkernelError, UnsupportedCompressionType
from logkernel.inspect.compacted import Abort, Holes, Transactions, is_behind, wrong_rows
from logkernel.inspect.findings import BY_OPENING, BY_REPAIR, CUT, Report
from logkernel.inspect.rows import aborted_rows, batch_at, index_rows, time_rows
from logkernel.partition.producers import ProducerStates
from logkernel.record.bounds import CodecFor
from logkernel.record.decode import decode_batch
from logkernel.record.validate import check_stored
from logkernel.storage import checkpoints, snapshot
from logkernel.storage.disk import Disk
from logkernel.storage.index import OffsetIndex, TimeIndex
from logkernel.storage.names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    STATE_TOPIC,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_name,
    offset_of,
)
from logkernel.storage.segment import MAX_RELATIVE
from logkernel.vocabulary import BatchFacts, EpochStart

SMALL_FILES = (checkpoints.LEADER_EPOCHS, checkpoints.PARTITION_METADATA)
END = 2**63
MISSING = "copy the segment from a replica or a backup; the rest is served, and `logkernel repair` keeps the gap"
PASS_OVER = "remove it once you know where it comes from; brokers ignore it"


@define
class _Batches:
    """Where the batches of one segment lie."""

    starts: array[int] = field(factory=lambda: array("q"))
    firsts: array[int] = field(factory=lambda: array("q"))
    lasts: array[int] = field(factory=lambda: array("q"))
    latest: array[int] = field(factory=lambda: array("q"))
    """Largest timestamp up to and with each batch."""
    times: array[int] = field(factory=lambda: array("q"))

    def note(self, position: int, facts: BatchFacts) -> None:
        self.starts.append(position)
        self.firsts.append(facts.base_offset)
        self.lasts.append(facts.last_offset)
        self.times.append(facts.max_timestamp_ms)
        self.latest.append(max(facts.max_timestamp_ms, self.latest[-1] if self.latest else -1))


@define
class LogCheck:
    """One check of one folder; after `run`, `end_offset` is where the whole batches end."""

    disk: Disk
    folder: str
    codec_for: CodecFor
    report: Report
    unsynced_from: int
    """What lies at this offset and later was perhaps never synced, and the directory not closed cleanly: recovery will
    check it, so that damage there is no surprise. Above every offset after a clean end."""
    log_start: int = 0
    """What the directory's checkpoint says; epochs are not kept of what lies below."""
    clean_offset: int | None = None
    """As `Holes` has it."""
    repair_from: int | None = field(init=False, default=None)
    """Base offset of the first segment in which something is wrong; None: nothing is."""
    cut_at: tuple[str, int] | None = field(init=False, default=None)
    """The segment file and the byte where recovery will end the log."""
    epochs_lie: bool = field(init=False, default=False)
    start_offset: int = field(init=False, default=0)
    end_offset: int = field(init=False, default=0)
    _names: set[str] = field(init=False, factory=set)
    _holes: Holes = field(init=False, default=Factory(lambda self: Holes(self.clean_offset), takes_self=True))
    _epochs: list[EpochStart] | None = field(init=False, default=None)
    _ledger: ProducerStates = field(init=False, factory=ProducerStates)
    _knows_all: bool = field(init=False, default=True)
    """The ledger saw the log from its first record on."""
    _compacted: bool = field(init=False, default=False)
    """Batches are missing, or empty: what was derived from them once stays as it was."""
    _transactions: Transactions = field(init=False, factory=Transactions)
    _damaged: bool = field(init=False, default=False)
    _loose: bool = field(init=False, default=False)
    """Recovery will check this segment, cut it and rebuild its indexes."""

    def run(self) -> None:
        """Raises nothing: what cannot be read is a finding."""
        try:
            self._names = set(self.disk.listdir(self.folder))
            self._check_names()
            self._read_small_files()
            bases = sorted(base for name in self._names if (base := offset_of(name, LOG)) is not None)
            self.start_offset = self.end_offset = bases[0] if bases else 0
            self._start_ledger()
            for base, after in zip(bases, [*bases[1:], END], strict=False):
                self._loose = after > self.unsynced_from
                before = len(self.report.findings)
                self._segment(base)
                if len(self.report.findings) > before and self.repair_from is None:
                    self.repair_from = base
            self._check_ends()
        except OSError as error:
            self._unreadable(self.folder, error)

    # ------------------------------------------------------------ names and small files

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _check_names(self) -> None:
        logs = {offset_of(name, LOG) for name in self._names}
        loose = sorted(name for name in self._names if name.endswith((DELETED, CLEANED, SWAP, ".tmp")))
        if loose:
            others = f" (and {len(loose) - 1} others)" if len(loose) > 1 else ""
            what = f"a removal or rewrite was not finished{others}"
            self.report.warning(self._path(loose[0]), what, "opening the directory finishes it")
        for name in sorted(self._names.difference(loose)):
            path = self._path(name)
            if name in SMALL_FILES or offset_of(name, LOG) is not None or offset_of(name, SNAPSHOT) is not None:
                continue
            elif any(offset_of(name, suffix) is not None for suffix in SEGMENT_SUFFIXES):
                if not any(offset_of(name, suffix) in logs - {None} for suffix in SEGMENT_SUFFIXES):
                    self.report.warning(path, "an index without its log", "opening the directory removes it")
                    self._holes.orphans.add(int(name.partition(".")[0]))
            else:
                self.report.warning(path, "not the name of a log's file", PASS_OVER)
        if loose:
            self._holes.orphans.clear()

    def _read_small_files(self) -> None:
        for name in SMALL_FILES:
            path = self._path(name)
            if name not in self._names:
                if name == checkpoints.PARTITION_METADATA and f"/{STATE_TOPIC}-" not in self.folder:
                    self.report.warning(path, "is missing", "nothing; the topic's id is in the cluster's metadata")
                continue
            try:
                data = self.disk.read(path)
                if name == checkpoints.LEADER_EPOCHS:
                    self._epochs = checkpoints.parse_epochs(data, path)
                elif data:
                    checkpoints.parse_partition_metadata(data, path)
            except LogkernelError as error:
                what = str(error).removeprefix(path).lstrip(",: ")
                if name == checkpoints.LEADER_EPOCHS:
                    self.report.error(path, what, BY_REPAIR)
                    self.repair_from, self.epochs_lie = 0, True
                elif self.unsynced_from < END:
                    self.report.warning(path, what, "opening the directory removes it; a crash left it")
                else:
                    self.report.error(path, what, "remove it, or write the topic's id into it")
            except OSError as error:
                self._unreadable(path, error)

    def _unreadable(self, path: str, error: OSError) -> None:
        self._damaged = True
        self.report.error(
            path, f"cannot be read: {error.strerror or error}", "check the disk; copy the file from a replica"
        )

    # ------------------------------------------------------------ records

    def _segment(self, base: int) -> None:
        path = self._path(offset_name(base, LOG))
        self.report.segments += 1
        found = _Batches()
        if base < self.end_offset:
            self._damage(path, 0, base, f"starts at {base}, but the previous segment ends at {self.end_offset}")
        if base > self.end_offset:
            self._compacted = True
            self._check_hole(path, base)
        self._holes.before = base
        self.end_offset = max(self.end_offset, base)
        self._check_snapshot(base)
        aborted: list[Abort] = []
        try:
            for facts, data, position in self._walk(path, base):
                found.note(position, facts)
                if facts.producer_id >= 0:
                    self._fold(path, position, facts, data, aborted)
        except OSError as error:
            self._unreadable(path, error)
        size = self.disk.size(path)
        self._guarded(base, INDEX, lambda: self._check_index(base, found, size))
        self._guarded(base, TIME_INDEX, lambda: self._check_times(base, found))
        self._guarded(base, TXN_INDEX, lambda: self._check_aborted(base, aborted))

    def _check_hole(self, path: str, base: int) -> None:
        end = self.end_offset
        if self.unsynced_from == END and self._holes.is_damage(end, base):
            self.report.error(path, f"offsets {end} to {base - 1} before it are missing", MISSING)

    def _walk(self, path: str, base: int) -> Iterator[tuple[BatchFacts, bytes, int]]:
        file = self.disk.open(path, write=False)
        position, expected, epoch = 0, base, -1
        while position < file.size:
            try:
                found = batch_at(file, position)
            except CorruptMessage as error:
                found, why = None, str(error)
            else:
                why = f"{file.size - position} bytes are not a complete batch"
            if found is None:
                self._damage(path, position, expected, why)
                self.report.bytes += file.size - position
                self.report.advance(file.size - position, path)
                return
            facts, data = found
            self._compacted = self._compacted or facts.base_offset > expected or not facts.count
            self._check_batch(path, position, facts, data, expected, base)
            if facts.leader_epoch < epoch:
                self._damage(path, position, expected, f"leader epoch {facts.leader_epoch} follows {epoch}")
            epoch = max(epoch, facts.leader_epoch)
            self._check_epoch(path, position, facts)
            yield facts, data, position
            expected = max(expected, facts.last_offset + 1)
            self.end_offset = expected
            position += facts.size
            self.report.batches += 1
            self.report.bytes += facts.size
            self.report.advance(facts.size, path)

    def _check_batch(self, path: str, position: int, facts: BatchFacts, data: bytes, expected: int, base: int) -> None:
        if facts.base_offset < expected or facts.last_offset < facts.base_offset:
            what = f"offsets {facts.base_offset} to {facts.last_offset} follow {expected - 1}"
            self._damage(path, position, expected, what)
        if facts.last_offset - base > MAX_RELATIVE:
            what = f"offset {facts.last_offset} is too far from the base offset {base}"
            self._damage(path, position, expected, what)
        try:
            check_stored(data, 0)
            self.report.records += self._check_records(facts, data)
        except UnsupportedCompressionType as error:
            self.report.warning(path, f"records not checked: {error}", "install the codec's plugin", position)
        except (KafkaError, LogkernelError) as error:
            self._damage(path, position, expected, str(error).replace("batch at 0, ", ""))

    def _damage(self, path: str, position: int, offset: int, what: str) -> None:
        """Something is wrong with the records at `offset`."""
        self._damaged = True
        self.cut_at = self.cut_at or (path, position)
        if offset >= self.unsynced_from:
            self.report.warning(path, what, "recovery truncates the log there; it was perhaps never synced", position)
        else:
            self.report.error(path, what, CUT, position)

    def _check_records(self, facts: BatchFacts, data: bytes) -> int:
        """How many there are. Raises `KafkaError` where they are not what the header says."""
        if facts.magic < 2:
            from logkernel.record.legacy import decode_message

            return len(decode_message(data, facts, self.codec_for))
        records = decode_batch(data, facts, self.codec_for)
        last = facts.base_offset - 1
        for record in records:
            if not last < record.offset <= facts.last_offset:
                raise CorruptMessage(f"record offset {record.offset} follows {last} in a batch to {facts.last_offset}")
            if record.timestamp_ms > facts.max_timestamp_ms:
                raise CorruptMessage(
                    f"record {record.offset} of {record.timestamp_ms} is later than its batch, {facts.max_timestamp_ms}"
                )
            last = record.offset
        return len(records)

    def _check_epoch(self, path: str, position: int, facts: BatchFacts) -> None:
        if self._epochs is None or self._damaged or facts.leader_epoch < 0 or facts.base_offset < self.log_start:
            return
        known = -1
        for entry in self._epochs:
            if entry.start_offset > facts.base_offset:
                break
            known = entry.epoch
        if known != facts.leader_epoch:
            self._lies(
                self._path(checkpoints.LEADER_EPOCHS),
                None,
                f"says epoch {known} of offset {facts.base_offset}, its batch says {facts.leader_epoch}",
            )
            self.repair_from, self.epochs_lie = self.start_offset, True
            self._epochs = None  # one such finding is enough

    # ------------------------------------------------------------ indexes

    def _guarded(self, base: int, suffix: str, check: Callable[[], None]) -> None:
        """Run `check` if the file is there; a file that is none is a finding."""
        name = offset_name(base, suffix)
        path = self._path(name)
        try:
            if suffix == TXN_INDEX or name in self._names:
                check()
            elif self.disk.size(self._path(offset_name(base, LOG))):
                self.report.warning(path, "is missing", BY_OPENING)
        except LogkernelError as error:
            self._lies(path, None, str(error).removeprefix(path).lstrip(": "))
        except OSError as error:
            self._unreadable(path, error)

    def _check_index(self, base: int, found: _Batches, log_bytes: int) -> None:
        path = self._path(offset_name(base, INDEX))
        self._check_length(path, OffsetIndex.ENTRY.size)
        last, before = base - 1, -1
        for number, row in enumerate(index_rows(self.disk, path)):
            offset, position, at = row["offset"], row["position"], number * OffsetIndex.ENTRY.size
            if offset <= last or position <= before:
                self._lies(path, at, f"entry {(offset, position)} follows {(last, before)}")
                return
            batch = bisect_left(found.starts, position)
            if position >= log_bytes or batch == len(found.starts) or found.starts[batch] != position:
                if not self._damaged:
                    self._lies(path, at, f"entry {(offset, position)}: no batch starts there")
                return
            if not found.firsts[batch] <= offset <= found.lasts[-1]:
                self._lies(path, at, f"entry {(offset, position)}: the batch there begins at {found.firsts[batch]}")
            last, before = offset, position

    def _check_times(self, base: int, found: _Batches) -> None:
        path = self._path(offset_name(base, TIME_INDEX))
        self._check_length(path, TimeIndex.ENTRY.size)
        last, before = -1, base - 1
        for number, row in enumerate(time_rows(self.disk, path)):
            timestamp, offset, at = row["timestamp"], row["offset"], number * TimeIndex.ENTRY.size
            if timestamp <= last or offset < before:
                self._lies(path, at, f"entry {(timestamp, offset)} follows {(last, before)}")
                return
            batch = bisect_left(found.lasts, offset)
            if batch == len(found.lasts):
                if not self._damaged:
                    self._lies(path, at, f"entry {(timestamp, offset)}: the segment ends before that offset")
                return
            earlier = found.latest[batch - 1] if batch else -1
            if earlier > timestamp or found.times[batch] != timestamp:
                self._lies(
                    path,
                    at,
                    f"entry {(timestamp, offset)}: the batch there is of {found.times[batch]},"
                    f" those before it reach {earlier}",
                )
            last, before = timestamp, offset

    def _check_length(self, path: str, entry: int) -> None:
        size = self.disk.size(path)
        if size % entry:
            self._lies(path, size - size % entry, f"{size} bytes are not a multiple of {entry}")

    def _lies(self, path: str, position: int | None, what: str) -> None:
        """A file that was derived from the records says something else than they do."""
        if self._loose:
            self.report.warning(path, what, BY_OPENING, position)
        else:
            self.report.error(path, what, BY_REPAIR, position)

    # ------------------------------------------------------------ producers

    def _start_ledger(self) -> None:
        """Before the first segment there may have been others: what they did is in the snapshot at its base."""
        name = offset_name(self.start_offset, SNAPSHOT)
        self._knows_all = self.start_offset == 0
        if name in self._names:
            try:
                self._ledger.load(snapshot.decode(self.disk.read(self._path(name))))
                self._knows_all = True
            except CorruptMessage:
                pass  # a finding of `_check_snapshot`

    def _fold(self, path: str, position: int, facts: BatchFacts, data: bytes, aborted: list[Abort]) -> None:
        try:
            self._ledger.replay(facts, data if facts.is_control else None)
            abort = self._transactions.note(facts, data)
            if abort is not None:
                aborted.append(abort)
        except KafkaError as error:
            self._damage(path, position, facts.base_offset, f"control batch: {error}")

    def _check_snapshot(self, offset: int) -> None:
        """The snapshot at `offset`, to which the ledger has come."""
        name = offset_name(offset, SNAPSHOT)
        path = self._path(name)
        if name not in self._names:
            return
        try:
            entries = snapshot.decode(self.disk.read(path))
        except CorruptMessage as error:
            # not synced when it is written: another one, or the log, gives the same state
            self.report.warning(path, str(error), "remove it; a broker does so itself if need be")
            return
        known = {entry.producer_id: entry for entry in self._ledger.entries()}
        for entry in entries:
            mine = known.get(entry.producer_id)
            if mine is None or self._damaged or not self._knows_all:
                continue
            last, seen = entry.batches[-1:], mine.batches[-1:]
            if self._compacted and is_behind(mine, entry):
                continue
            if entry.producer_epoch != mine.producer_epoch or [b[:2] for b in last] != [b[:2] for b in seen]:
                self._lies(
                    path,
                    None,
                    f"producer {entry.producer_id} at epoch {entry.producer_epoch} with (sequence, offset)"
                    f" {last[0][:2] if last else None}; the log says epoch {mine.producer_epoch},"
                    f" {seen[0][:2] if seen else None}",
                )
                return

    def _check_aborted(self, base: int, aborted: list[Abort]) -> None:
        name = offset_name(base, TXN_INDEX)
        path = self._path(name)
        rows = list(aborted_rows(self.disk, path)) if name in self._names else []
        removing = not rows and not self._names.isdisjoint((name + DELETED, name + SWAP))
        if self._damaged or not self._knows_all or removing:
            return
        there = {(row["producerId"], row["firstOffset"], row["lastOffset"]) for row in rows}
        for what in wrong_rows(there, aborted, self.start_offset, self._compacted):
            self._lies(path, None, what)

    # ------------------------------------------------------------ the end

    def _check_ends(self) -> None:
        for at in sorted(at for name in self._names if (at := offset_of(name, SNAPSHOT)) is not None):
            if at > self.end_offset and not self._damaged:
                self.report.warning(
                    self._path(offset_name(at, SNAPSHOT)),
                    f"lies past the log end {self.end_offset}",
                    "opening the directory removes it",
                )
            elif at == self.end_offset and offset_name(at, LOG) not in self._names:
                self._check_snapshot(at)
        if self._epochs and self._epochs[-1].start_offset > self.end_offset:
            self.report.warning(
                self._path(checkpoints.LEADER_EPOCHS),
                f"epoch {self._epochs[-1].epoch} starts at {self._epochs[-1].start_offset}, past the log end"
                f" {self.end_offset}",
                BY_OPENING,
            )
