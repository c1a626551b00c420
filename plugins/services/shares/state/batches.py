"""Delivery states of ranges of offsets, as they are persisted, and how newer ones are laid over older ones."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVED: Final = 4
"""Delivery states by their numbers on the wire (KIP-932). ACQUIRED is never persisted."""


_first, _last = attrgetter("first"), attrgetter("last")


class Batch(NamedTuple):
    """Offsets `first` to `last`, both included: their delivery state, and how often they were delivered."""

    first: int
    last: int
    state: int
    deliveries: int


def overlay(old: Sequence[Batch], new: Sequence[Batch], start: int) -> tuple[Batch, ...]:
    """`old` with `new` above it from offset `start` on: ascending, without overlaps, equal neighbours joined. `old` is
    so already, and only what `new` touches of it is looked at: a state may be large, and a write seldom is.

    Where both know an offset, more deliveries rule, and among equals the later state, so that a late and
    a repeated write change nothing.
    """
    kept = old[bisect_left(old, start, key=_last) :]
    if kept and kept[0].first < start:
        kept = (kept[0]._replace(first=start), *kept[1:])
    if not new:
        return tuple(kept)
    low = bisect_left(kept, min(batch.first for batch in new) - 1, key=_last)
    high = bisect_right(kept, max(batch.last for batch in new) + 1, key=_first)
    return (*kept[:low], *_joined(_laid(sorted([*kept[low:high], *new])), start), *kept[high:])


def _laid(batches: Sequence[Batch]) -> Iterator[Batch]:
    """For each offset the batch that rules there; `batches` ascend by their first offsets, and may overlap. It takes
    time for their number once, and not for each pair of them: a broker may be sent a million."""
    over: list[tuple[int, int, int]] = []
    """Negative deliveries and state, and the last offset, of those that have begun."""
    at = coming = 0
    while over or coming < len(batches):
        if not over:
            at = batches[coming].first
        while coming < len(batches) and batches[coming].first <= at:
            _, last, state, deliveries = batches[coming]
            heappush(over, (-deliveries, -state, last))
            coming += 1
        deliveries, state, last = over[0]
        if last < at:
            heappop(over)
            continue
        end = last if coming == len(batches) else min(last, batches[coming].first - 1)
        yield Batch(at, end, -state, -deliveries)
        at = end + 1


def _joined(batches: Iterable[Batch], start: int) -> list[Batch]:
    out: list[Batch] = []
    for batch in batches:
        if batch.last < start:
            continue
        if batch.first < start:
            batch = batch._replace(first=start)
        if out and out[-1].last + 1 == batch.first and out[-1][2:] == batch[2:]:
            out[-1] = out[-1]._replace(last=batch.last)
        else:
            out.append(batch)
    return out
