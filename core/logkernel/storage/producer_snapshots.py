"""The state of a log's producers on disk: snapshots in its folder, and the batches behind them.

A snapshot is named after the offset that it holds the state of. It is written when a segment is rolled and when the log
is closed; a flush syncs it. A torn one is found by its checksum, and then an older one serves, with more batches to
replay. That at the base of the oldest segment has nothing older: it is durable before the segments below it go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from logkernel.errors import CorruptMessage
from logkernel.storage import snapshot
from logkernel.storage.ledger import ProducerLedger
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.names import SNAPSHOT, offset_name, offset_of
from logkernel.storage.scan import LONG_CHUNK_BYTES
from logkernel.storage.segment import Segment

log = logging.getLogger("logkernel.storage")


class ProducerSnapshots:
    """Of the `ledger`, which keeps the state in memory."""

    __slots__ = ("_folder", "ledger")

    def __init__(self, folder: LogFolder, ledger: ProducerLedger) -> None:
        self._folder = folder
        self.ledger = ledger
        """May be replaced by one that knows the same."""

    def path(self, offset: int) -> str:
        return f"{self._folder.path}/{offset_name(offset, SNAPSHOT)}"

    def write(self, offset: int) -> None:
        """Write the state as it is at `offset`, the log's end."""
        self._folder.write(self.path(offset), snapshot.encode(self.ledger.entries()))

    def mend(self, offset: int) -> bool:
        """The state at `offset` was rebuilt from batches: write it, where the file does not hold that. A power cut may
        have torn it, and a later opening may find nothing below it to replay. Returns whether it was written."""
        path, data = self.path(offset), snapshot.encode(self.ledger.entries())
        if self._folder.disk.exists(path) and self._folder.disk.read(path) == data:
            return False
        self._folder.write(path, data)
        return True

    def sync(self, offset: int) -> None:
        """Make the snapshot at `offset` durable, if there is one. Raises `OSError`."""
        self._folder.sync_file(self.path(offset))

    def write_durably(self, offset: int) -> None:
        """As `write`, unless it is there, and durably."""
        if not self._folder.disk.exists(self.path(offset)):
            self.write(offset)
        self.sync(offset)

    def restore(self, segments: Sequence[Segment], end: int, offsets: Iterable[int]) -> list[int]:
        """Bring the ledger to the state at offset `end`: the newest readable snapshot up to it, of those at `offsets`,
        then the batches. Returns where the snapshots lay that could not be read; they are removed."""
        start = offset = segments[0].base if segments else end
        rotten = []
        self.ledger.reset()
        for at in sorted((at for at in offsets if start <= at <= end), reverse=True):
            path = self.path(at)
            try:
                self.ledger.load(snapshot.decode(self._folder.disk.read(path)))
            except CorruptMessage as error:
                log.warning("%s: %s", path, error)
                self._folder.disk.remove(path)
                self._folder.forget(path)
                rotten.append(at)
                continue
            offset = at
            break
        replay_range(segments, self.ledger, offset, end)
        return rotten

    def cut(self, segments: Sequence[Segment], end: int) -> None:
        """The log was cut to end at `end`: remove the snapshots outside of it, and `restore` the state."""
        kept = []
        for name in self._folder.disk.listdir(self._folder.path):
            at = offset_of(name, SNAPSHOT)
            if at is not None and not segments[0].base <= at <= end:
                self._folder.disk.remove(self.path(at))
                self._folder.forget(self.path(at))
            elif at is not None:
                kept.append(at)
        self.restore(segments, end, kept)


def replay_range(segments: Sequence[Segment], ledger: ProducerLedger, start: int, end: int) -> None:
    """Show the ledger every producer's batch in `start <= offset < end`."""
    for segment in segments:
        if segment.next_offset <= start or segment.base >= end:
            continue
        found = segment.find(start)
        if found is None:
            continue
        for facts in segment.scan(found[0], LONG_CHUNK_BYTES):
            if facts.base_offset >= end:
                return
            if facts.producer_id >= 0:
                control = segment.file.read(facts.position, facts.size) if facts.is_control else None
                ledger.replay(facts, control)
        if segment.sealed:
            segment.release()
