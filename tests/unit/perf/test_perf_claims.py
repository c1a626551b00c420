"""Whether points bear a claim out: curves as they would be drawn, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from logkernel.perf import claims
from logkernel.perf.claims import HELD, NOT_HELD, NOT_MEASURED, PARTLY, Point


def points(x: Sequence[int], records: Sequence[float], mib: Sequence[float] | None = None) -> list[Point]:
    sizes = [value / 1000 for value in records] if mib is None else mib
    return [Point(*row) for row in zip(x, records, sizes, strict=True)]


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([100, 200, 400], HELD),
        ([100, 160, 310], HELD),
        ([100, 190, 200], PARTLY),
        ([100, 190, 90], PARTLY),
        ([100, 105, 102], NOT_HELD),
        ([100, 80, 60], NOT_HELD),
    ],
)
def test_producers_in_proportion(records: list[float], outcome: str) -> None:
    assert claims.producers(points([1, 2, 4], records)).outcome == outcome


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([100, 200, 400, 400], HELD),
        ([100, 200, 400, 350], HELD),
        ([100, 200, 400, 800], PARTLY),
        ([100, 150, 180, 170], PARTLY),
        ([100, 100, 90, 80], NOT_HELD),
    ],
)
def test_consumers_up_to_the_partitions(records: list[float], outcome: str) -> None:
    assert claims.consumers(points([1, 2, 4, 8], records), 4).outcome == outcome
    assert claims.consumers(points([1, 2, 4], [100, 200, 400]), 4).outcome == HELD


@pytest.mark.parametrize(
    ("records", "outcome"),
    [
        ([100, 150, 200, 195, 205], HELD),
        ([100, 150, 200, 180, 160], HELD),
        ([100, 150, 200, 120, 90], PARTLY),
        ([100, 120, 150, 200, 300], PARTLY),
        ([100, 98, 99, 100, 95], NOT_HELD),
        ([100, 80, 60, 40, 20], NOT_HELD),
    ],
)
def test_partitions_grow_then_level_off(records: list[float], outcome: str) -> None:
    assert claims.partitions(points([1, 2, 4, 8, 16], records)).outcome == outcome


@pytest.mark.parametrize(
    ("records", "mib", "outcome"),
    [
        ([100, 50, 20], [1, 5, 20], HELD),
        ([100, 105, 20], [1, 10, 20], HELD),
        ([100, 50, 20], [10, 5, 20], PARTLY),
        ([100, 50, 80], [1, 5, 20], PARTLY),
        ([100, 120, 150], [1, 0.9, 0.8], NOT_HELD),
    ],
)
def test_larger_messages(records: list[float], mib: list[float], outcome: str) -> None:
    verdict = claims.message_size(points([10, 100, 1000], records, mib))
    assert verdict.outcome == outcome
    assert "from 10 to 1000 bytes" in verdict.why


def test_the_claim_on_replicas_is_judged_by_its_curve() -> None:
    assert claims.replication([]).outcome == NOT_MEASURED
    assert claims.replication([]).why == "not measured here: one broker"
    assert claims.replication(points([1, 2, 3], [100, 70, 50])).outcome == HELD
    assert claims.replication(points([1, 2, 3], [100, 97, 95])).outcome == NOT_HELD
    assert claims.replication(points([1, 2, 3], [100, 50, 70])).outcome == PARTLY
    assert claims.replication(points([1, 2, 3], [100, 150, 170])).outcome == NOT_HELD
