"""A rewrite of closed segments, group by group (`contracts.Rewrite`): read, filter, write, swap.

Reading and writing are for a worker thread ("away"), the log's own lists for the log's thread ("here"):

| phase | where | does | a crash behind it finds |
|---|---|---|---|
| COPY | away | writes `<base>.log.cleaned` and indexes, syncs them and their names | the old segments |
| COMMIT | away | `.cleaned` → `.swap`: indexes, sync, then the log, sync | the new segment: opening finishes the swap |
| REPLACE | here | the new segment takes the place of the old ones in the log | the same |
| RETIRE | away | old files → `.deleted`, sync | the same |
| FINISH | here | `.swap` → plain names, indexes first | the same |
| DONE | | all groups are through | |

First the log is synced: nothing durable may give way to what a crash takes. Before COPY the folder is synced, so that
no name of an earlier swap is still on its way: opening takes `.swap` files behind a `.cleaned` one for unfinished. At
most one group is on disk twice, as old files go before the next group is copied. `stop` may come at any time from the
log's thread: before COMMIT nothing happened, behind it the swap is finished on the spot.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence

from logkernel.config.topic import TopicSettings
from logkernel.contracts import KeepRule, Rewrite
from logkernel.errors import CorruptMessage, InvalidConfig, KafkaError, RewriteStopped
from logkernel.record import loops
from logkernel.record.batch import HEADER_BYTES, LENGTH_OFFSET, LOG_OVERHEAD, batches, parse_header
from logkernel.record.bounds import CodecFor
from logkernel.record.decode import check_crc
from logkernel.record.filtering import (
    BatchFilter,
    LastOfProducer,
    Run,
    Tally,
    Transactions,
    as_v2,
    marker_kind,
    view_of,
)
from logkernel.storage.compaction.segment_writer import SegmentWriter, Throttle
from logkernel.storage.disk import File
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.names import CLEANED, DELETED, LOG, SEGMENT_SUFFIXES, SNAPSHOT, SWAP, offset_name
from logkernel.storage.segment import MAX_RELATIVE, Segment
from logkernel.storage.segments import Segments
from logkernel.vocabulary import BatchFacts, ProducerEntry, TopicPartition

LEAST_CHUNK_BYTES = 1 << 16
RUN_BYTES = 1 << 16
"""Small batches are judged in pieces of this many bytes, some 0.2 ms of work; other threads run in between."""
SMALL_BATCH_BYTES = 1024
"""Batches up to this size are shown many at a time to a rule that takes them so."""
INDEX_SUFFIXES = tuple(suffix for suffix in SEGMENT_SUFFIXES if suffix != LOG)
COPY, COMMIT, REPLACE, RETIRE, FINISH, DONE = "COPY", "COMMIT", "REPLACE", "RETIRE", "FINISH", "DONE"

_give_way: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
RunOf = Callable[[bytes, int, int], int]
"""Given bytes, where a batch begins and where to stop: takes what it can, returns where the next batch begins."""


class Rewriting:
    """One rewrite of one log, made by `Compaction.begin`. Call `work` and `step` in turns until `done`."""

    def __init__(
        self,
        name: TopicPartition,
        folder: LogFolder,
        segments: Segments,
        producers: Sequence[ProducerEntry],
        settings: TopicSettings,
        plan: Rewrite,
        codec_for: CodecFor,
        wall_ms: int,
        *,
        buffer_bytes: int,
        throttle: Throttle | None = None,
    ) -> None:
        self.phase = COPY
        self.end = plan.end
        """Where the rewrite ends: below `plan.end` where the rule had no room for more."""
        self.swapped = 0
        """Groups that were replaced."""
        self._start, self._bound, self._tombstones = plan.start, plan.end, plan.tombstones
        self._rule: KeepRule | None = plan.rule
        """None once all is through: what it learned may be large, and giving that back takes its time, too."""
        self._name = name
        self._folder = folder
        self._in_log = segments
        self._settings = settings
        self._codec_for = codec_for
        self._wall_ms = wall_ms
        self._chunk_bytes = max(LEAST_CHUNK_BYTES, buffer_bytes)
        self._throttle: Throttle = throttle or (lambda size: None)
        self._lock = threading.Lock()
        self._stopped = False
        self._loose = segments.loose
        self._segments = [segment for segment in segments.closed if segment.base < plan.end]
        self._aborted = segments.aborted_in(self._segments[0].base, plan.end) if self._segments else []
        self._producers = {
            entry.producer_id: LastOfProducer(entry.producer_epoch, entry.batches[-1][1] if entry.batches else None)
            for entry in producers
        }
        self._groups: list[list[Segment]] | None = None
        self._tally = Tally()
        self._filter: BatchFilter | None = None
        self._group: list[Segment] = []
        self._new: Segment | None = None
        self._retired: list[str] = []
        self.garbage: list[str] = []
        """Files of segments that were replaced; the worker removes them before it copies the next group."""

    @property
    def done(self) -> bool:
        return self.phase == DONE

    @property
    def stopped(self) -> bool:
        return self._stopped

    @property
    def records(self) -> tuple[int, int]:
        """Records read and records left, of the segments that were rewritten."""
        return self._tally.records_in, self._tally.records_out

    @property
    def spans(self) -> int:
        """Offsets of those segments."""
        return sum(each.next_offset - each.base for each in self._segments if each.base < self.end)

    # ------------------------------------------------------------ in turns

    def work(self) -> None:
        """The next part that is for a worker. Raises `RewriteStopped`; `CorruptMessage`, which names the place, for
        rotten bytes; `OSError`; then nothing of the group at hand has happened, unless it is in RETIRE."""
        if self.phase == RETIRE:
            with self._lock:
                if self.phase == RETIRE:
                    self._retire()
        if self.phase != COPY:
            return
        try:
            self._remove_garbage()
            if self._groups is None:
                self._sync()
                self._learn()
            while self._next_group():
                if self._copy():
                    self._commit()
                    return
            self._rule = self._filter = None
            with self._lock:
                self.phase = DONE
        except BaseException as error:
            self._rule = self._filter = None
            self._discard()
            if self._stopped and isinstance(error, OSError):  # its files went under it
                raise RewriteStopped(f"{self._name}: the rewrite was stopped") from error
            raise

    @property
    def swap_failed(self) -> bool:
        """Whether an `OSError` may have left files half renamed; opening the log again repairs that."""
        return self.phase not in (COPY, DONE)

    def step(self) -> None:
        """The next part that is for the log's thread. Raises `OSError`."""
        if self.phase == REPLACE:
            self._replace()
        elif self.phase == FINISH:
            self._finish()

    def run(self) -> None:
        """Everything, here and now."""
        while not self.done:
            self.work()
            self.step()

    def stop(self, *, finish: bool = True) -> None:
        """From the log's thread: come to an end. With `finish` a swap under way is finished."""
        self._stopped = True
        with self._lock:
            if finish:
                if self.phase == REPLACE:
                    self._replace()
                if self.phase == RETIRE:
                    self._retire()
                if self.phase == FINISH:
                    self._finish()
            self.phase = DONE
        self._folder.drop_later(self.garbage)

    def uses(self, segment: Segment) -> bool:
        return not self.done and segment.base < self._bound

    def _check(self) -> None:
        if self._stopped:
            raise RewriteStopped(f"{self._name}: the rewrite was stopped")

    # ------------------------------------------------------------ away

    def _remove_garbage(self) -> None:
        """Remove the old files at once, as the next group needs the space; readers keep their open files."""
        for path in self.garbage:
            with contextlib.suppress(FileNotFoundError):
                self._folder.disk.remove(path)
        self.garbage = []

    def _sync(self) -> None:
        """Make the log durable, to its very end: neither may a durable record give way to one that a crash takes, nor
        a producer's last durable batch to a later one."""
        for segment in self._loose:
            segment.sync()

    def _learn(self) -> None:
        """Let the rule learn, and form groups of the segments below the offset that it reached."""
        rule = self._rule
        assert rule is not None
        dirty = [segment for segment in self._segments if segment.next_offset > self._start]
        base = dirty[0].base if dirty else self._bound
        transactions = Transactions([row for row in self._aborted if row.last_offset >= base])
        for segment in dirty:
            full = self._learn_from(segment, rule, transactions)
            if full is not None:
                self.end = full
                break
        if dirty and self.end <= self._start:
            raise InvalidConfig(
                f"{self._name}: the table of keys has no room for the first record;"
                " raise log.cleaner.dedupe.buffer.size"
            )
        settings = self._settings
        below = [each for each in self._segments if each.base < self.end]
        self._groups = list(reversed(grouped(below, settings.segment_bytes)))
        self._filter = BatchFilter(
            rule, self.end, self._bound, self._wall_ms, settings.delete_retention_ms, self._tombstones,
            Transactions(self._aborted), self._producers, self._codec_for, self._tally,
        )  # fmt: skip

    def _learn_from(self, segment: Segment, rule: KeepRule, transactions: Transactions) -> int | None:
        """The offset that the rule had no room for, if any."""
        start, learn, codec_for = self._start, rule.learn, self._codec_for

        def run_of(chunk: bytes, at: int, end: int) -> int:
            rows, behind = loops.small_batches(chunk, at, end, SMALL_BATCH_BYTES, b"")
            if not rows:
                return at
            run = Run(chunk, rows)
            done = rule.learn_run(run)  # type: ignore[attr-defined]
            return behind if done >= len(run) else run.position(done)

        for position, chunk, facts in self._batches(segment, run_of if hasattr(rule, "learn_run") else None):
            if facts.last_offset < start and not facts.is_transactional:
                continue
            try:
                if facts.magic < 2:
                    chunk = as_v2(chunk, facts, codec_for)
                    facts = parse_header(chunk, 0)
                else:
                    check_crc(chunk, facts)
                if facts.is_control:
                    transactions.ended(facts, marker_kind(chunk, facts))
                    continue
                if transactions.is_aborted(facts) or not facts.count or facts.last_offset < start:
                    continue
                full = learn(view_of(chunk, facts, codec_for))
            except KafkaError as error:
                raise _rotten(segment, position, error) from error
            if full is not None:
                return full
        return None

    def _next_group(self) -> bool:
        self._check()
        if not self._groups:
            return False
        self._group = self._groups.pop()
        return True

    def _copy(self) -> bool:
        """Write the group's new segment; return False if it would change nothing."""
        folder, settings, first = self._folder, self._settings, self._group[0]
        judge = self._filter
        assert judge is not None
        folder.sync()
        for suffix in SEGMENT_SUFFIXES:
            _remove(folder, f"{folder.path}/{offset_name(first.base, suffix)}{CLEANED}")
        new = Segment(folder.disk, folder.path, first.base, first.created_ms, settings.segment_index_bytes, CLEANED)
        new.create()
        self._new = new
        judge.tally.changed = len(self._group) > 1
        writer = SegmentWriter(new, settings.index_interval_bytes, self._chunk_bytes, self._throttle)
        for segment in self._group:
            self._copy_segment(segment, judge, writer, segment is self._group[-1])
        writer.flush()
        if not judge.tally.changed:
            judge.aborted.clear()
            self._discard()
            return False
        new.next_offset = self._group[-1].next_offset
        for row in judge.aborted:
            new.txns.append(row)
        judge.aborted.clear()
        new.seal()
        new.sync()
        folder.sync()  # `.log.cleaned` must be there before any `.swap`: it says what these are
        new.release()
        return True

    def _copy_segment(self, segment: Segment, judge: BatchFilter, writer: SegmentWriter, is_last: bool) -> None:
        size, rule = segment.size, judge.rule
        barriers = judge.barriers

        def run_of(chunk: bytes, at: int, end: int) -> int:
            rows, behind = loops.small_batches(chunk, at, end, SMALL_BATCH_BYTES, barriers)
            if not rows:
                return at
            run = Run(chunk, rows)
            verdicts = rule.keep_run(run, self.end)  # type: ignore[attr-defined]
            for data, last_offset, max_timestamp_ms in judge.filter_run(run, verdicts):
                writer.add(data, last_offset, max_timestamp_ms)
            return behind if len(verdicts) >= len(run) else run.position(len(verdicts))

        for position, chunk, facts in self._batches(
            segment, run_of if hasattr(rule, "keep_run") else None, spare_last=is_last
        ):
            final = is_last and position + facts.size == size
            try:
                left = judge.filter(chunk, facts, is_last=final)
            except KafkaError as error:
                raise _rotten(segment, position, error) from error
            if left is not None:
                writer.put(left)

    def _batches(
        self, segment: Segment, run_of: RunOf | None = None, *, spare_last: bool = False
    ) -> Iterator[tuple[int, bytes, BatchFacts]]:
        """(position in the file, bytes that were read, facts at their position in these) of each batch that `run_of`
        does not take; of what is read last it gets only a part where the segment's last batch is to be spared."""
        file = self._folder.disk.open(segment.log_path, write=False)
        position, size = 0, segment.size
        while position < size:
            self._check()
            chunk = _read_whole(file, position, size, self._chunk_bytes)
            self._throttle(len(chunk))
            done = 0
            end = len(chunk)
            if spare_last and position + end == size:
                end = max(0, end - SMALL_BATCH_BYTES)
            try:
                found = batches(chunk)
                while True:
                    if run_of is not None and end > done:
                        _give_way()
                        behind = run_of(chunk, done, min(end, done + RUN_BYTES))
                        if behind != done:
                            done = behind
                            found = batches(chunk, done)
                    facts = next(found, None)
                    if facts is None:
                        break
                    done = facts.position + facts.size
                    yield position + facts.position, chunk, facts
            except CorruptMessage as error:
                raise _rotten(segment, position + done, error) from error
            if done == 0:
                raise _rotten(segment, position, "no whole batch lies here")
            position += done

    def _commit(self) -> None:
        """From here on the new segment is the one that counts, whatever happens."""
        folder, new = self._folder, self._new
        assert new is not None
        with self._lock:
            self._check()
            self.phase = COMMIT
            new.rename(INDEX_SUFFIXES, SWAP)
            folder.sync()
            new.rename((LOG,), SWAP)
            folder.sync()
            new.retitle(SWAP)
            self.phase = REPLACE

    def _retire(self) -> None:
        disk = self._folder.disk
        for segment in self._group:
            self._retired += segment.rename_deleted()
            path = segment.path(SNAPSHOT)
            if segment is not self._group[0] and disk.exists(path):
                disk.rename(path, path + DELETED)
                self._retired.append(path + DELETED)
        self._folder.sync()
        self.phase = FINISH

    def _discard(self) -> None:
        """Remove what was written of the group at hand; what cannot be removed goes when the log is opened."""
        new = self._new
        if new is not None and self.phase in (COPY, DONE):
            self._new = None
            new.release()
            with contextlib.suppress(OSError):
                for suffix in SEGMENT_SUFFIXES:
                    _remove(self._folder, f"{self._folder.path}/{offset_name(new.base, suffix)}{CLEANED}")

    # ------------------------------------------------------------ here

    def _replace(self) -> None:
        assert self._new is not None
        self._in_log.replace(self._group, self._new)
        self.swapped += 1
        self.phase = RETIRE

    def _finish(self) -> None:
        new = self._new
        assert new is not None
        new.release()
        new.rename((*INDEX_SUFFIXES, LOG), "")
        new.retitle("")
        self.garbage = self._retired
        self._new, self._retired, self._group = None, [], []
        self.phase = COPY


