"""Where a batch begins and ends, by a log made of numbers: a record's timestamp is ten times its offset."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from logkernel.errors import ConfigError
from logkernel.plugins.spark.ends import batch_ranges, ends, starts
from logkernel.plugins.spark.options import At, parse
from logkernel.plugins.spark.planning import DataLoss
from logkernel.vocabulary import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@frozen
class Bounds:
    start: int
    end: int


BOUNDS: Any = {A: Bounds(5, 50), B: Bounds(0, 20)}


class Log:
    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        bounds = BOUNDS[partition]
        found = max(bounds.start, -(-timestamp_ms // 10))
        return found if found < bounds.end else None


LOG: Any = Log()


@pytest.mark.parametrize(
    ("at", "strategy", "expected"),
    [
        (At("earliest"), "error", {A: 5, B: 0}),
        (At("latest"), "error", {A: 50, B: 20}),
        (At("specific", {A: 7, B: -1}), "error", {A: 7, B: 20}),
        (At("specific", {A: -2, B: 3}), "error", {A: 5, B: 3}),
        (At("timestamp", timestamp_ms=101), "error", {A: 11, B: 11}),
        (At("timestamps", timestamps={A: 0, B: 190}), "error", {A: 5, B: 19}),
        (At("timestamp", timestamp_ms=200), "latest", {A: 20, B: 20}),
    ],
)
def test_starts_are_resolved_within_bounds(at: At, strategy: str, expected: dict[TopicPartition, int]) -> None:
    assert starts(at, BOUNDS, LOG, strategy) == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (At("latest"), {A: 50, B: 20}),
        (At("specific", {A: 7, B: -1}), {A: 7, B: 20}),
        (At("timestamp", timestamp_ms=200), {A: 20, B: 20}),
        (At("timestamps", timestamps={A: 501, B: 30}), {A: 50, B: 3}),
    ],
)
def test_ends_are_resolved_within_bounds(at: At, expected: dict[TopicPartition, int]) -> None:
    assert ends(at, BOUNDS, LOG) == expected


def test_a_late_timestamp_is_an_error_where_the_strategy_says_so() -> None:
    with pytest.raises(ConfigError, match="t-1 has no record at or after 200 ms"):
        starts(At("timestamp", timestamp_ms=200), BOUNDS, LOG, "error")


@pytest.mark.parametrize("specific", [{A: 7}, {A: 7, B: 1, TopicPartition("u", 0): 1}])
def test_every_partition_must_be_named(specific: dict[TopicPartition, int]) -> None:
    with pytest.raises(ConfigError, match="every partition"):
        starts(At("specific", specific), BOUNDS, LOG, "error")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [(A, 5, 50), (B, 0, 20)]),
        ({"startingOffsets": '{"t": {"0": 50, "1": 3}}'}, [(B, 3, 20)]),
        ({"endingOffsets": '{"t": {"0": 6, "1": 0}}'}, [(A, 5, 6)]),
        ({"startingTimestamp": "100", "endingTimestamp": "150"}, [(A, 10, 15), (B, 10, 15)]),
        ({"startingOffsets": '{"t": {"0": 1, "1": 3}}', "failOnDataLoss": "false"}, [(A, 5, 50), (B, 3, 20)]),
        ({"endingOffsets": '{"t": {"0": 99, "1": -1}}', "failOnDataLoss": "false"}, [(A, 5, 50), (B, 0, 20)]),
    ],
)
def test_ranges_of_a_batch(given: dict[str, str], expected: list[tuple[TopicPartition, int, int]]) -> None:
    found = batch_ranges(parse({"path": "x", "subscribe": "t", **given}), BOUNDS, LOG)
    assert [(row.partition, row.start, row.end) for row in found] == expected


@pytest.mark.parametrize(
    "given", [{"startingOffsets": '{"t": {"0": 1, "1": 3}}'}, {"endingOffsets": '{"t": {"0": 99, "1": -1}}'}]
)
def test_offsets_that_are_not_there_are_lost(given: dict[str, str]) -> None:
    with pytest.raises(DataLoss, match="failOnDataLoss=false"):
        batch_ranges(parse({"path": "x", "subscribe": "t", **given}), BOUNDS, LOG)


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": '{"t": {"0": 7, "1": 3}}', "endingOffsets": '{"t": {"0": 6, "1": 4}}'},
        {"startingOffsets": '{"t": {"0": 51, "1": -2}}', "failOnDataLoss": "false"},
        {"startingTimestamp": "150", "endingTimestamp": "100"},
    ],
)
def test_an_end_before_the_start_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"t-0 would begin at [0-9]+, behind its end"):
        batch_ranges(parse({"path": "x", "subscribe": "t", **given}), BOUNDS, LOG)
