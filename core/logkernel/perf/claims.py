"""Common claims about Kafka's throughput, and whether measured points support them. Pure.

The claims, and when a curve supports one:

    experiment      claim                                                          held if
    producers       throughput is in proportion to their number                    n of them reach 0.75 n times one
    consumers       the same, until there is one for each partition                as above; beyond, nothing is gained
    partitions      it grows with their number, then levels off                    a gain, and then no fall or rise
    message-size    with the size, records a second fall and MB a second rise      both do, step by step
    replication     each replica more costs throughput                             each step falls

"partly" is a curve that moves as claimed, but not as far. Steps within the noise of a busy machine do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from attrs import frozen

NOISE: Final = 0.1
"""Two figures that differ less than this are taken as equal."""
PROPORTION: Final = 0.75
LEVEL: Final = 0.25
HELD, PARTLY, NOT_HELD, NOT_MEASURED = "held", "partly", "did not hold", "not measured"


@frozen
class Point:
    """The throughput of one setting."""

    x: int
    records_s: float
    mib_s: float


@frozen
class Verdict:
    outcome: str
    why: str


def producers(points: Sequence[Point]) -> Verdict:
    return _in_proportion(points, "producers")


def _in_proportion(points: Sequence[Point], what: str) -> Verdict:
    first, last = points[0], points[-1]
    speed, ideal = last.records_s / first.records_s, last.x / first.x
    why = f"{last.x} {what} reached {speed:.2f} times what {first.x} did; in proportion were {ideal:g} times"
    if all(row.records_s / first.records_s >= PROPORTION * row.x / first.x for row in points):
        return Verdict(HELD, why)
    best = max(points, key=lambda row: row.records_s)
    if best.records_s > first.records_s * (1 + NOISE):
        return Verdict(PARTLY, f"{why}, and the most came with {best.x}")
    return Verdict(NOT_HELD, why)


def consumers(points: Sequence[Point], partitions: int) -> Verdict:
    within = [row for row in points if row.x <= partitions]
    beyond = [row for row in points if row.x > partitions]
    found = _in_proportion(within, "consumers")
    if not beyond:
        return found
    gain = max(row.records_s for row in beyond) / max(row.records_s for row in within)
    why = f"{found.why}; beyond the {partitions} partitions {gain:.2f} times that"
    if found.outcome == HELD and gain > 1 + LEVEL:
        return Verdict(PARTLY, why)
    return Verdict(found.outcome, why)


def partitions(points: Sequence[Point]) -> Verdict:
    first = points[0].records_s
    level = max(row.records_s for row in points)
    # The growth ends where the most is reached, but for noise.
    end = next(index for index, row in enumerate(points) if row.records_s >= level * (1 - NOISE))
    rest = [row.records_s for row in points[end:]]
    lowest = min(rest) / level
    why = f"from {points[0].x} to {points[end].x} partitions {points[end].records_s / first:.2f} times as much"
    if end == 0:
        return Verdict(NOT_HELD, f"{points[0].x} did best already, more fell to {lowest:.2f} of it")
    why += f", from there on never below {lowest:.2f} of the most"
    return Verdict(HELD if len(rest) > 1 and lowest >= 1 - LEVEL else PARTLY, why)


def message_size(points: Sequence[Point]) -> Verdict:
    first, last = points[0], points[-1]
    fewer = all(after.records_s <= before.records_s * (1 + NOISE) for before, after in pairwise(points))
    more = all(after.mib_s >= before.mib_s * (1 - NOISE) for before, after in pairwise(points))
    fewer_in_all, more_in_all = last.records_s < first.records_s * (1 - NOISE), last.mib_s > first.mib_s * (1 + NOISE)
    why = (
        f"from {first.x} to {last.x} bytes {last.records_s / first.records_s:.3g} times the records a second and"
        f" {last.mib_s / first.mib_s:.3g} times the MB a second"
    )
    if fewer and more and fewer_in_all and more_in_all:
        return Verdict(HELD, why)
    if fewer_in_all or more_in_all:
        where = [] if fewer else ["records"]
        where += [] if more else ["MB"]
        return Verdict(PARTLY, f"{why}; {' and '.join(where) or 'neither'} not at every step" if where else why)
    return Verdict(NOT_HELD, why)


def replication(points: Sequence[Point]) -> Verdict:
    if len(points) < 2:
        return Verdict(NOT_MEASURED, "not measured here: one broker")
    first, last = points[0], points[-1]
    why = f"{last.x} replicas reached {last.records_s / first.records_s:.2f} times what {first.x} did"
    if all(after.records_s <= before.records_s * (1 + NOISE) for before, after in pairwise(points)):
        if last.records_s < first.records_s * (1 - NOISE):
            return Verdict(HELD, why)
        return Verdict(NOT_HELD, f"{why}, which is no more than noise")
    return Verdict(PARTLY if last.records_s < first.records_s * (1 - NOISE) else NOT_HELD, why)


Judge = Callable[[Sequence[Point]], Verdict]
