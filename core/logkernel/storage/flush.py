"""One flush of a log, which may run in another thread than the one that appends.

`Log.begin_flush` names what is to be made durable, `run` does it and touches nothing else of the log,
`Log.end_flush` takes note. Order: records, indexes of sealed segments, leader epochs, names.
"""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable
from logkernel.storage.disk import Disk
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.segment import Segment


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
            self._disk.sync(path)
        for folder in self._folders:
            self._disk.sync_dir(folder)
