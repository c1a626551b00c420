"""Tells what compaction did to a log from damage: holes between segments, aborted transactions, producers' states.

Pure: what a walk over the log met goes in, what is wrong comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from logkernel.record.control import ABORT
from logkernel.record.filtering import marker_kind
from logkernel.vocabulary import BatchFacts, ProducerEntry

Row = tuple[int, int, int]
"""Of the index of aborted transactions: producer id, first offset, last offset."""


@define
class Holes:
    """Which offsets between two segments compaction may have taken."""

    clean_offset: int | None
    """Where compaction came to, as the directory's checkpoint says; behind it no hole is its work."""
    orphans: set[int] = field(factory=set)
    """Base offsets of logs that are not there, though an index is, where no removal or rewrite is unfinished."""
    before: int = 0
    """Base offset of the segment before the hole."""

    def is_damage(self, end: int, base: int) -> bool:
        """Whether offsets `end` to `base` - 1 are lost, after a clean end: no index is left of what compaction took
        then, and no hole lies behind a segment that it did not come to."""
        behind = self.clean_offset is not None and self.before >= self.clean_offset
        return behind or any(end <= at < base for at in self.orphans)


@frozen
class Abort:
    """An abort marker, and what its row in the index of aborted transactions may say."""

    producer_id: int
    offset: int
    first: int | None
    """The first batch of its transaction that is there, None without one."""
    after: int
    """Where the producer's marker before it lies."""


@define
class Transactions:
    """Where transactions begin and end, as far as their batches are there."""

    _ended: dict[int, int] = field(init=False, factory=dict)
    """Producer → its last marker."""
    _begun: dict[int, int] = field(init=False, factory=dict)
    """Producer → the first batch of its open transaction that is there."""

    def note(self, facts: BatchFacts, data: bytes) -> Abort | None:
        """The next batch of a producer; what it aborts. Raises `KafkaError` for a control batch that is none."""
        producer = facts.producer_id
        if facts.is_control and facts.count:
            first = self._begun.pop(producer, None)
            after, self._ended[producer] = self._ended.get(producer, -1), facts.base_offset
            if marker_kind(data, facts) == ABORT:
                return Abort(producer, facts.base_offset, first, after)
        elif facts.is_transactional and not facts.is_control:
            self._begun.setdefault(producer, facts.base_offset)
        return None


def wrong_rows(there: set[Row], aborted: Sequence[Abort], start_offset: int, compacted: bool) -> Iterator[str]:
    """What is wrong with a segment's index of aborted transactions, where these markers lie in the segment.

    The log begins at `start_offset`; `compacted`: batches before or among them may be gone.
    """
    right = {row for row in there for each in aborted if _tells_of(row, each, start_offset, compacted)}
    told = {(producer_id, last) for producer_id, _, last in right}
    for each in sorted(aborted, key=lambda each: (each.producer_id, each.offset)):
        if each.first is not None and (each.producer_id, each.offset) not in told:
            yield f"lacks the aborted transaction {each.first} to {each.offset} of producer {each.producer_id}"
    for producer_id, first, last in sorted(there - right):
        yield f"transaction {first} to {last} of producer {producer_id} was not aborted there"


def _tells_of(row: Row, marker: Abort, start_offset: int, compacted: bool) -> bool:
    """A row outlives the first batches of its transaction, which lay below the log's start or gave way to later ones,
    and all of them by one compaction."""
    producer_id, first, last = row
    if (producer_id, last) != (marker.producer_id, marker.offset):
        return False
    if first == marker.first:
        return True
    gone = compacted or first < start_offset
    return gone and marker.after < first <= (last if marker.first is None else marker.first)


def is_behind(mine: ProducerEntry, told: ProducerEntry) -> bool:
    """Whether what the log holds of a producer is older than what a snapshot tells, as what that tells of gave way to
    what came later."""
    if mine.producer_epoch != told.producer_epoch:
        return mine.producer_epoch < told.producer_epoch
    return bool(told.batches) and (not mine.batches or mine.batches[-1][1] < told.batches[-1][1])
