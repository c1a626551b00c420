"""A cleanup policy plans what is removed from a log, and its keep-rules say which records stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from logkernel.attrs_lite import frozen
from logkernel.contracts.common import Buffer
from logkernel.contracts.compaction_strategy import BatchView, CompactionStrategy, no_strategy
from logkernel.vocabulary import SegmentFacts


@frozen
class LogFacts:
    """What a cleanup policy may know of a log, at one moment. `wall_ms` is the time in ms since 1970."""

    topic: str
    partition: int
    segments: tuple[SegmentFacts, ...]
    log_start_offset: int
    high_watermark: int
    wall_ms: int
    settings: Any
    """The topic's `TopicSettings`."""
    last_stable_offset: int = -1
    """Every transaction below this offset has ended."""
    clean_offset: int | None = None
    """The end of the last rewrite (`cleaner-offset-checkpoint`); None before the first."""
    table_bytes: int = 0
    """Memory for what a keep-rule learns (its share of `log.cleaner.dedupe.buffer.size`)."""
    table_load_factor: float = 0.9
    """Largest load of a hash table in that memory (`log.cleaner.io.buffer.load.factor`)."""
    seed: bytes = bytes(16)
    """16 random bytes: the policy's only source of randomness."""
    asked: bool = False
    """A user asked for this cleanup: ignore thresholds that decide *when* to clean, such as a dirty ratio."""
    strategy: Callable[[str], CompactionStrategy] = no_strategy
    """Returns a new compaction strategy of that name, for this topic. Raises `PluginError`."""


@frozen
class DropBefore:
    """Delete the segments that lie wholly below `offset`, and move the log start to it. `reason` is logged."""

    offset: int
    reason: str


@runtime_checkable
class KeepRule(Protocol):
    """Decides which records survive a rewrite. One object for each rewrite, used by one worker thread.

    First `learn` gets every batch from `Rewrite.start` to `Rewrite.end`, in order; then `keep` gets every batch from
    the log's start on. Work done without the GIL does not delay the broker.
    """

    def learn(self, batch: BatchView) -> int | None:
        """Learn from a batch. Return None, or the first offset for which there was no room: the rewrite then ends
        there, and `keep` gets it as `end`."""
        ...

    def keep(self, batch: BatchView, end: int) -> bytearray | None:
        """Return a byte for each record, 0 to drop it; None keeps all. Keep every record at `end` or later."""
        ...


class BatchRun(Protocol):
    """Adjacent small batches as they lie in a log: magic 2, valid, not compressed, not transactional.

    `rows` holds one `record.pure_compaction.ROW` a batch: position in `data`, bytes, records, base offset, last offset,
    base timestamp, largest timestamp. The records begin 61 bytes after the position.
    """

    data: Buffer
    rows: bytes


@runtime_checkable
class RunRule(KeepRule, Protocol):
    """A keep-rule that takes many small batches in one call. Optional: other rules get them one by one, which costs
    more than judging them."""

    def learn_run(self, run: BatchRun) -> int:
        """Learn from the first batches, in order; return how many. `learn` gets the next one."""
        ...

    def keep_run(self, run: BatchRun, end: int) -> bytearray:
        """Return one byte a batch: 0 drop all its records, 1 keep all and none has a null value, 2 ask `keep`. The
        result may be shorter than the run: `keep` gets the batch after the last byte."""
        ...


@frozen
class Rewrite:
    """Rewrite the closed segments below `end`, with only the records that `rule` keeps.

    Independent of the rule: offsets and order do not change. Batches keep their base and last offset, producer and
    sequence. Data of aborted transactions are dropped, and markers once their data are gone. The last batch of a
    producer is kept, empty if need be.
    """

    start: int
    """The first offset that the rule learns from."""
    end: int
    """Base offset of a segment. Records at it or later are not touched, nor are those of open transactions."""
    rule: KeepRule
    reason: str
    priority: float = 0.0
    """Among all logs of a broker, the one with the highest priority is rewritten first."""
    tombstones: bool = True
    """Drop a null value that the rule keeps, once `delete.retention.ms` have passed since a rewrite first saw it."""


@runtime_checkable
class CleanupPolicy(Protocol):
    """Turns facts about a log into a plan. It changes nothing itself."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore | Rewrite]: ...
