"""Cleanup `delete`: drops whole segments, oldest first, by age, by size, and below the log's start.

| rule | a segment is dropped while |
|---|---|
| age | `retention.ms` >= 0 and its newest record is older than that |
| size | `retention.bytes` >= 0 and the log without it has at least that many bytes |
| start | all of its records are below the log's start (DeleteRecords moved it) |

A rule stops at the first segment that stays. No record at or above the high watermark is dropped. The active segment
stays if it is empty, and by the start rule. If age or size drop it, the plan drops everything below its next offset:
the broker rolls first, then drops, so that a log always has an active segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from logkernel.config.topic import TopicSettings
from logkernel.contracts import CleanupPolicy, DropBefore, LogFacts
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import SegmentFacts

Goes = Callable[[SegmentFacts], bool]


class Delete:
    """`contracts.CleanupPolicy`; stateless."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore]:
        settings: TopicSettings = log.settings
        plans: list[DropBefore] = []
        left = list(log.segments)
        rules = (
            (_too_old(log.wall_ms, settings.retention_ms), f"older than retention.ms={settings.retention_ms}"),
            (_too_much(left, settings.retention_bytes), f"above retention.bytes={settings.retention_bytes}"),
            (_below(log.log_start_offset), f"below the log's start {log.log_start_offset}"),
        )
        for goes, reason in rules:
            count = _how_many(left, goes, log.high_watermark)
            if count:
                plans.append(DropBefore(left[count - 1].next_offset, reason))
                del left[:count]
        return plans


def _how_many(segments: Sequence[SegmentFacts], goes: Goes, high_watermark: int) -> int:
    for index, segment in enumerate(segments):
        empty = segment.next_offset == segment.base_offset
        if (segment.active and empty) or segment.next_offset > high_watermark or not goes(segment):
            return index
    return len(segments)


def _too_old(wall_ms: int, retention_ms: int) -> Goes:
    return lambda segment: retention_ms >= 0 and wall_ms - segment.largest_timestamp_ms > retention_ms


def _too_much(left: list[SegmentFacts], retention_bytes: int) -> Goes:
    """Return the size rule, which counts down from `left`, the bytes that the rule before it has kept."""
    spare: int | None = None

    def goes(segment: SegmentFacts) -> bool:
        nonlocal spare
        if retention_bytes < 0:
            return False
        if spare is None:
            spare = sum(one.size_bytes for one in left) - retention_bytes
        if spare < segment.size_bytes:
            return False
        spare -= segment.size_bytes
        return True

    return goes


def _below(log_start_offset: int) -> Goes:
    return lambda segment: not segment.active and segment.next_offset <= log_start_offset


@hookimpl
def logkernel_cleanup(name: str) -> CleanupPolicy | None:
    return Delete() if name == "delete" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("cleanup policy", "delete")]
