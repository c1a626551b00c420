"""Delivery states of ranges of offsets, as they are persisted, and how newer ones are laid over older ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVED: Final = 4
"""Delivery states by their numbers on the wire (KIP-932). ACQUIRED is never persisted."""


class Batch(NamedTuple):
    """Offsets `first` to `last`, both included: their delivery state, and how often they were delivered."""

    first: int
    last: int
    state: int
    deliveries: int


def overlay(old: Iterable[Batch], new: Iterable[Batch], start: int) -> tuple[Batch, ...]:
    """`old` with `new` above it from offset `start` on: ascending, without overlaps, equal neighbours joined.

    Where both know an offset, more deliveries rule, and among equals the later state, so that a late and
    a repeated write change nothing.
    """
    found: list[Batch] = sorted(old)
    for batch in new:
        found = _lay(found, batch)
    return _joined(found, start)


def _lay(below: list[Batch], new: Batch) -> list[Batch]:
    out: list[Batch] = []
    at = new.first
    """The first offset of `new` that is not laid yet."""
    for old in below:
        if old.last < new.first or old.first > new.last:
            out.append(old)
            continue
        if old.first < new.first:
            out.append(old._replace(last=new.first - 1))
        low, high = max(old.first, new.first), min(old.last, new.last)
        if at < low:
            out.append(new._replace(first=at, last=low - 1))
        rules = old if (old.deliveries, old.state) > (new.deliveries, new.state) else new
        out.append(rules._replace(first=low, last=high))
        at = high + 1
        if old.last > new.last:
            out.append(old._replace(first=new.last + 1))
    if at <= new.last:
        out.append(new._replace(first=at))
    return sorted(out)


def _joined(batches: Iterable[Batch], start: int) -> tuple[Batch, ...]:
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
    return tuple(out)
