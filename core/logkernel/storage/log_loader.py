"""Opening a log folder: leftovers, segments, indexes, recovery, producer state.

Kafka's meaning of leftovers: `.deleted` and `.cleaned` files go, the former in their time; a `.log.swap` is a
finished rewrite that replaces the segments whose offsets it covers, unless a `.cleaned` file with a lower offset
shows that the rewrite it belongs to was not finished.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from logkernel.attrs_lite import field, mutable
from logkernel.config.topic import TopicSettings
from logkernel.errors import CorruptMessage
from logkernel.storage.checkpoints import LEADER_EPOCHS, CorruptCheckpoint
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.index import CorruptIndex
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.names import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_name,
    offset_of,
)
from logkernel.storage.producer_snapshots import ProducerSnapshots
from logkernel.storage.scan import LONG_CHUNK_BYTES, headers
from logkernel.storage.segment import Segment

if TYPE_CHECKING:
    from logkernel.storage.recovery import Damage

log = logging.getLogger("logkernel.storage")


@mutable
class LogLoader:
    """One opening of one folder; `load` gives the segments, oldest first, the last one active."""

    folder: LogFolder
    producers: ProducerSnapshots
    settings: TopicSettings
    recovery_point: int
    log_start: int
    clean: bool
    wall_ms: int
    clean_offset: int | None = None
    epochs: LeaderEpochCache = field(init=False)
    names: set[str] = field(init=False, factory=set)
    damages: list[Damage] = field(init=False, factory=list)
    deleted: list[str] = field(init=False, factory=list)
    """Paths of files that an earlier removal left; the caller that opens the log has them removed."""
    leaving: list[int] = field(init=False, factory=list)
    """Base offsets of segments below the log's start, which are no part of it; their files have their names still."""
    changed: bool = field(init=False, default=False)
    """Names in the folder were changed by the opening."""
    _sound_below: int = field(init=False, default=0)
    """Everything below this offset was synced, with its leader epochs."""
    _state_at: int = field(init=False, default=-1)
    """The log end that the ledger's state stands for; -1: nothing was loaded yet."""

    def load(self) -> list[Segment]:
        """Raises `OSError`, `CorruptMessage`."""
        self._sound_below = self.recovery_point
        self.names = set() if self.folder.is_fresh else set(self.folder.disk.listdir(self.folder.path))
        self._clear_leftovers()
        self._drop_below_start()
        self._open_epochs()
        bases = sorted(base for name in self.names if (base := offset_of(name, LOG)) is not None)
        self._drop_orphans(set(bases))
        segments = [self._open_segment(base, active=base == bases[-1]) for base in bases]
        for segment, after in pairwise(segments):
            segment.next_offset = after.base
        first = self._first_to_check(segments)
        self._check_indexes(segments[:first])
        segments = self._recover(segments, first)
        if segments and first == len(segments) and not self._reopen(segments[-1]):
            segments = self._recover(segments, first - 1)
        if segments and segments[-1].next_offset < self.log_start:
            log.warning("%s ends at %d, below its log start %d: starting over there",
                        self.folder.path, segments[-1].next_offset, self.log_start)  # fmt: skip
            for segment in segments:
                self._remove(segment)
            segments = []
            self.epochs.clear()
        if not segments:
            segments = [self._first_segment()]
        end = segments[-1].next_offset
        self.epochs.truncate_from_end(end)
        self._drop_snapshots(segments, end)
        self.load_producers(segments, end)
        return segments

    # ------------------------------------------------------------ leftovers

    def _clear_leftovers(self) -> None:
        unfinished = [base for name in self.names if (base := offset_of(name, LOG + CLEANED)) is not None]
        if unfinished:
            loose = [name for name in self.names if name.endswith(SWAP) and int(name[:20]) >= min(unfinished)]
            for name in loose:
                self._unlink(name)
            if loose:
                self.folder.sync()  # before the file that says what they are goes
        for name in [name for name in self.names if name.endswith((CLEANED, ".tmp"))]:
            self._unlink(name)
        deleted = [name for name in self.names if name.endswith(DELETED)]
        self.names.difference_update(deleted)
        self.deleted = [f"{self.folder.path}/{name}" for name in deleted]
        for base in sorted(base for name in self.names if (base := offset_of(name, LOG + SWAP)) is not None):
            self._finish_swap(base)
        for name in [name for name in self.names if name.endswith(SWAP)]:
            self._rename(name, name.removesuffix(SWAP))

    def _finish_swap(self, base: int) -> None:
        """The rewritten segment at `base` replaces every segment that starts within its offsets.

        A crash may come here, too, and renames may be lost in any order: the old files are gone before the new ones
        take their names, and the log takes its name last, as it is what says that the swap is to be finished.
        """
        name = offset_name(base, LOG + SWAP)
        file = self.folder.disk.open(f"{self.folder.path}/{name}", write=False)
        end = base
        for facts in headers(file, 0, file.size, LONG_CHUNK_BYTES):
            end = facts.last_offset + 1
        bases = [at for each in self.names if (at := offset_of(each, LOG)) is not None]
        old = [at for at in bases if base <= at < max(end, base + 1)]
        for suffixes in (SEGMENT_SUFFIXES[1:], SEGMENT_SUFFIXES[:1]):
            gone = [offset_name(at, suffix) for at in old for suffix in suffixes]
            for each in gone:
                if each in self.names:
                    self._unlink(each)
            if gone:
                self.folder.sync()
        for suffix in SEGMENT_SUFFIXES[1:]:
            if offset_name(base, suffix + SWAP) in self.names:
                self._rename(offset_name(base, suffix + SWAP), offset_name(base, suffix))
        self.folder.sync()
        self._rename(name, offset_name(base, LOG))
        self.folder.sync()

    def _drop_below_start(self) -> None:
        """Segments that an interrupted removal left: all of their offsets are below the log start."""
        bases = sorted(base for name in self.names if (base := offset_of(name, LOG)) is not None)
        for base, after in pairwise(bases):
            if after <= self.log_start:
                self.leaving.append(base)
                self.names.difference_update(offset_name(base, suffix) for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT))

    def _drop_orphans(self, bases: set[int]) -> None:
        for name in list(self.names):
            for suffix in (INDEX, TIME_INDEX, TXN_INDEX):
                base = offset_of(name, suffix)
                if base is not None and base not in bases:
                    self._unlink(name)

    def _unlink(self, name: str) -> None:
        self.folder.disk.remove(f"{self.folder.path}/{name}")
        self.names.discard(name)
        self.changed = True

    def _rename(self, name: str, new: str) -> None:
        self.folder.disk.rename(f"{self.folder.path}/{name}", f"{self.folder.path}/{new}")
        self.names.discard(name)
        self.names.add(new)
        self.changed = True

    # ------------------------------------------------------------ segments

    def _open_epochs(self) -> None:
        path = f"{self.folder.path}/{LEADER_EPOCHS}"
        try:
            self.epochs = LeaderEpochCache(self.folder.disk, path, exists=LEADER_EPOCHS in self.names)
        except CorruptCheckpoint as error:
            log.warning("%s: leader epochs are taken from the batches instead", error)
            self.epochs = LeaderEpochCache(self.folder.disk, path)
            self.clean, self._sound_below = False, 0

    def _first_segment(self) -> Segment:
        """Of a log that holds nothing."""
        self.changed = True
        return self.folder.new_segment(self.log_start, self.wall_ms, self.settings)

    def _open_segment(self, base: int, *, active: bool) -> Segment:
        segment = Segment(self.folder.disk, self.folder.path, base, self.wall_ms, self.settings.segment_index_bytes)
        segment.size = self.folder.disk.size(segment.log_path)
        segment.attach(
            index=offset_name(base, INDEX) in self.names,
            times=offset_name(base, TIME_INDEX) in self.names,
            txns=offset_name(base, TXN_INDEX) in self.names,
            sealed=not active,
        )
        return segment

    def _first_to_check(self, segments: Sequence[Segment]) -> int:
        """Number of the first segment that may hold what was never synced: the one with the recovery point."""
        if self.clean:
            return len(segments)
        at = sum(segment.base <= self._sound_below for segment in segments)
        return max(0, at - 1)

    def _check_indexes(self, segments: Sequence[Segment]) -> None:
        """Rebuild indexes that are missing or contradict their log; the records themselves are durable."""
        for number, segment in enumerate(segments):
            try:
                segment.check_indexes()
                segment.release()
            except CorruptIndex as error:
                log.warning("%s: rebuilding the indexes of this segment", error)
                end = segment.next_offset
                self.load_producers(segments[:number], segment.base)
                self._check(segment)
                segment.sync()  # it lies below the recovery point: the next opening will not check it
                segment.release()
                segment.next_offset = max(segment.next_offset, end)
                self._state_at = -1

    def _check(self, segment: Segment) -> Damage | None:
        """Recover one segment, the ledger's state being that at its base."""
        from logkernel.storage.recovery import recover_segment

        sealed = segment.sealed
        damage = recover_segment(segment, self.settings.index_interval_bytes, self.producers.ledger, self.epochs)
        if damage is not None:
            self.damages.append(damage)
            log.warning("%s: cut at byte %d, %d bytes lost: %s",
                        damage.path, damage.position, damage.lost_bytes, damage.reason)  # fmt: skip
        if sealed:
            segment.seal()
            segment.release()
        return damage

    def _recover(self, segments: list[Segment], first: int) -> list[Segment]:
        """Check segments from number `first`; behind damage or a hole everything goes. Returns what remains."""
        for number in range(first, len(segments)):
            segment = segments[number]
            if number > first and self._is_hole(segments[number - 1], segment):
                hole = f"offsets {segments[number - 1].next_offset} to {segment.base - 1} before it are missing"
                return self._cut_behind(segments, number, hole)
            self.load_producers(segments[:number], segment.base)
            damage = self._check(segment)
            self._state_at = segment.next_offset
            if damage is not None and number + 1 < len(segments):
                return self._cut_behind(segments, number + 1, "the log ends before it now")
            if number + 1 < len(segments) and self.producers.mend(segments[number + 1].base):
                self.names.add(offset_name(segments[number + 1].base, SNAPSHOT))
        return segments

    def _is_hole(self, before: Segment, after: Segment) -> bool:
        """Are offsets missing between two segments that were never synced? Kafka's cleaner leaves such gaps, below the
        offset that it came to; so where that is not known, or has not come so far, a gap is no loss."""
        if before.next_offset == after.base:
            return False
        if "compact" in self.settings.cleanup_policy and (self.clean_offset is None or after.base <= self.clean_offset):
            return False
        return after.base > self._sound_below

    def _cut_behind(self, segments: list[Segment], number: int, why: str) -> list[Segment]:
        from logkernel.storage.recovery import Damage

        for segment in segments[number:]:
            log.warning("%s: removed with %d bytes: %s", segment.log_path, segment.size, why)
            if segment.size:
                self.damages.append(Damage(segment.log_path, 0, segment.size, why))
            self._remove(segment)
        kept = segments[:number]
        kept[-1].unseal()
        return kept

    def _remove(self, segment: Segment) -> None:
        self.folder.remove(segment)
        self.changed = True

    def _reopen(self, segment: Segment) -> bool:
        """Find the end of a cleanly closed active segment; False where its tail is not what a clean close leaves."""
        try:
            segment.check_indexes()
            segment.reopen()
            return True
        except CorruptMessage as error:
            log.warning("%s: not closed cleanly after all, checking it", error)
            return False

    # ------------------------------------------------------------ producers

    def load_producers(self, segments: Sequence[Segment], end: int) -> None:
        """Bring the ledger to the state at offset `end`."""
        if self._state_at == end:
            return
        offsets = [at for name in self.names if (at := offset_of(name, SNAPSHOT)) is not None]
        for at in self.producers.restore(segments, end, offsets):
            self.names.discard(offset_name(at, SNAPSHOT))
            self.changed = True
        self._state_at = end

    def _drop_snapshots(self, segments: Sequence[Segment], end: int) -> None:
        """Keep the snapshots at the segments' base offsets, and the newest one, unless they are past the log end."""
        found = sorted(at for name in self.names if (at := offset_of(name, SNAPSHOT)) is not None)
        keep = {segment.base for segment in segments}
        keep.update([at for at in found if at <= end][-1:])
        for at in found:
            if at not in keep:
                self._unlink(offset_name(at, SNAPSHOT))
