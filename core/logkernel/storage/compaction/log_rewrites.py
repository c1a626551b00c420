"""What a log gives to a rewrite of its closed segments and takes back from it; `rewriting` does the work."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from logkernel.contracts import Rewrite
from logkernel.errors import LogkernelError
from logkernel.record.bounds import CodecFor
from logkernel.storage.disk import Disk
from logkernel.storage.segment import Segment
from logkernel.storage.truncation import LogTruncation
from logkernel.vocabulary import AbortedTxn

if TYPE_CHECKING:
    from logkernel.storage.compaction.rewriting import Rewriting, Throttle


class LogRewrites(LogTruncation):
    __slots__ = ()

    @property
    def disk(self) -> Disk:
        return self._disk

    def closed_segments(self) -> list[Segment]:
        return self._segments[:-1]

    def loose_segments(self) -> list[Segment]:
        return [segment for segment in self._segments if segment.loose]

    @property
    def rewriting(self) -> Rewriting | None:
        """The rewrite that is under way."""
        return self._rewriting if self._rewriting is not None and not self._rewriting.done else None

    def begin_rewrite(
        self,
        plan: Rewrite,
        codec_for: CodecFor,
        wall_ms: int,
        *,
        buffer_bytes: int = 1 << 20,
        throttle: Throttle | None = None,
    ) -> Rewriting:
        """Start a rewrite; whoever drives it calls `end_rewrite` in the end. One at a time."""
        from logkernel.attrs_lite import evolve
        from logkernel.storage.compaction.rewriting import Rewriting

        self._check()
        if self.rewriting is not None:
            raise LogkernelError(f"{self.name}: a rewrite is under way")
        end = min(plan.end, self._bases[-1])
        plan = evolve(plan, end=self._bases[bisect_right(self._bases, end) - 1] if end >= self._bases[0] else end)
        self._rewriting = Rewriting(self, plan, codec_for, wall_ms, buffer_bytes=buffer_bytes, throttle=throttle)
        return self._rewriting

    def end_rewrite(self, rewriting: Rewriting) -> None:
        """All groups are through: what lies below `rewriting.end` is clean."""
        self.clean_offset = rewriting.end
        self._new_names = True
        self._rewriting = None

    def abandon_rewrite(self, rewriting: Rewriting) -> None:
        """It failed; groups that were swapped before stay as they are."""
        if self._rewriting is rewriting:
            self.drop_later(rewriting.garbage)
            self._rewriting = None

    def replace_segments(self, old: list[Segment], new: Segment) -> None:
        """`new` takes the place of `old`, which lie side by side; readers' slices stay valid."""
        at = self._segments.index(old[0])
        self._segments[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base]
        self._recent = [segment for segment in self._recent if segment not in old]
        for segment in old:
            segment.release()

    def drop_later(self, paths: list[str]) -> None:
        """Files that a rewrite leaves behind when it is stopped: `purge` removes them."""
        if paths:
            self._dropped.renamed(paths)
        self._new_names = True

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `start <= offset < end` may meet records."""
        self._check()
        found = []
        for segment in self._segments[self._floor(start) :]:
            for row in segment.txns.rows():
                if row.last_offset >= start and row.first_offset < end:
                    found.append(row)
                if row.last_stable_offset >= end:
                    return found
        return found
