"""The life of a log: opening, rolling, flushing, truncating, dropping, closing. `log` adds writing and reading."""

from __future__ import annotations

import contextlib
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange
from logkernel.storage import snapshot
from logkernel.storage.checkpoints import (
    PARTITION_METADATA,
    CorruptCheckpoint,
    format_partition_metadata,
    parse_partition_metadata,
)
from logkernel.storage.disk import Disk
from logkernel.storage.flush import Flush
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.loading import Loader, replay_range
from logkernel.storage.names import DELETED, SEGMENT_SUFFIXES, SNAPSHOT, doomed_name, offset_name, offset_of
from logkernel.storage.segment import Segment
from logkernel.storage.sweeping import Sweeper
from logkernel.vocabulary import NO_TIMESTAMP, ProducerEntry, SegmentFacts, TopicPartition

if TYPE_CHECKING:
    from logkernel.storage.rewriting import Rewriting

RENAMED_AT_ONCE = 16
"""Of so many dropped segments the files are renamed in one go: some 64 names, a few milliseconds."""
LONG_AGO_MS = -(2**62)

RollObserver = Callable[[int, int], None]
"""Told (base offset, bytes) of a segment that was closed."""


class LogUpkeep:
    """State of a log, and everything that happens to it but append and read; see `log.Log`."""

    __slots__ = (
        "_active",
        "_aging_by",
        "_bases",
        "_disk",
        "_dropped",
        "_jitter",
        "_leaving",
        "_ledger",
        "_new_folder",
        "_new_names",
        "_oldest_ms",
        "_on_roll",
        "_recent",
        "_rewriting",
        "_segments",
        "_sweeper",
        "_with_first_ms",
        "clean_offset",
        "damages",
        "end_offset",
        "epochs",
        "failure",
        "folder",
        "last_flush_ms",
        "name",
        "promised_start",
        "recovery_point",
        "settings",
        "start_offset",
        "topic_id",
    )

    def __init__(
        self,
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
        sweeper: Sweeper | None = None,
    ) -> None:
        self.name = TopicPartition(topic, partition)
        self.folder = f"{directory}/{folder or f'{topic}-{partition}'}"
        self.settings = settings
        """May be replaced at any time."""
        self._aging_by: TopicSettings | None = None
        self._oldest_ms = 0
        """How long a segment may be the active one, as the settings `_aging_by` have it."""
        self.failure: OSError | None = None
        """Why the log is offline."""
        self.last_flush_ms = wall_ms
        self._disk = disk
        self._sweeper = sweeper
        """Removes what is dropped; without one it goes at once."""
        self._ledger = producers
        self._on_roll = on_roll
        self._jitter = jitter
        self._recent: list[Segment] = []
        """Sealed segments that are open for readers, the one read last at the end."""
        self._rewriting: Rewriting | None = None
        self._with_first_ms = False
        """What segments know of themselves has the first timestamp, too."""
        self.clean_offset = clean_offset
        """How far the last rewrite came; None before the first."""
        self.promised_start = 0
        """Where the log is to start once the directory's log starts say so, where that is above its start."""
        self._dropped: list[tuple[int | None, list[str]]] = []
        """(since when, files) that `purge` removes; None: since the next purge."""
        self._leaving: deque[tuple[int | None, int]] = deque()
        """(since when, base offset) of segments that are no part of the log any more, but for the names of their files;
        oldest first."""
        self._new_folder = not disk.exists(self.folder)
        """The folder's own name, or its partition.metadata, may not be durable."""
        self._new_names = True
        """Names in the folder may not be durable."""
        fresh = self._new_folder
        if fresh:
            disk.mkdir(self.folder)
        self.topic_id = self._note_topic(topic_id, clean)
        loader = Loader(
            disk, self.folder, settings, recovery_point, log_start, clean, wall_ms, producers, clean_offset, fresh
        )
        self._take_up(loader, recovery_point)
        self._active.release()
        self._leaving.extend((LONG_AGO_MS, base) for base in loader.leaving)
        self._remove_files(loader.deleted)
        if sweeper is None:
            self.rename_dropped()
            self.purge(wall_ms)

    def _take_up(self, loader: Loader, recovery_point: int) -> None:
        """What the folder holds, as opening it left it; `recovery_point` is what the checkpoint says."""
        self._segments = loader.load()
        self._bases = [segment.base for segment in self._segments]
        self._active = self._segments[-1]
        self.epochs = loader.epochs
        self.damages = loader.damages
        """What recovery cut off."""
        self.end_offset = self._active.next_offset
        if self.clean_offset is not None:  # the end may have been cut off, and what is written there is not clean
            self.clean_offset = min(self.clean_offset, self.end_offset)
        self.start_offset = max(loader.log_start, self._bases[0])
        trusted = loader.clean and not loader.damages
        self.recovery_point = self.end_offset if trusted else min(recovery_point, self.end_offset)
        if not self._new_folder:
            if loader.changed:
                self._disk.sync_dir(self.folder)
            self._new_names = False
        if self.settings.preallocate and not self._active.size:
            self._active.preallocate(self.settings.segment_bytes)

    def _note_topic(self, topic_id: UUID | None, clean: bool) -> UUID | None:
        path = f"{self.folder}/{PARTITION_METADATA}"
        if not self._new_folder and self._disk.exists(path):
            data = self._disk.read(path)
            try:
                return parse_partition_metadata(data, path)
            except CorruptCheckpoint:
                if data and clean:
                    raise
                self._disk.remove(path)  # a crash left it behind, empty or torn: the metadata log knows the id
        if topic_id is not None:
            self._disk.write(path, format_partition_metadata(topic_id))
            self._new_folder = True
        return topic_id

    def roll(self, wall_ms: int, base: int | None = None) -> None:
        """Close the active segment and start one at the log end, or at `base` above it (in a log with gaps)."""
        self._check()
        old = self._active
        base = self.end_offset if base is None else base
        if old.size == 0 and old.base == base:
            return
        old.seal()
        if self.recovery_point >= self.end_offset:
            old.sync()  # once there is a new segment, recovery will not look at this one: its indexes must be durable
        if old.size:
            self._snapshot(self.end_offset)  # before anything changes here: a full disk may refuse it
        new = self._add_segment(base, wall_ms)
        if old.size == 0:
            self._segments.remove(old)
            self._bases.remove(old.base)
            self._discard([old], wall_ms)
            self.rename_dropped(RENAMED_AT_ONCE)
        else:
            old.next_offset = self.end_offset
            if self._on_roll is not None:
                self._on_roll(old.base, old.size)
        self._active = new

    def _add_segment(self, base: int, wall_ms: int) -> Segment:
        segment = Segment(self._disk, self.folder, base, wall_ms, self.settings.segment_index_bytes)
        segment.create()
        if self.settings.preallocate:
            segment.preallocate(self.settings.segment_bytes)
        self._new_names = True
        self._segments.append(segment)
        self._bases.append(base)
        return segment

    def _snapshot(self, offset: int) -> str:
        """Write the producers' state; a torn snapshot is found by its checksum."""
        path = f"{self.folder}/{offset_name(offset, SNAPSHOT)}"
        self._disk.write(path, snapshot.encode(self._ledger.entries()))
        self._new_names = True
        return path

    def _floor(self, offset: int) -> int:
        """Number of the segment that holds `offset`."""
        return max(0, bisect_right(self._bases, offset) - 1)

    # ------------------------------------------------------------ flush

    @property
    def unflushed_records(self) -> int:
        """Offsets that a crash may take: what `flush.messages` counts."""
        return self.end_offset - self.recovery_point

    def begin_flush(self, up_to: int | None = None) -> Flush:
        """What must be synced so that all below `up_to` (default: the log end) is durable."""
        self._check()
        end = self.end_offset if up_to is None else min(up_to, self.end_offset)
        loose = [segment for segment in self._segments if segment.loose and segment.base < end]
        files, folders = [], []
        if self._new_folder:
            files = [path] if self._disk.exists(path := f"{self.folder}/{PARTITION_METADATA}") else []
            folders.append(self.folder.rpartition("/")[0])
        if self._new_names:
            folders.append(self.folder)
        self._new_folder = self._new_names = False
        return Flush(end, self._disk, loose, self.epochs, files, folders)

    def end_flush(self, flush: Flush, wall_ms: int | None = None) -> None:
        """`flush.run` succeeded."""
        end = min(flush.end, self.end_offset)
        for segment in self._segments:
            if segment.base < end and segment.loose and segment.sealed:  # sealed while the flush ran
                end = min(end, segment.next_offset - 1)
                break
        self.recovery_point = max(self.recovery_point, end)
        if wall_ms is not None:
            self.last_flush_ms = wall_ms

    def flush(self, up_to: int | None = None, wall_ms: int | None = None) -> None:
        """Make all below `up_to` (default: the log end) durable, here and now."""
        flush = self.begin_flush(up_to)
        try:
            flush.run()
        except OSError:
            self._new_folder = self._new_names = True
            raise
        self.end_flush(flush, wall_ms)

    def flush_refused(self) -> None:
        """A flush could not even begin its work: the next one has to do all of it."""
        self._new_folder = self._new_names = True

    def _stop_rewriting(self, *, finish: bool = True) -> None:
        if self._rewriting is not None:
            self._rewriting.stop(finish=finish)
            self._rewriting = None

    # ------------------------------------------------------------ truncate, drop

    def truncate_to(self, offset: int) -> None:
        """Cut the log so that it ends at `offset`, or before a batch that holds it. The cut is durable on return.

        Whoever keeps recovery points calls `LogDirectories.truncate` instead, which writes them in the right order.
        """
        self._check()
        if offset >= self.end_offset:
            return
        self._stop_rewriting()
        self.rename_dropped()  # what is written behind the cut may come to have a name of theirs
        if offset <= self._bases[0]:
            self.truncate_fully_and_start_at(offset)
            return
        keep = self._floor(offset) + 1
        gone = self._segments[keep:]
        del self._segments[keep:], self._bases[keep:]
        for segment in reversed(gone):
            self._remove(segment)
        if gone:
            self._disk.sync_dir(self.folder)  # no segment may come back behind the cut
        self._active = self._segments[-1]
        self.end_offset = self._active.truncate_to(offset)
        self.start_offset = min(self.start_offset, self.end_offset)
        self.promised_start = min(self.promised_start, self.end_offset)
        self.recovery_point = min(self.recovery_point, self.end_offset)
        if self.clean_offset is not None:
            self.clean_offset = min(self.clean_offset, self.end_offset)
        self.epochs.truncate_from_end(self.end_offset)
        self.epochs.save()
        self._reload_producers()
        self._disk.sync_dir(self.folder)

    def truncate_fully_and_start_at(self, offset: int, wall_ms: int = 0) -> None:
        """Throw every record away; the log starts and ends at `offset`. Durable on return."""
        self._check()
        self._stop_rewriting()
        self.rename_dropped()
        self.clean_offset = None
        for segment in reversed(self._segments):
            self._remove(segment)
        self._segments, self._bases, self._recent = [], [], []
        self._active = self._add_segment(offset, wall_ms)
        self.start_offset = self.end_offset = offset
        self.promised_start = 0
        self.recovery_point = min(self.recovery_point, offset)
        self.epochs.clear()
        self.epochs.save()
        self._reload_producers()
        self._disk.sync_dir(self.folder)

    def _reload_producers(self) -> None:
        """After a cut: the newest snapshot that is left, and the batches behind it."""
        newest = -1
        for name in self._disk.listdir(self.folder):
            at = offset_of(name, SNAPSHOT)
            if at is not None and (at > self.end_offset or at < self._bases[0]):
                self._disk.remove(f"{self.folder}/{name}")
            elif at is not None:
                newest = max(newest, at)
        self._ledger.reset()
        if newest >= 0:
            path = f"{self.folder}/{offset_name(newest, SNAPSHOT)}"
            try:
                self._ledger.load(snapshot.decode(self._disk.read(path)))
            except CorruptMessage:
                newest = -1
        replay_range(self._segments, self._ledger, max(newest, self._bases[0]), self.end_offset)

    def _remove(self, segment: Segment) -> None:
        for path in segment.rename_deleted():
            self._disk.remove(path)

    def promise_start(self, offset: int) -> None:
        """Have the directory's log starts say that the log starts at `offset` before it does: so nobody is told of a
        start that a crash takes back. 0 takes the promise back, if nothing was written."""
        self.promised_start = min(offset, self.end_offset)

    def advance_log_start(self, offset: int) -> None:
        """Hide what lies below `offset`. Durable once the directory's log starts are written.

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
        if offset >= self.end_offset and self._active.size:
            self.roll(wall_ms or 0)
        count = self._floor(offset)
        if count and self._rewriting is not None and self._rewriting.uses(self._segments[0]):
            self._stop_rewriting()
            count = self._floor(offset)
        if most is not None:
            count = min(count, most)
        gone = self._segments[:count]
        if not gone:
            return []
        self._note_policy()
        facts = [self._facts(segment) for segment in gone]
        del self._segments[:count], self._bases[:count]
        self._discard(gone, wall_ms)
        if rename:
            self.rename_dropped(RENAMED_AT_ONCE)
        return facts

    def _discard(self, segments: list[Segment], wall_ms: int | None) -> None:
        for segment in segments:
            if segment in self._recent:
                self._recent.remove(segment)
            segment.drop()
            self._leaving.append((wall_ms, segment.base))

    def make_room(self) -> bool:
        """Remove the oldest segment here and now, where the disk has no room to note a log start first: its names are
        gone durably on return, and the log start moves behind it. False where it is the only one."""
        self._check()
        if self._rewriting is not None and self._rewriting.uses(self._segments[0]):
            self._stop_rewriting()
        if len(self._segments) < 2:
            return False
        segment = self._segments.pop(0)
        self._bases.pop(0)
        if segment in self._recent:
            self._recent.remove(segment)
        segment.drop()
        for path in self._files_of(segment.base):
            if self._disk.exists(path):
                self._disk.remove(path)
        self.advance_log_start(segment.next_offset)
        self._disk.sync_dir(self.folder)
        return True

    def rename_dropped(self, most: int | None = None) -> int:
        """Rename the files of dropped segments for removal, oldest first, of `most` at most; returns how many wait."""
        self._check()
        leaving = self._leaving
        for _ in range(len(leaving) if most is None else min(most, len(leaving))):
            since, base = leaving[0]
            paths = []
            for path in self._files_of(base):
                if self._disk.exists(path):
                    self._disk.rename(path, path + DELETED)
                    paths.append(path + DELETED)
            leaving.popleft()
            if self._dropped and self._dropped[-1][0] == since:
                self._dropped[-1][1].extend(paths)
            else:
                self._dropped.append((since, paths))
        return len(leaving)

    def _files_of(self, base: int) -> list[str]:
        """Every file that a segment may have."""
        return [f"{self.folder}/{offset_name(base, suffix)}" for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT)]

    @property
    def leaving(self) -> int:
        """How many dropped segments wait for `rename_dropped`."""
        return len(self._leaving)

    def purge_due_ms(self, wall_ms: int) -> int | None:
        """In how many ms `purge` finds something to do, None where nothing waits."""
        if not self._dropped:
            return None
        first = min(wall_ms if since is None else since for since, _ in self._dropped)
        return max(0, first + self.settings.file_delete_delay_ms - wall_ms)

    def purge(self, wall_ms: int) -> int:
        """Let the files of dropped segments go whose `file.delete.delay.ms` is over; returns how many."""
        self._check()
        due: list[str] = []
        waiting: list[tuple[int | None, list[str]]] = []
        for since, paths in self._dropped:
            since = wall_ms if since is None else since
            if wall_ms - since < self.settings.file_delete_delay_ms:
                waiting.append((since, paths))
            else:
                due += paths
        self._dropped = waiting
        self._remove_files(due)
        return len(due)

    def _remove_files(self, paths: list[str]) -> None:
        """A segment that is rewritten twice within the delay has two files of one name: the first is gone already."""
        if self._sweeper is not None:
            self._sweeper.later(paths)
            return
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self._disk.remove(path)

    # ------------------------------------------------------------ facts

    def take_stock(self, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Read what `facts` needs of closed segments, as long as `go_on` says so after each; False where some may be
        left. Of ten thousand that nobody asked about since the log was opened that takes its time."""
        self._check()
        self._note_policy()
        for segment in self._segments[:-1]:
            if segment.facts is None:
                self._facts(segment)
                if not go_on():
                    return False
        return True

    def _note_policy(self) -> None:
        """The first timestamp costs a read of the records, so it is a fact only where the log is compacted."""
        compacted = self.settings.cleanup_policy != ("delete",)
        if compacted != self._with_first_ms:
            self._with_first_ms = compacted
            for segment in self._segments:
                segment.facts = None

    def _facts(self, segment: Segment) -> SegmentFacts:
        if segment.facts is not None:
            return segment.facts
        active = segment is self._active
        end = self.end_offset if active else segment.next_offset
        first_ms = segment.first_timestamp() if self._with_first_ms else None
        first_ms = NO_TIMESTAMP if first_ms is None else first_ms
        facts = SegmentFacts(segment.base, end, segment.size, segment.retention_ms(), active, first_ms)
        if not active:
            segment.facts = facts
            if segment not in self._recent:
                segment.release()
        return facts

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Sync everything, write the producers' state, cut files to what they hold. Readers' slices stay valid.

        Files that were dropped go to the sweeper, even those that have their names still: the log starts of the
        directory must be written before it runs.
        """
        if self.failure is None:
            self._stop_rewriting()
            loose = any(segment.loose for segment in self._segments)
            if loose or self._new_names or self._new_folder or self.epochs.dirty:
                self._close_books()
            self._remove_files([path for _, paths in self._dropped for path in paths])
            self._dropped.clear()
            self._remove_files([path for _, base in self._leaving for path in self._files_of(base)])
            self._leaving.clear()
        self.abandon()

    def _close_books(self) -> None:
        self._active.seal()
        self._new_names = True
        if self.end_offset > self._bases[0]:
            path = f"{self.folder}/{offset_name(self.end_offset, SNAPSHOT)}"
            if not self._disk.exists(path):
                self._disk.sync(self._snapshot(self.end_offset))
        self.flush()

    def abandon(self) -> None:
        """Let go of every descriptor and sync nothing."""
        self._stop_rewriting(finish=False)
        for segment in self._segments:
            segment.release()

    @property
    def roll_observer(self) -> RollObserver | None:
        return self._on_roll

    @property
    def jitter(self) -> float:
        return self._jitter

    def producer_entries(self) -> list[ProducerEntry]:
        """What a snapshot would hold now."""
        return self._ledger.entries()

    def take_ledger(self, producers: ProducerLedger) -> None:
        """From now on `producers` keeps the state of this log's producers; it knows them already."""
        self._ledger = producers

    def delete(self, unique: UUID | None = None) -> None:
        """Remove the log: its folder gets a name that is no log's, then goes. Readers' slices stay valid."""
        self.abandon()
        for segment in self._segments:
            segment.drop()
        self.epochs.dirty = False  # a flush that is under way must write nothing into a folder that is made anew
        parent = self.folder.rpartition("/")[0]
        doomed = f"{parent}/{doomed_name(*self.name, unique or uuid.uuid4())}"
        self._disk.rename(self.folder, doomed)
        if self._sweeper is not None:
            self._sweeper.later([doomed])
        else:
            self._disk.remove_tree(doomed)

    def fail(self, cause: OSError) -> None:
        """The directory went offline: from now on everything raises `KafkaStorageError`."""
        self.failure = cause
        self.abandon()

    def _check(self) -> None:
        if self.failure is not None:
            raise self._offline()

    def _offline(self) -> KafkaStorageError:
        return KafkaStorageError(f"{self.name}: its directory is offline: {self.failure}")
