"""The life of a log: opening, rolling, flushing, closing.

`truncation` and `compaction` hold the rest of it, and `log` adds writing and reading.
"""

from __future__ import annotations

import uuid
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.config.topic import TopicSettings
from logkernel.errors import KafkaStorageError
from logkernel.storage import snapshot
from logkernel.storage.checkpoints import (
    PARTITION_METADATA,
    CorruptCheckpoint,
    format_partition_metadata,
    parse_partition_metadata,
)
from logkernel.storage.disk import Disk
from logkernel.storage.dropped_files import RENAMED_AT_ONCE, DroppedFiles
from logkernel.storage.file_deleter import FileDeleter
from logkernel.storage.flush import Flush
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.log_loader import LogLoader
from logkernel.storage.names import SNAPSHOT, doomed_name, offset_name
from logkernel.storage.segment import Segment
from logkernel.vocabulary import NO_TIMESTAMP, ProducerEntry, SegmentFacts, TopicPartition

if TYPE_CHECKING:
    from logkernel.storage.compaction.rewriting import Rewriting

LONG_AGO_MS = -(2**62)

RollObserver = Callable[[int, int], None]
"""Told (base offset, bytes) of a segment that was closed."""


class LogLifecycle:
    """State of a log, and what happens to it besides `truncation`, `compaction`, append and read; see `log.Log`."""

    __slots__ = (
        "_active",
        "_aging_by",
        "_bases",
        "_disk",
        "_dropped",
        "_file_deleter",
        "_jitter",
        "_ledger",
        "_new_folder",
        "_new_names",
        "_oldest_ms",
        "_on_roll",
        "_recent",
        "_rewriting",
        "_segments",
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
        file_deleter: FileDeleter | None = None,
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
        self._file_deleter = file_deleter
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
        self._dropped = DroppedFiles(disk, self.folder, file_deleter)
        self._new_folder = not disk.exists(self.folder)
        """The folder's own name, or its partition.metadata, may not be durable."""
        self._new_names = True
        """Names in the folder may not be durable."""
        self._open(topic_id, recovery_point, log_start, clean, wall_ms)

    def _open(self, topic_id: UUID | None, recovery_point: int, log_start: int, clean: bool, wall_ms: int) -> None:
        """The folder: made, or read and recovered as `Log.open` says; and what was dropped in an earlier life."""
        fresh = self._new_folder
        if fresh:
            self._disk.mkdir(self.folder)
        self.topic_id = self._note_topic(topic_id, clean)
        loader = LogLoader(
            self._disk, self.folder, self.settings, recovery_point, log_start, clean, wall_ms, self._ledger,
            self.clean_offset, fresh,
        )  # fmt: skip
        self._take_up(loader, recovery_point)
        self._active.release()
        for base in loader.leaving:
            self._dropped.leave(base, LONG_AGO_MS)
        self._dropped.remove(loader.deleted)
        if self._file_deleter is None:
            self._dropped.rename()
            self._dropped.purge(wall_ms, self.settings.file_delete_delay_ms)

    def _take_up(self, loader: LogLoader, recovery_point: int) -> None:
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
            self._dropped.rename(RENAMED_AT_ONCE)
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

    def _discard(self, segments: list[Segment], wall_ms: int | None) -> None:
        for segment in segments:
            if segment in self._recent:
                self._recent.remove(segment)
            segment.drop()
            self._dropped.leave(segment.base, wall_ms)

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

        Files that were dropped go to the file_deleter, even those that have their names still: the log starts of the
        directory must be written before it runs.
        """
        if self.failure is None:
            self._stop_rewriting()
            loose = any(segment.loose for segment in self._segments)
            if loose or self._new_names or self._new_folder or self.epochs.dirty:
                self._close_books()
            self._dropped.let_go()
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
        self.epochs.abandon()
        parent = self.folder.rpartition("/")[0]
        doomed = f"{parent}/{doomed_name(*self.name, unique or uuid.uuid4())}"
        self._disk.rename(self.folder, doomed)
        if self._file_deleter is not None:
            self._file_deleter.later([doomed])
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
