"""When the active segment is closed, and how the next one begins.

| it is closed before batches that | |
|---|---|
| would make it larger than `segment.bytes` | |
| are newer than its first record by more than `segment.ms` | by the records' timestamps, as in Kafka; less a jitter |
| need an entry of an index that is full | `segment.index.bytes` |
| lie too far from its base offset | an index counts from it in 31 bits |

It is closed early by those who clean, so that what it holds is cleaned too.
"""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.config.topic import TopicSettings
from logkernel.storage.dropped_files import RENAMED_AT_ONCE
from logkernel.storage.flush import Flusher
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.producer_snapshots import ProducerSnapshots
from logkernel.storage.segment import MAX_RELATIVE, Segment
from logkernel.storage.segments import Segments
from logkernel.vocabulary import BatchFacts


class SegmentRoll:
    """`jitter` in [0, 1) is the part of `segment.jitter.ms` that `segment.ms` is shortened by."""

    __slots__ = ("_flusher", "_folder", "_limit_ms", "_producers", "_segments", "_settings", "jitter")

    def __init__(
        self, segments: Segments, folder: LogFolder, flusher: Flusher, producers: ProducerSnapshots, jitter: float
    ) -> None:
        self._segments = segments
        self._folder = folder
        self._flusher = flusher
        self._producers = producers
        self.jitter = jitter
        self._settings: TopicSettings | None = None
        self._limit_ms = 0
        """How long a segment may be the active one, as `_settings` have it."""

    def is_due(
        self, size: int, last: int, batches: Sequence[BatchFacts], wall_ms: int, settings: TopicSettings
    ) -> bool:
        """Do `batches`, up to offset `last`, begin a segment? `size` is what the active one would have with them."""
        active = self._segments.active
        if last - active.base > MAX_RELATIVE:
            return True
        if not active.size:
            return False
        index, times = active.index, active.times
        if size > settings.segment_bytes or index.count >= index.full_at or times.count >= times.full_at:
            return True
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

    def roll(self, base: int, log_end: int, wall_ms: int, settings: TopicSettings) -> Segment | None:
        """Close the active segment and begin one at `base`, which is the log's end or, in a log with gaps, above it.

        Returns the one that was closed; None where there was nothing in it.
        """
        segments, folder = self._segments, self._folder
        old = segments.active
        if old.size == 0 and old.base == base:
            return None
        old.seal()
        if self._flusher.recovery_point >= log_end:
            old.sync()  # once there is a new segment, recovery will not look at this one: its indexes must be durable
        if old.size:
            self._producers.write(log_end)  # before anything changes here: a full disk may refuse it
        segments.add(folder.new_segment(base, wall_ms, settings))
        if old.size == 0:
            segments.take_empty(old)
            folder.dropped.leave(old.base, wall_ms)
            folder.dropped.rename(RENAMED_AT_ONCE)
            return None
        old.next_offset = log_end
        return old
