"""One partition's log: what is written and read all day.

`log_lifecycle`, `truncation` and `compaction` hold the rest of its life.

Invariants: `start_offset <= end_offset`, `recovery_point <= end_offset`, all below `recovery_point` is synced; the last
segment is the active one and the only one that is written. One thread drives a log; only `Flush.run`, and the
reading of a `FileSlice`, may happen in another. Every method that touches the disk may raise `OSError`; after
`fail`, every one raises `KafkaStorageError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.contracts import Buffer
from logkernel.errors import CorruptMessage, OffsetOutOfRange, RecordListTooLarge
from logkernel.record.bounds import CodecFor
from logkernel.storage import timestamps
from logkernel.storage.compaction.log_rewrites import LogRewrites
from logkernel.storage.disk import Disk
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.log_lifecycle import RollObserver
from logkernel.storage.segment import MAX_RELATIVE, Segment
from logkernel.vocabulary import AbortedTxn, BatchFacts, FileSlice, LogPosition, SegmentFacts, TimestampAndOffset

OPEN_OLD_SEGMENTS = 4
"""Sealed segments whose descriptors stay open for readers."""


class Log(LogRewrites):
    """Made by `Log.open`."""

    __slots__ = ()

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        topic: str,
        partition: int,
        settings: TopicSettings,
        *,
        recovery_point: int = 0,
        log_start: int = 0,
        clean: bool = False,
        wall_ms: int = 0,
        producers: ProducerLedger,
        on_roll: RollObserver | None = None,
        topic_id: UUID | None = None,
        jitter: float = 0.0,
        folder: str | None = None,
        clean_offset: int | None = None,
        file_deleter: FileDeleter | None = None,
    ) -> Log:
        """Open the log in `directory`/`topic`-`partition`, recovering it unless `clean`, or make it.

        `folder` is the name of its folder where that is another, e.g. while it is not the partition's log yet.
        `recovery_point` and `log_start` are what the directory's checkpoints say; `topic_id` is noted in a
        new folder, and read from an old one; `jitter` in [0, 1) is the part of `segment.jitter.ms` that
        `segment.ms` is shortened by; `clean_offset` is what the cleaner's checkpoint says; `file_deleter` removes what
        is dropped, which goes at once where there is none.
        """
        return cls(
            disk,
            directory,
            topic,
            partition,
            settings,
            recovery_point=recovery_point,
            log_start=log_start,
            clean=clean,
            wall_ms=wall_ms,
            producers=producers,
            on_roll=on_roll,
            topic_id=topic_id,
            jitter=jitter,
            folder=folder,
            clean_offset=clean_offset,
            file_deleter=file_deleter,
        )

    # ------------------------------------------------------------ append

    def append(self, data: Buffer, batches: Sequence[BatchFacts], wall_ms: int) -> None:
        """Append `data`, whose `batches` (positions relative to it) already have their offsets, the first one
        `end_offset` or, in a copy of a compacted log, above it. After an `OSError` the log is as before."""
        if self.failure is not None:
            raise self._offline()
        first, last = batches[0], batches[-1].last_offset
        if first.base_offset < self.end_offset:
            raise CorruptMessage(f"{self.name}: offset {first.base_offset} is below the log end {self.end_offset}")
        active = self._active
        settings = self.settings
        size = active.size + len(data)
        index, times = active.index, active.times
        if (
            size > settings.segment_bytes
            or last - active.base > MAX_RELATIVE
            or index.count >= index.full_at
            or times.count >= times.full_at
            or self._is_old(active, batches, wall_ms)
        ) and (active.size or last - active.base > MAX_RELATIVE):
            self.roll(wall_ms, first.base_offset if last - self.end_offset > MAX_RELATIVE else None)
            active = self._active
        elif size > MAX_RELATIVE:
            raise RecordListTooLarge(f"{self.name}: {len(data)} bytes do not fit a segment")
        active.append(data, batches, settings.index_interval_bytes)
        self.end_offset = last + 1
        for facts in batches:
            if facts.leader_epoch > self.epochs.latest:
                self.epochs.assign(facts.leader_epoch, facts.base_offset)

    def _is_old(self, active: Segment, batches: Sequence[BatchFacts], wall_ms: int) -> bool:
        """Is `segment.ms` over? It counts in record timestamps from the first batch on, as Kafka counts it."""
        first_ms = active.first_ms
        if first_ms is None:
            first_ms = active.first_timestamp()
            if first_ms is None:
                return False
        if first_ms >= 0:
            newest_ms = batches[0].max_timestamp_ms
            for facts in batches[1:]:
                newest_ms = max(newest_ms, facts.max_timestamp_ms)
            waited = newest_ms - first_ms
        else:
            waited = wall_ms - active.created_ms
        if self.settings is not self._aging_by:
            self._aging_by = self.settings
            self._oldest_ms = self._age_limit_ms()
        return waited > self._oldest_ms

    def _age_limit_ms(self) -> int:
        settings = self.settings
        limit = settings.segment_ms
        if "compact" in settings.cleanup_policy:
            limit = min(limit, settings.max_compaction_lag_ms)  # what must be compacted by then must be closed by then
        return limit - int(self._jitter * min(settings.segment_jitter_ms, limit))

    def note_aborted(self, row: AbortedTxn) -> None:
        """An abort marker, appended just now, ended `row`."""
        self._check()
        self._segments[self._floor(row.last_offset)].txns.append(row)
        self._new_names = True

    # ------------------------------------------------------------ read

    def read(
        self, offset: int, max_bytes: int, end: LogPosition | None = None, *, min_one: bool = True
    ) -> FileSlice | None:
        """Bytes from the batch that holds `offset`, at most `max_bytes`, ending before `end`; None without any.

        With `min_one` the first batch comes whole even if it is larger. The last batch may be cut off.
        Raises `OffsetOutOfRange` below the log start and above the log end.
        """
        if self.failure is not None:
            raise self._offline()
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"{self.name}: {offset} is not in {self.start_offset}..{self.end_offset}")
        segment = self._active
        at = len(self._segments)
        if offset < segment.base:
            at = self._floor(offset) + 1
            segment = self._segments[at - 1]
        while (found := segment.find(offset)) is None:
            if at == len(self._segments):
                return None
            segment = self._segments[at]
            at += 1
        if segment is not self._active:
            self._use(segment)
            if segment.is_emptied_at(*found):
                segment, found = self._behind_emptied(segment, found, at, offset, end)
        position, first_size = found
        limit = segment.size
        if end is not None and end.segment <= segment.base:
            limit = end.position if end.segment == segment.base else 0
        size = limit - position
        if size > max_bytes:
            size = max(max_bytes, min(first_size, size)) if min_one else max_bytes
        if size <= 0:
            return None
        file = segment.file
        return FileSlice(file.fileno(), position, size, file)

    def _behind_emptied(
        self, segment: Segment, found: tuple[int, int], at: int, offset: int, end: LogPosition | None
    ) -> tuple[Segment, tuple[int, int]]:
        """Where to read instead of at `found`, of which a rewrite left where its segment ends: at the first batch with
        records in the segments from number `at` on, up to `end`; where there is none, at the last without.

        A client takes answers without a record for a limit that is too small, and soon for an error (librdkafka).
        """
        for behind in self._segments[at:]:
            following = behind.find(offset)
            if following is None:
                continue
            if end is not None and (end.segment, end.position) <= (behind.base, following[0]):
                break
            segment, found = behind, following
            if segment is self._active:
                break
            self._use(segment)
            if not segment.is_emptied_at(*found):
                break
        return segment, found

    def _use(self, segment: Segment) -> None:
        """A sealed segment is read: keep its descriptors, give back those of the one that was read longest ago."""
        recent = self._recent
        if recent and recent[-1] is segment:
            return
        if segment in recent:
            recent.remove(segment)
        recent.append(segment)
        if len(recent) > OPEN_OLD_SEGMENTS:
            recent.pop(0).release()

    def position_of(self, offset: int) -> LogPosition:
        """Where the batch that holds `offset`, or the next one, starts; the end of the log for `end_offset`.

        Raises `OffsetOutOfRange`.
        """
        self._check()
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"{self.name}: {offset} is not in {self.start_offset}..{self.end_offset}")
        if offset < self.end_offset:
            for segment in self._segments[self._floor(offset) :]:
                found = segment.find(offset)
                if found is not None:
                    return LogPosition(offset, segment.base, found[0])
        return LogPosition(offset, self._active.base, self._active.size)

    def offset_for_timestamp(self, timestamp_ms: int, codec_for: CodecFor) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`."""
        self._check()
        return timestamps.first_at_or_after(self._segments, self.start_offset, timestamp_ms, codec_for)

    def offset_of_max_timestamp(self, codec_for: CodecFor) -> TimestampAndOffset | None:
        """The first record with the largest timestamp of the log."""
        self._check()
        return timestamps.latest(self._segments, self.start_offset, codec_for)

    def aborted_within(self, start: int, found: FileSlice, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `found`, which `read` gave for `start`, may meet records below
        `end`: not all that were aborted since, however far behind the reader is."""
        for segment in self._segments[self._floor(start) :]:
            if segment.file is found.owner:
                end = min(end, segment.offset_behind(found.position + found.size))
                break
        return self.aborted_in(start, end)

    # ------------------------------------------------------------ facts

    def facts(self) -> tuple[SegmentFacts, ...]:
        """What cleanup may know, oldest segment first."""
        self._check()
        self._note_policy()
        return tuple([segment.facts or self._facts(segment) for segment in self._segments])

    @property
    def size_bytes(self) -> int:
        """Bytes of all records."""
        return sum(segment.size for segment in self._segments)

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def active_is_empty(self) -> bool:
        return not self._active.size

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self._bases[0]
