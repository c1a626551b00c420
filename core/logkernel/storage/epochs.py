"""Where each leader epoch starts in a log (KIP-101): how replicas agree on what to truncate.

Invariant: epochs ascend strictly, start offsets do not descend. The file `leader-epoch-checkpoint` is written
by `save`, with each flush and at close. What a crash loses of it, recovery finds again in the batch headers.
A flush saves on a thread of its own, beside the appends; all else is for the log's thread.
"""

from __future__ import annotations

import threading
from bisect import bisect_right

from logkernel.storage.checkpoints import format_epochs, parse_epochs
from logkernel.storage.disk import Disk
from logkernel.vocabulary import NO_EPOCH, EpochStart, OffsetAndEpoch


class LeaderEpochCache:
    __slots__ = ("_abandoned", "_disk", "_epochs", "_saving", "dirty", "latest", "path")

    def __init__(self, disk: Disk, path: str, *, exists: bool = False) -> None:
        """Raises `CorruptCheckpoint` where the file is rotten."""
        self._disk = disk
        self.path = path
        self._epochs: list[EpochStart] = parse_epochs(disk.read(path), path) if exists else []
        self.latest = self._epochs[-1].epoch if self._epochs else NO_EPOCH
        """The latest epoch, -1 without one."""
        self.dirty = False
        """The file is behind."""
        self._abandoned = False
        self._saving = threading.Lock()

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._epochs)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Epoch `epoch` starts at `start_offset`; entries that contradict it are dropped."""
        if epoch < 0:
            return
        if self._epochs:
            last = self._epochs[-1]
            if epoch == last.epoch and start_offset >= last.start_offset:
                return
            while self._epochs and (self._epochs[-1].epoch >= epoch or self._epochs[-1].start_offset >= start_offset):
                self._epochs.pop()
        self._epochs.append(EpochStart(epoch, start_offset))
        self._changed()

    def end_offset_for(self, epoch: int, log_end: int) -> OffsetAndEpoch | None:
        """The greatest epoch at or below `epoch`, and where it ends. None where `epoch` is above all known.

        An epoch below all known ends where the first known one starts.
        """
        if epoch == NO_EPOCH or not self._epochs:
            return None
        if epoch == self.latest:
            return OffsetAndEpoch(log_end, epoch)
        above = bisect_right(self._epochs, epoch, key=lambda entry: entry.epoch)
        if above == len(self._epochs):
            return None
        floor = self._epochs[above - 1].epoch if above else epoch
        return OffsetAndEpoch(self._epochs[above].start_offset, floor)

    def epoch_at(self, offset: int, default: int = NO_EPOCH) -> int:
        """The epoch in which `offset` was, or would be, written."""
        at = bisect_right(self._epochs, offset, key=lambda entry: entry.start_offset) - 1
        return self._epochs[at].epoch if at >= 0 else default

    def truncate_from_end(self, offset: int) -> None:
        """The log was cut to end at `offset`."""
        while self._epochs and self._epochs[-1].start_offset >= offset:
            self._epochs.pop()
            self._changed()

    def truncate_from_start(self, offset: int) -> None:
        """The log now starts at `offset`; the epoch of that offset starts there."""
        covered = [entry for entry in self._epochs if entry.start_offset <= offset]
        if covered and (len(covered) > 1 or covered[0].start_offset < offset):
            self._epochs[: len(covered)] = [EpochStart(covered[-1].epoch, offset)]
            self._changed()

    def clear(self) -> None:
        self._epochs.clear()
        self._changed()

    def save(self) -> None:
        """Write the file durably if it is out of date. Raises `OSError`, and it stays out of date."""
        with self._saving:  # an older state must not take the place of a newer one
            if not self.dirty or self._abandoned:
                return
            self.dirty = False  # what changes from here on is for the next time
            try:
                self._disk.write_atomic(self.path, format_epochs(self.entries))
            except BaseException:
                self.dirty = True
                raise

    def abandon(self) -> None:
        """Stop saving: a flush in progress must not write into a new folder of the same name."""
        self._abandoned = True

    def _changed(self) -> None:
        self.latest = self._epochs[-1].epoch if self._epochs else NO_EPOCH
        self.dirty = True
