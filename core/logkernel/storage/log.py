"""One partition's log: the door to its parts, and the owner of its bounds.

    segments     what it consists of, the active one last       truncation   cuts at the end, drops at the start
    folder       names that may be lost, files that go          compaction   the rewrite under way
    epochs       where leader epochs start                      producers    their state, as snapshots
    flusher      how far it is durable                          roll         when the active one is closed, and how
                                                                (LogLoader opens all this, and is done)

Invariants: `start_offset <= end_offset`, `recovery_point <= end_offset`, all below `recovery_point` is synced. One
thread drives a log; only `Flush.run`, the away part of a rewrite, and the reading of a `FileSlice` may happen in
another. Every method that touches the disk may raise `OSError`; after `fail`, every one raises `KafkaStorageError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.contracts import Buffer, Rewrite
from logkernel.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange, RecordListTooLarge
from logkernel.record.bounds import CodecFor
from logkernel.storage import timestamps
from logkernel.storage.compaction.compaction import Compaction
from logkernel.storage.disk import Disk
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.flush import Flush, Flusher
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.log_loader import LogLoader
from logkernel.storage.producer_snapshots import ProducerSnapshots
from logkernel.storage.segment import MAX_RELATIVE
from logkernel.storage.segment_roll import SegmentRoll
from logkernel.storage.segments import Segments
from logkernel.storage.truncation import Truncation
from logkernel.vocabulary import (
    AbortedTxn,
    BatchFacts,
    FileSlice,
    LogPosition,
    ProducerEntry,
    SegmentFacts,
    TimestampAndOffset,
    TopicPartition,
)

if TYPE_CHECKING:
    from logkernel.storage.compaction.rewriting import Rewriting
    from logkernel.storage.compaction.segment_writer import Throttle

LONG_AGO_MS = -(2**62)

RollObserver = Callable[[int, int], None]
"""Told (base offset, bytes) of a segment that was closed."""


class Log:
    """Made by `Log.open`."""

    __slots__ = (
        "_compaction",
        "_flusher",
        "_folder",
        "_producers",
        "_roll",
        "_truncation",
        "damages",
        "end_offset",
        "epochs",
        "failure",
        "folder",
        "name",
        "promised_start",
        "roll_observer",
        "segments",
        "settings",
        "start_offset",
        "topic_id",
    )

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
        name = TopicPartition(topic, partition)
        place = LogFolder(disk, f"{directory}/{folder or f'{topic}-{partition}'}", file_deleter)
        topic_id = place.note_topic(topic_id, clean)
        snapshots = ProducerSnapshots(place, producers)
        loader = LogLoader(place, snapshots, settings, recovery_point, log_start, clean, wall_ms, clean_offset)
        return cls(name, topic_id, settings, loader, jitter, on_roll)

    def __init__(
        self,
        name: TopicPartition,
        topic_id: UUID | None,
        settings: TopicSettings,
        loader: LogLoader,
        jitter: float,
        on_roll: RollObserver | None,
    ) -> None:
        """Take up what `loader` finds in its folder."""
        segments = Segments(loader.load())
        folder, producers = loader.folder, loader.producers
        self.name = name
        self.settings = settings
        """May be replaced at any time."""
        self.folder = folder.path
        self.failure: OSError | None = None
        """Why the log is offline."""
        self.topic_id = topic_id
        self.roll_observer = on_roll
        self.segments = segments
        self.epochs = loader.epochs
        self.damages = loader.damages
        """What recovery cut off."""
        self.end_offset = segments.active.next_offset
        self.start_offset = max(loader.log_start, segments.first_base)
        self.promised_start = 0
        """Where the log is to start once the directory's log starts say so, where that is above its start."""
        trusted = loader.clean and not loader.damages
        recovery_point = self.end_offset if trusted else min(loader.recovery_point, self.end_offset)
        self._folder = folder
        self._producers = producers
        self._flusher = Flusher(segments, self.epochs, folder, recovery_point, loader.wall_ms)
        self._roll = SegmentRoll(segments, folder, self._flusher, producers, jitter)
        self._truncation = Truncation(segments, folder, self.epochs, producers)
        self._compaction = Compaction(name, segments, folder, producers, loader.clean_offset)
        self._compaction.cut(self.end_offset)  # the end may have been cut off by the loader
        self._finish_opening(loader)

    def _finish_opening(self, loader: LogLoader) -> None:
        """Names that opening changed become durable, and what was dropped in an earlier life goes."""
        folder, active = self._folder, self.segments.active
        folder.opened(changed=loader.changed)
        if self.settings.preallocate and not active.size:
            active.preallocate(self.settings.segment_bytes)
        active.release()
        for base in loader.leaving:
            folder.dropped.leave(base, LONG_AGO_MS)
        folder.dropped.remove(loader.deleted)
        if not folder.deletes_later:
            folder.dropped.rename()
            folder.dropped.purge(loader.wall_ms, self.settings.file_delete_delay_ms)

    # ------------------------------------------------------------ append

    def append(self, data: Buffer, batches: Sequence[BatchFacts], wall_ms: int) -> None:
        """Append `data`, whose `batches` (positions relative to it) already have their offsets, the first one
        `end_offset` or, in a copy of a compacted log, above it. After an `OSError` the log is as before."""
        if self.failure is not None:
            raise self._offline()
        first, last = batches[0], batches[-1].last_offset
        if first.base_offset < self.end_offset:
            raise CorruptMessage(f"{self.name}: offset {first.base_offset} is below the log end {self.end_offset}")
        active = self.segments.active
        settings = self.settings
        size = active.size + len(data)
        if self._roll.is_due(size, last, batches, wall_ms, settings):
            self.roll(wall_ms, first.base_offset if last - self.end_offset > MAX_RELATIVE else None)
            active = self.segments.active
        elif size > MAX_RELATIVE:
            raise RecordListTooLarge(f"{self.name}: {len(data)} bytes do not fit a segment")
        active.append(data, batches, settings.index_interval_bytes)
        self.end_offset = last + 1
        for facts in batches:
            if facts.leader_epoch > self.epochs.latest:
                self.epochs.assign(facts.leader_epoch, facts.base_offset)

    def roll(self, wall_ms: int, base: int | None = None) -> None:
        """Close the active segment and start one at the log end, or at `base` above it (in a log with gaps)."""
        self._check()
        end = self.end_offset
        closed = self._roll.roll(end if base is None else base, end, wall_ms, self.settings)
        if closed is not None and self.roll_observer is not None:
            self.roll_observer(closed.base, closed.size)

    def note_aborted(self, row: AbortedTxn) -> None:
        """An abort marker, appended just now, ended `row`."""
        self._check()
        self.segments[self.segments.floor(row.last_offset)].txns.append(row)
        self._folder.names_changed()

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
        segment = self.segments.active
        if offset >= segment.base:
            found = segment.find(offset)
            if found is None:
                return None
            position, first_size = found
        else:
            place = self.segments.find_old(offset, end)
            if place is None:
                return None
            segment, position, first_size = place
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

    def position_of(self, offset: int) -> LogPosition:
        """Where the batch that holds `offset`, or the next one, starts; the end of the log for `end_offset`.

        Raises `OffsetOutOfRange`.
        """
        self._check()
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(f"{self.name}: {offset} is not in {self.start_offset}..{self.end_offset}")
        if offset < self.end_offset:
            return self.segments.position_of(offset)
        active = self.segments.active
        return LogPosition(offset, active.base, active.size)

    def offset_for_timestamp(self, timestamp_ms: int, codec_for: CodecFor) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least `timestamp_ms`."""
        self._check()
        return timestamps.first_at_or_after(self.segments, self.start_offset, timestamp_ms, codec_for)

    def offset_of_max_timestamp(self, codec_for: CodecFor) -> TimestampAndOffset | None:
        """The first record with the largest timestamp of the log."""
        self._check()
        return timestamps.latest(self.segments, self.start_offset, codec_for)

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `start <= offset < end` may meet records."""
        self._check()
        return self.segments.aborted_in(start, end)

    def aborted_within(self, start: int, found: FileSlice, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `found`, which `read` gave for `start`, may meet records below
        `end`: not all that were aborted since, however far behind the reader is."""
        for segment in self.segments.since(start):
            if segment.file is found.owner:
                end = min(end, segment.offset_behind(found.position + found.size))
                break
        return self.aborted_in(start, end)

    # ------------------------------------------------------------ flush

    @property
    def recovery_point(self) -> int:
        """All below it is durable."""
        return self._flusher.recovery_point

    def lower_recovery_point(self, offset: int) -> None:
        """A crash from here on checks the log from `offset`, once the directory's recovery points are written."""
        self._flusher.cut(offset)

    @property
    def last_flush_ms(self) -> int:
        """When the last flush ended, wall time; when the log was opened, before the first."""
        return self._flusher.last_ms

    @property
    def unflushed_records(self) -> int:
        """Offsets that a crash may take: what `flush.messages` counts."""
        return self.end_offset - self._flusher.recovery_point

    def begin_flush(self, up_to: int | None = None) -> Flush:
        """What must be synced so that all below `up_to` (default: the log end) is durable."""
        self._check()
        return self._flusher.begin(self.end_offset if up_to is None else min(up_to, self.end_offset))

    def end_flush(self, flush: Flush, wall_ms: int | None = None) -> None:
        """`flush.run` succeeded."""
        self._flusher.end(flush, self.end_offset, wall_ms)

    def flush_refused(self) -> None:
        """A flush could not even begin its work: the next one has to do all of it."""
        self._folder.not_synced()

    def flush(self, up_to: int | None = None, wall_ms: int | None = None) -> None:
        """Make all below `up_to` (default: the log end) durable, here and now."""
        flush = self.begin_flush(up_to)
        try:
            flush.run()
        except OSError:
            self.flush_refused()
            raise
        self.end_flush(flush, wall_ms)

    # ------------------------------------------------------------ cuts at the end

    def truncate_to(self, offset: int) -> None:
        """Cut the log so that it ends at `offset`, or before a batch that holds it. The cut is durable on return.

        Whoever keeps recovery points calls `LogDirectories.truncate` instead, which writes them in the right order.
        """
        self._check()
        if offset >= self.end_offset:
            self._truncation.forget_epochs(self.end_offset)
            return
        if offset <= self.segments.first_base:
            self.truncate_fully_and_start_at(offset)
            return
        self._compaction.stop()
        self.end_offset = end = self._truncation.cut(offset)
        self.start_offset = min(self.start_offset, end)
        self.promised_start = min(self.promised_start, end)
        self._flusher.cut(end)
        self._compaction.cut(end)
        self._truncation.follow(end)

    def truncate_fully_and_start_at(self, offset: int, wall_ms: int = 0) -> None:
        """Throw every record away; the log starts and ends at `offset`. Durable on return."""
        self._check()
        self._compaction.stop()
        self._compaction.clean_offset = None
        self._truncation.clear(offset, wall_ms, self.settings)
        self.start_offset = self.end_offset = offset
        self.promised_start = 0
        self._flusher.cut(offset)
        self._truncation.follow(offset)

    # ------------------------------------------------------------ drops at the start

    def promise_start(self, offset: int) -> None:
        """Have the directory's log starts say that the log starts at `offset` before it does: so nobody is told of a
        start that a crash takes back. 0 takes the promise back, if nothing was written."""
        self.promised_start = min(offset, self.end_offset)

    def advance_log_start(self, offset: int) -> None:
        """Move the log start to `offset`. Durable once the directory's log starts are written.

        Raises `OffsetOutOfRange` above the log end.
        """
        if offset > self.end_offset:
            raise OffsetOutOfRange(f"{self.name}: {offset} is above the log end {self.end_offset}")
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_from_start(offset)

    def drop_before(
        self, offset: int, wall_ms: int | None = None, *, rename: bool = True, most: int | None = None
    ) -> list[SegmentFacts]:
        """Drop whole segments below `offset`, the oldest `most` of them, and move the log start there; returns what was
        dropped.

        The files are renamed now, those of many segments, or all of them without `rename`, by `rename_dropped`, and
        removed by `purge`. The active segment goes too, if `offset` is the log end. Before a file is renamed the
        directory's log starts should be written: they are what keeps it from coming back.
        """
        self._check()
        self.advance_log_start(offset)
        if offset >= self.end_offset and self.segments.active.size:
            self.roll(wall_ms or 0)
        if self.segments.floor(offset):
            self._compaction.give_way(self.segments[0])
        count = self.segments.floor(offset)
        if most is not None:
            count = min(count, most)
        return self._truncation.drop(count, wall_ms, self.settings, rename=rename)

    def make_room(self) -> bool:
        """Remove the oldest segment here and now, where the disk has no room to note a log start first: its names are
        gone durably on return, and the log start moves behind it. False where it is the only one."""
        self._check()
        self._compaction.give_way(self.segments[0])
        if len(self.segments) < 2:
            return False
        self.advance_log_start(self._truncation.remove_first())
        self._folder.sync()
        return True

    def rename_dropped(self, most: int | None = None) -> int:
        """Rename the files of dropped segments for removal, oldest first, of `most` at most; returns how many wait."""
        self._check()
        return self._folder.dropped.rename(most)

    @property
    def leaving(self) -> int:
        """How many dropped segments wait for `rename_dropped`."""
        return self._folder.dropped.leaving

    def purge_due_ms(self, wall_ms: int) -> int | None:
        """In how many ms `purge` finds something to do, None where nothing waits."""
        return self._folder.dropped.due_ms(wall_ms, self.settings.file_delete_delay_ms)

    def purge(self, wall_ms: int) -> int:
        """Let the files of dropped segments go whose `file.delete.delay.ms` is over; returns how many."""
        self._check()
        return self._folder.dropped.purge(wall_ms, self.settings.file_delete_delay_ms)

    # ------------------------------------------------------------ compaction

    @property
    def clean_offset(self) -> int | None:
        """How far the last rewrite came; None before the first."""
        return self._compaction.clean_offset

    @clean_offset.setter
    def clean_offset(self, offset: int | None) -> None:
        self._compaction.clean_offset = offset

    @property
    def rewriting(self) -> Rewriting | None:
        """The rewrite that is under way."""
        return self._compaction.current

    def begin_rewrite(
        self,
        plan: Rewrite,
        codec_for: CodecFor,
        wall_ms: int,
        *,
        buffer_bytes: int = 1 << 20,
        throttle: Throttle | None = None,
    ) -> Rewriting:
        """Start a rewrite, one at a time. The caller drives it, and calls `end_rewrite` at its end."""
        self._check()
        return self._compaction.begin(
            plan, codec_for, wall_ms, self.settings, buffer_bytes=buffer_bytes, throttle=throttle
        )

    def end_rewrite(self, rewriting: Rewriting) -> None:
        """All groups are rewritten: everything below `rewriting.end` is clean."""
        self._compaction.end(rewriting)

    def abandon_rewrite(self, rewriting: Rewriting) -> None:
        """It failed; groups that were swapped before stay as they are."""
        self._compaction.abandon(rewriting)

    # ------------------------------------------------------------ facts

    def facts(self) -> tuple[SegmentFacts, ...]:
        """What cleanup may know, oldest segment first."""
        self._check()
        return self.segments.facts(self.end_offset, self.settings.cleanup_policy)

    def take_stock(self, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Read ahead what `facts` needs, as long as `go_on` says so; see `Segments.take_stock`."""
        self._check()
        return self.segments.take_stock(self.settings.cleanup_policy, go_on)

    @property
    def size_bytes(self) -> int:
        """Bytes of all records."""
        return self.segments.size_bytes

    @property
    def segment_count(self) -> int:
        return len(self.segments)

    @property
    def active_is_empty(self) -> bool:
        return not self.segments.active.size

    @property
    def first_base_offset(self) -> int:
        """Base offset of the oldest segment."""
        return self.segments.first_base

    @property
    def jitter(self) -> float:
        return self._roll.jitter

    def producer_entries(self) -> list[ProducerEntry]:
        """What a snapshot would hold now."""
        return self._producers.ledger.entries()

    def take_topic(self, topic_id: UUID) -> None:
        """Note the topic's id, which a crash took from the folder. Raises `OSError`."""
        self.topic_id = self._folder.note_topic(topic_id, clean=False)

    def take_ledger(self, producers: ProducerLedger) -> None:
        """From now on `producers` keeps the state of this log's producers; it knows them already."""
        self._producers.ledger = producers

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Sync everything, write the producers' state, cut files to what they hold. Readers' slices stay valid.

        Files that were dropped go to the file deleter, even those that have their names still: the log starts of the
        directory must be written before it runs.
        """
        if self.failure is None:
            self._compaction.stop()
            if self.segments.loose or self._folder.has_unsynced or self.epochs.dirty:
                self._close_books()
            self._folder.dropped.let_go()
        self.abandon()

    def _close_books(self) -> None:
        self.segments.active.seal()
        self._folder.names_changed()
        if self.end_offset > self.segments.first_base:
            self._producers.write_durably(self.end_offset)
        self.flush()

    def abandon(self) -> None:
        """Let go of every descriptor and sync nothing."""
        self._compaction.stop(finish=False)
        self.segments.release()

    def delete(self, unique: UUID) -> None:
        """Remove the log: its folder gets a name that is no log's, then goes. Readers' slices stay valid."""
        self.abandon()
        for segment in self.segments:
            segment.drop()
        self.epochs.abandon()
        self._folder.delete(self.name, unique)

    def fail(self, cause: OSError) -> None:
        """The directory went offline: from now on everything raises `KafkaStorageError`."""
        self.failure = cause
        self.abandon()

    def _check(self) -> None:
        if self.failure is not None:
            raise self._offline()

    def _offline(self) -> KafkaStorageError:
        return KafkaStorageError(f"{self.name}: its directory is offline: {self.failure}")