def grouped(segments: Sequence[Segment], segment_bytes: int) -> list[list[Segment]]:
    """Neighbours that fit one segment together, by what they hold now."""
    groups: list[list[Segment]] = []
    size = index = times = 0
    for segment in segments:
        size += segment.size
        index += segment.index.count
        times += segment.times.count
        if (
            not groups
            or size > segment_bytes
            or index > segment.index.limit
            or times > segment.times.limit
            or segment.next_offset - groups[-1][0].base > MAX_RELATIVE
        ):
            groups.append([])
            size, index, times = segment.size, segment.index.count, segment.times.count
        groups[-1].append(segment)
    return groups


def _read_whole(file: File, position: int, size: int, chunk_bytes: int) -> bytes:
    """A stretch that begins with a whole batch, if there is one."""
    chunk = file.read(position, min(chunk_bytes, size - position))
    if len(chunk) >= LOG_OVERHEAD:
        whole = int.from_bytes(chunk[LENGTH_OFFSET:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
        if max(len(chunk), HEADER_BYTES) < whole <= size - position:
            chunk = file.read(position, whole)
    return chunk


def _remove(folder: LogFolder, path: str) -> None:
    if folder.disk.exists(path):
        folder.disk.remove(path)


def _rotten(segment: Segment, position: int, why: object) -> CorruptMessage:
    """The error that names the place."""
    return CorruptMessage(f"{segment.log_path}, byte {position}: {why}")
