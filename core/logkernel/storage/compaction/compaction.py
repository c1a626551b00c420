"""Which rewrite of a log's closed segments is under way, and how far the last one came; `rewriting` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.attrs_lite import evolve
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Rewrite
from logkernel.errors import LogkernelError
from logkernel.record.bounds import CodecFor
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.producer_snapshots import ProducerSnapshots
from logkernel.storage.segment import Segment
from logkernel.storage.segments import Segments
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.storage.compaction.rewriting import Rewriting
    from logkernel.storage.compaction.segment_writer import Throttle


class Compaction:
    """One rewrite at a time."""

    __slots__ = ("_folder", "_name", "_producers", "_rewriting", "_segments", "clean_offset")

    def __init__(
        self,
        name: TopicPartition,
        segments: Segments,
        folder: LogFolder,
        producers: ProducerSnapshots,
        clean_offset: int | None,
    ) -> None:
        self._name = name
        self._segments = segments
        self._folder = folder
        self._producers = producers
        self._rewriting: Rewriting | None = None
        self.clean_offset = clean_offset
        """All below it is compacted; None before the first rewrite."""

    @property
    def current(self) -> Rewriting | None:
        """The rewrite that is under way."""
        return self._rewriting if self._rewriting is not None and not self._rewriting.done else None

    def begin(
        self,
        plan: Rewrite,
        codec_for: CodecFor,
        wall_ms: int,
        settings: TopicSettings,
        *,
        buffer_bytes: int,
        throttle: Throttle | None,
    ) -> Rewriting:
        """Start a rewrite with `settings`. The caller drives it, and calls `end` or `abandon`."""
        from logkernel.storage.compaction.rewriting import Rewriting

        if self.current is not None:
            raise LogkernelError(f"{self._name}: a rewrite is under way; wait for its end")
        segments = self._segments
        end = min(plan.end, segments.last_base)
        if end >= segments.first_base:
            end = segments[segments.floor(end)].base
        self._rewriting = Rewriting(
            self._name, self._folder, segments, self._producers.ledger.entries(), settings, evolve(plan, end=end),
            codec_for, wall_ms, buffer_bytes=buffer_bytes, throttle=throttle,
        )  # fmt: skip
        return self._rewriting

    def end(self, rewriting: Rewriting) -> None:
        """All groups are rewritten: everything below `rewriting.end` is clean."""
        self.clean_offset = rewriting.end
        self._folder.names_changed()
        self._rewriting = None

    def abandon(self, rewriting: Rewriting) -> None:
        """It failed; groups that were swapped before stay as they are."""
        if self._rewriting is rewriting:
            self._folder.drop_later(rewriting.garbage)
            self._rewriting = None

    def stop(self, *, finish: bool = True) -> None:
        """Bring the rewrite that is under way to an end; with `finish` a swap is finished."""
        if self._rewriting is not None:
            self._rewriting.stop(finish=finish)
            self._rewriting = None

    def give_way(self, segment: Segment) -> None:
        """`segment` is to be dropped: stop the rewrite that reads it."""
        if self._rewriting is not None and self._rewriting.uses(segment):
            self.stop()

    def cut(self, log_end: int) -> None:
        """The log now ends at `log_end`; what will be written there is not clean."""
        if self.clean_offset is not None:
            self.clean_offset = min(self.clean_offset, log_end)
