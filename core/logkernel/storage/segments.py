"""The segments of one log, oldest first, and what is asked of all of them.

Invariants: there is at least one; base offsets ascend strictly, and no segment reaches past the base of the next; the
last one is the active one, the only one that is written. Only `Log` (a roll), `Truncation` and `Compaction` change the
list, all on the log's thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from logkernel.storage.segment import Segment
from logkernel.vocabulary import NO_TIMESTAMP, AbortedTxn, LogPosition, SegmentFacts

OPEN_OLD_SEGMENTS = 4
"""Sealed segments whose descriptors stay open for readers."""


class Segments(Sequence[Segment]):
    """See the module."""

    __slots__ = ("_bases", "_every", "_recent", "_with_first_ms", "active")

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._every = [*segments]
        self._bases = [segment.base for segment in segments]
        self._recent: list[Segment] = []
        """Sealed segments that are open for readers, the one read last at the end."""
        self._with_first_ms = False
        """What segments know of themselves has the first timestamp, too."""
        self.active = self._every[-1]
        """The one that is written."""

    def __len__(self) -> int:
        return len(self._every)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._every)

    @overload
    def __getitem__(self, at: int) -> Segment: ...
    @overload
    def __getitem__(self, at: slice) -> list[Segment]: ...
    def __getitem__(self, at: int | slice) -> Segment | list[Segment]:
        return self._every[at]

    @property
    def closed(self) -> list[Segment]:
        """All but the active one."""
        return self._every[:-1]

    @property
    def loose(self) -> list[Segment]:
        """Those of which something may not be synced yet."""
        return [segment for segment in self._every if segment.loose]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._every)

    @property
    def first_base(self) -> int:
        return self._bases[0]

    @property
    def last_base(self) -> int:
        return self._bases[-1]

    def floor(self, offset: int) -> int:
        """Number of the segment that holds `offset`."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def since(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and all behind it."""
        return self._every[self.floor(offset) :]

    # ------------------------------------------------------------ changing the list

    def add(self, segment: Segment) -> None:
        """`segment` is the active one from now on."""
        self._every.append(segment)
        self._bases.append(segment.base)
        self.active = segment

    def restart(self, segment: Segment) -> None:
        """Make `segment` the only one; the files of the others are removed."""
        self._every, self._bases, self._recent = [segment], [segment.base], []
        self.active = segment

    def take_first(self, count: int) -> list[Segment]:
        """Take the oldest `count` out of the log; never the active one."""
        gone = self._every[:count]
        del self._every[:count], self._bases[:count]
        self._drop(gone)
        return gone

    def take_empty(self, segment: Segment) -> None:
        """Take out `segment`, which was rolled before anything was written to it."""
        self._every.remove(segment)
        self._bases.remove(segment.base)
        self._drop([segment])

    def take_behind(self, offset: int) -> list[Segment]:
        """Remove and return the segments after the one that contains `offset`, which becomes the active one."""
        keep = self.floor(offset) + 1
        gone = self._every[keep:]
        del self._every[keep:], self._bases[keep:]
        self._drop(gone)
        self.active = self._every[-1]
        return gone

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Replace the adjacent segments `old` by `new`; readers' slices stay valid."""
        at = self._every.index(old[0])
        self._every[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base]
        self._recent = [segment for segment in self._recent if segment not in old]
        for segment in old:
            segment.release()

    def _drop(self, gone: Sequence[Segment]) -> None:
        for segment in gone:
            if segment in self._recent:
                self._recent.remove(segment)
            segment.drop()

    # ------------------------------------------------------------ reading

    def find_old(self, offset: int, end: LogPosition | None) -> tuple[Segment, int, int] | None:
        """(segment, position, whole bytes) of the batch that holds `offset`, which lies below the active segment, or of
        the first batch behind it; None at the end of the log.

        What a rewrite emptied at its segment's end is passed over, up to `end`.
        """
        every = self._every
        at = self.floor(offset) + 1
        segment = every[at - 1]
        while (found := segment.find(offset)) is None:
            if at == len(every):
                return None
            segment = every[at]
            at += 1
        if segment is not self.active:
            self._use(segment)
            if segment.is_emptied_at(*found):
                segment, found = self._behind_emptied(segment, found, at, offset, end)
        return segment, *found

    def _behind_emptied(
        self, segment: Segment, found: tuple[int, int], at: int, offset: int, end: LogPosition | None
    ) -> tuple[Segment, tuple[int, int]]:
        """Where to read instead of at `found`, of which a rewrite left where its segment ends: at the first batch with
        records in the segments from number `at` on, up to `end`; where there is none, at the last without.

        A client takes answers without a record for a limit that is too small, and soon for an error (librdkafka).
        """
        for behind in self._every[at:]:
            following = behind.find(offset)
            if following is None:
                continue
            if end is not None and (end.segment, end.position) <= (behind.base, following[0]):
                break
            segment, found = behind, following
            if segment is self.active:
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
        """Where the batch that holds `offset`, or the next one, starts; the end of the log where there is none."""
        for segment in self.since(offset):
            found = segment.find(offset)
            if found is not None:
                return LogPosition(offset, segment.base, found[0])
        return LogPosition(offset, self.active.base, self.active.size)

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `start <= offset < end` may meet records."""
        found = []
        for segment in self.since(start):
            for row in segment.txns.rows():
                if row.last_offset >= start and row.first_offset < end:
                    found.append(row)
                if row.last_stable_offset >= end:
                    return found
        return found

    def release(self) -> None:
        """Give every descriptor back."""
        for segment in self._every:
            segment.release()

    # ------------------------------------------------------------ what cleanup may know

    def facts(self, end_offset: int, cleanup_policy: tuple[str, ...]) -> tuple[SegmentFacts, ...]:
        """Facts of each; `end_offset` is the log's."""
        self._note_policy(cleanup_policy)
        return tuple([segment.facts or self._facts(segment, end_offset) for segment in self._every])

    def facts_of_first(self, count: int, cleanup_policy: tuple[str, ...]) -> list[SegmentFacts]:
        """Facts of the oldest `count`, none of them the active one."""
        self._note_policy(cleanup_policy)
        return [self._facts(segment, segment.next_offset) for segment in self._every[:count]]

    def take_stock(self, cleanup_policy: tuple[str, ...], go_on: Callable[[], bool]) -> bool:
        """Read what `facts` needs of closed segments, as long as `go_on` says so after each; False where some may be
        left. Of ten thousand that nobody asked about since the log was opened that takes its time."""
        self._note_policy(cleanup_policy)
        for segment in self._every[:-1]:
            if segment.facts is None:
                self._facts(segment, segment.next_offset)
                if not go_on():
                    return False
        return True

    def _note_policy(self, cleanup_policy: tuple[str, ...]) -> None:
        """The first timestamp costs a read of the records, so it is a fact only where the log is compacted."""
        compacted = cleanup_policy != ("delete",)
        if compacted != self._with_first_ms:
            self._with_first_ms = compacted
            for segment in self._every:
                segment.facts = None

    def _facts(self, segment: Segment, end_offset: int) -> SegmentFacts:
        if segment.facts is not None:
            return segment.facts
        active = segment is self.active
        end = end_offset if active else segment.next_offset
        first_ms = segment.first_timestamp() if self._with_first_ms else None
        first_ms = NO_TIMESTAMP if first_ms is None else first_ms
        facts = SegmentFacts(segment.base, end, segment.size, segment.retention_ms(), active, first_ms)
        if not active:
            segment.facts = facts
            if segment not in self._recent:
                segment.release()
        return facts
