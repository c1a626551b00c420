"""What makes a log shorter: truncation at its end, drops at its start."""

from __future__ import annotations

from logkernel.errors import CorruptMessage, OffsetOutOfRange
from logkernel.storage import snapshot
from logkernel.storage.dropped_files import RENAMED_AT_ONCE
from logkernel.storage.log_lifecycle import LogLifecycle
from logkernel.storage.log_loader import replay_range
from logkernel.storage.names import SNAPSHOT, offset_name, offset_of
from logkernel.storage.segment import Segment
from logkernel.vocabulary import SegmentFacts


class LogTruncation(LogLifecycle):
    """See the module; `rewrites` and `log` add to it."""

    __slots__ = ()

    def truncate_to(self, offset: int) -> None:
        """Cut the log so that it ends at `offset`, or before a batch that holds it. The cut is durable on return.

        Whoever keeps recovery points calls `LogDirectories.truncate` instead, which writes them in the right order.
        """
        self._check()
        if offset >= self.end_offset:
            # a leader that wrote nothing has its epoch noted at the end, against what the next one wrote (KAFKA-10706)
            self.epochs.truncate_from_end(self.end_offset)
            self.epochs.save()
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
        for path in self._dropped.files_of(segment.base):
            if self._disk.exists(path):
                self._disk.remove(path)
        self.advance_log_start(segment.next_offset)
        self._disk.sync_dir(self.folder)
        return True

    def rename_dropped(self, most: int | None = None) -> int:
        """Rename the files of dropped segments for removal, oldest first, of `most` at most; returns how many wait."""
        self._check()
        return self._dropped.rename(most)

    @property
    def leaving(self) -> int:
        """How many dropped segments wait for `rename_dropped`."""
        return self._dropped.leaving

    def purge_due_ms(self, wall_ms: int) -> int | None:
        """In how many ms `purge` finds something to do, None where nothing waits."""
        return self._dropped.due_ms(wall_ms, self.settings.file_delete_delay_ms)

    def purge(self, wall_ms: int) -> int:
        """Let the files of dropped segments go whose `file.delete.delay.ms` is over; returns how many."""
        self._check()
        return self._dropped.purge(wall_ms, self.settings.file_delete_delay_ms)
