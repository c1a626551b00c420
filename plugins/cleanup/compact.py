"""Cleanup `compact`: keeps one record of each key; drops tombstones `delete.retention.ms` after a rewrite saw them.

| `compaction.strategy` | record of a key that is kept | learns from |
|---|---|---|
| `offset` | the last | the dirty part: the records since the last rewrite |
| `timestamp` | the one with the latest timestamp, the last of these | the whole log |
| `header` | the one with the highest version, the last of these (KIP-280) | the whole log |
| a plugin's | the one with the highest version that it gives, the last of these | the whole log |

The version of `header` is the value of the last header named `compaction.strategy.header`: 8 bytes, a signed
big-endian number; a record without it is below every version. All but `offset` learn from the whole log, as an old
record may be the one to keep: the key table must have room for every key.

A log is due when the dirty part has more than `min.cleanable.dirty.ratio` of the cleanable bytes, or when its first
record is older than `max.compaction.lag.ms`. The rewrite ends before the first segment that is active, reaches the last
stable offset, or has a record younger than `min.compaction.lag.ms`. Segments below the log's start are dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.topic import MAX_LONG, TopicSettings
from logkernel.config.values import STRING, OneOf
from logkernel.contracts import (
    BatchRun,
    BatchView,
    CleanupPolicy,
    CompactionStrategy,
    DropBefore,
    LogFacts,
    Rewrite,
)
from logkernel.errors import InvalidConfig
from logkernel.hookspecs import hookimpl
from logkernel.record import loops
from logkernel.vocabulary import SegmentFacts

STRATEGY = "compaction.strategy"
HEADER = "compaction.strategy.header"
STRATEGIES = ("offset", "timestamp", "header")
ENTRY_BYTES, VERSIONED_ENTRY_BYTES = 24, 32
LEAST_TABLE_BYTES = 1 << 12
NO_VERSION = -(2**63)


class Winners:
    """`contracts.KeepRule` with a table of keys, created at the first batch. Without a strategy, the last wins."""

    def __init__(self, log: LogFacts, start: int, end: int, strategy: CompactionStrategy | None = None) -> None:
        versioned = strategy is not None
        entry = VERSIONED_ENTRY_BYTES if versioned else ENTRY_BYTES
        wanted = int((end - start + 2) * entry / log.table_load_factor) + LEAST_TABLE_BYTES
        self._start = start
        self._strategy = strategy
        self._table_of = (min(log.table_bytes, wanted), log.table_load_factor, log.seed, versioned)
        self._table: loops.OffsetMap | None = None

    def _versions(self, batch: BatchView) -> bytes | None:
        """Return an int64 for each record, in native order; None if only offsets count."""
        if self._strategy is None:
            return None
        found = self._strategy.versions(batch)
        return found if isinstance(found, bytes) else array("q", found).tobytes()

    def _keys(self) -> loops.OffsetMap:
        if self._table is None:
            self._table = loops.OffsetMap(*self._table_of)
        return self._table

    def learn(self, batch: BatchView) -> int | None:
        done = self._keys().add(
            batch.section, batch.start, batch.end, batch.count, batch.base_offset, self._start, self._versions(batch)
        )
        return None if done == batch.count else batch.records()[done].offset

    def keep(self, batch: BatchView, end: int) -> bytearray | None:
        if self._table is None or batch.base_offset >= end:
            return None
        return self._table.keep(
            batch.section, batch.start, batch.end, batch.count, batch.base_offset, end, self._versions(batch)
        )


class LastWins(Winners):
    """`contracts.RunRule`."""

    def learn_run(self, run: BatchRun) -> int:
        return self._keys().add_batches(run.data, run.rows, self._start)

    def keep_run(self, run: BatchRun, end: int) -> bytearray:
        return bytearray() if self._table is None else self._table.keep_batches(run.data, run.rows, end)


class ByTimestamp:
    """`contracts.CompactionStrategy`."""

    def versions(self, batch: BatchView) -> bytes:
        timestamps: bytes = batch.columns().timestamps
        return timestamps


class ByHeader:
    """`contracts.CompactionStrategy`."""

    def __init__(self, header: str) -> None:
        self._header = header

    def versions(self, batch: BatchView) -> Sequence[int]:
        return [self._version(record.headers) for record in batch.records()]

    def _version(self, headers: Sequence[tuple[str, bytes | None]]) -> int:
        for name, value in reversed(headers):
            if name == self._header:
                whole = value is not None and len(value) == 8
                return int.from_bytes(value or b"", "big", signed=True) if whole else NO_VERSION
        return NO_VERSION


class Compact:
    """`contracts.CleanupPolicy`; stateless."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore | Rewrite]:
        plans: list[DropBefore | Rewrite] = []
        gone = [each for each in log.segments if not each.active and each.next_offset <= log.log_start_offset]
        if gone:
            plans.append(DropBefore(gone[-1].next_offset, f"below the log's start {log.log_start_offset}"))
        rewrite = self._rewrite(log, log.segments[len(gone) :])
        if rewrite is not None:
            plans.append(rewrite)
        return plans

    def _rewrite(self, log: LogFacts, segments: Sequence[SegmentFacts]) -> Rewrite | None:
        settings: TopicSettings = log.settings
        dirty_from = first_dirty(log, segments)
        ready = cleanable(log, segments, dirty_from)
        dirty = [each for each in ready if each.next_offset > dirty_from]
        dirty_bytes = sum(each.size_bytes for each in dirty)
        if not dirty_bytes:
            return None
        ratio = dirty_bytes / sum(each.size_bytes for each in ready)
        overdue = _is_overdue(log, dirty, settings.max_compaction_lag_ms)
        if not (log.asked or overdue or ratio > settings.min_cleanable_dirty_ratio):
            return None
        reason = f"dirty ratio {ratio:.2f}" + (", max.compaction.lag.ms is over" if overdue else "")
        end = ready[-1].next_offset
        strategy = settings.plugin.get(STRATEGY, "offset") or "offset"
        start = dirty_from if strategy == "offset" else ready[0].base_offset
        rule = LastWins(log, start, end) if strategy == "offset" else Winners(log, start, end, log.strategy(strategy))
        return Rewrite(start, end, rule, reason, ratio)


