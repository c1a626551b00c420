"""When the active segment is old enough to be closed (`segment.ms`, `segment.jitter.ms`)."""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.config.topic import TopicSettings
from logkernel.storage.segment import Segment
from logkernel.vocabulary import BatchFacts


class SegmentAge:
    """`jitter` in [0, 1) is the part of `segment.jitter.ms` that `segment.ms` is shortened by."""

    __slots__ = ("_limit_ms", "_settings", "jitter")

    def __init__(self, jitter: float) -> None:
        self.jitter = jitter
        self._settings: TopicSettings | None = None
        self._limit_ms = 0
        """How long a segment may be the active one, as `_settings` have it."""

    def is_over(self, active: Segment, batches: Sequence[BatchFacts], wall_ms: int, settings: TopicSettings) -> bool:
        """Is `active` too old for `batches`? It ages in record timestamps from its first batch on, as in Kafka."""
        first_ms = active.first_ms
        if first_ms is None:
            first_ms = active.first_timestamp()
            if first_ms is None:
                return False
        if first_ms >= 0:
            newest_ms = batches[0].max_timestamp_ms
            for facts in batches[1:]:
                newest_ms = max(newest_ms, facts.max_timestamp_ms)
            waited = newest_ms - first_ms
        else:
            waited = wall_ms - active.created_ms
        if settings is not self._settings:
            self._settings = settings
            self._limit_ms = self._limit(settings)
        return waited > self._limit_ms

    def _limit(self, settings: TopicSettings) -> int:
        limit = settings.segment_ms
        if "compact" in settings.cleanup_policy:
            limit = min(limit, settings.max_compaction_lag_ms)  # what must be compacted by then must be closed by then
        return limit - int(self.jitter * min(settings.segment_jitter_ms, limit))
