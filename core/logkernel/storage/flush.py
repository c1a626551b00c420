"""Making a log durable: how far it is, and one flush, which may run in another thread than the one that appends.

`Flusher.begin` names what is to be made durable, `Flush.run` does it and touches nothing else of the log, `Flusher.end`
takes note. Order: records, indexes of sealed segments, leader epochs, names.
"""

from __future__ import annotations

from contextlib import suppress

from logkernel.attrs_lite import field, mutable
from logkernel.storage.disk import Disk
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.segment import Segment
from logkernel.storage.segments import Segments


@mutable
class Flush:
    end: int
    """All below this offset is durable after `run`."""
    _disk: Disk
    _segments: list[Segment]
    _epochs: LeaderEpochCache
    _files: list[str]
    """Small files to sync."""
    _folders: list[str]
    """Folders to sync, in this order."""
    cuts: int
    """How often the log had been cut when it began."""
    may_be_repeated: bool = field(init=False, default=False)
    """It failed at a small file that is written anew each time, and at no sync of what is there: after an error of the
    moment it may be tried again."""

    def run(self) -> None:
        """Sync. Raises `OSError`; then nothing may be taken for durable."""
        for segment in self._segments:
            try:
                segment.sync()
            except FileNotFoundError:
                if not segment.dropped:  # while this ran: there is nothing left to make durable
                    raise
        try:
            self._epochs.save()
        except OSError:
            self.may_be_repeated = True
            raise
        for path in self._files:
            with suppress(FileNotFoundError):  # it went while this ran: there is nothing left to make durable
                self._disk.sync(path)
        for folder in self._folders:
            self._disk.sync_dir(folder)


class Flusher:
    """Invariant: all below `recovery_point` is synced."""

    __slots__ = ("_cuts", "_epochs", "_folder", "_segments", "last_ms", "recovery_point")

    def __init__(
        self, segments: Segments, epochs: LeaderEpochCache, folder: LogFolder, recovery_point: int, wall_ms: int
    ) -> None:
        self._segments = segments
        self._epochs = epochs
        self._folder = folder
        self._cuts = 0
        self.recovery_point = recovery_point
        self.last_ms = wall_ms
        """When a flush ended last, wall time."""

    def begin(self, end: int) -> Flush:
        """What must be synced so that all below `end` is durable."""
        loose = [segment for segment in self._segments if segment.loose and segment.base < end]
        return Flush(end, self._folder.disk, loose, self._epochs, *self._folder.take_unsynced(), self._cuts)

    def end(self, flush: Flush, log_end: int, wall_ms: int | None = None) -> None:
        """`flush.run` succeeded; the log now ends at `log_end`. Where it was cut meanwhile, nobody knows which of the
        records that it holds now were there to be synced."""
        end = min(flush.end, log_end) if flush.cuts == self._cuts else self.recovery_point
        for segment in self._segments:
            if segment.base < end and segment.loose and segment.sealed:  # sealed while the flush ran
                end = min(end, segment.next_offset - 1)
                break
        self.recovery_point = max(self.recovery_point, end)
        if wall_ms is not None:
            self.last_ms = wall_ms

    def cut(self, log_end: int) -> None:
        """The log now ends at `log_end`."""
        self._cuts += 1
        self.recovery_point = min(self.recovery_point, log_end)