def first_dirty(log: LogFacts, segments: Sequence[SegmentFacts]) -> int:
    """Return the end of the last rewrite, or the log's start if that offset is no longer in the log."""
    start = max(log.log_start_offset, segments[0].base_offset)
    clean = log.clean_offset
    return start if clean is None or not start <= clean <= segments[-1].next_offset else clean


def cleanable(log: LogFacts, segments: Sequence[SegmentFacts], dirty_from: int) -> list[SegmentFacts]:
    """Return the segments that a rewrite may touch, oldest first."""
    lag_ms = log.settings.min_compaction_lag_ms
    stable = min(log.last_stable_offset, log.high_watermark)
    found: list[SegmentFacts] = []
    for each in segments:
        young = lag_ms > 0 and each.largest_timestamp_ms > log.wall_ms - lag_ms and each.next_offset > dirty_from
        if each.active or each.next_offset > stable or young:
            break
        found.append(each)
    return found


def _is_overdue(log: LogFacts, dirty: Sequence[SegmentFacts], lag_ms: int) -> bool:
    times = [each.first_timestamp_ms for each in dirty if each.first_timestamp_ms > 0]
    return lag_ms < MAX_LONG and bool(times) and log.wall_ms - min(times) > lag_ms


@hookimpl
def logkernel_cleanup(name: str) -> CleanupPolicy | None:
    return Compact() if name == "compact" else None


@hookimpl
def logkernel_compaction_strategy(name: str, settings: Mapping[str, Any]) -> CompactionStrategy | None:
    if name == "timestamp":
        return ByTimestamp()
    if name != "header":
        return None
    header = settings.get(HEADER)
    if not header:
        raise InvalidConfig(f"{STRATEGY}=header needs the name of a header; set {HEADER}")
    return ByHeader(header)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("cleanup policy", "compact"), *(("compaction strategy", name) for name in STRATEGIES)]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [
        Setting(
            STRATEGY, STRING, "offset", OneOf(*STRATEGIES),
            "Which record of a key stays when a topic is compacted: the one with the last `offset`, with the latest"
            " `timestamp`, with the highest version in a `header` (KIP-280), or with that of a plugin.",
            scope=TOPIC, own=True, chooses="compaction strategy",
        ),
        Setting(
            HEADER, STRING, "", None,
            "Name of the header that holds the version, 8 bytes, where compaction.strategy is `header`.",
            scope=TOPIC, own=True,
        ),
    ]  # fmt: skip
