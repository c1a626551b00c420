"""Figures and lines in the shapes of Kafka's tools, from events at known times."""

from __future__ import annotations

import re
from array import array

import pytest

from logkernel.perf.figures import (
    CONSUMED,
    Consumed,
    Latencies,
    ProducerFigures,
    RoundTrips,
    Sent,
    Throttle,
    percentile,
)

MIB = 1024 * 1024


def test_a_window_and_the_whole_run() -> None:
    figures = ProducerFigures(4, 1.0, 10.0)
    assert figures.sent(MIB, 4.0, 10.2) is None
    assert figures.sent(MIB, 8.0, 10.9) is None
    window = figures.sent(0, 3.0, 11.0)
    assert window is not None
    assert (window.records, window.bytes, window.seconds) == (3, 2 * MIB, 1.0)
    assert window.line() == "3 records sent, 3.0 records/sec (2.00 MB/sec), 5.0 ms avg latency, 8.0 ms max latency."
    assert figures.sent(2 * MIB, 1.0, 11.5) is None
    total = figures.total(12.0)
    assert total.line() == (
        "4 records sent, 2.000000 records/sec (2.00 MB/sec), 4.00 ms avg latency, 8.00 ms max latency,"
        " 4 ms 50th, 8 ms 95th, 8 ms 99th, 8 ms 99.9th."
    )
    assert (window.row()["kind"], total.row()["kind"]) == ("window", "total")
    assert total.row()["latencyMs99.9th"] == 8.0
    assert "failed" not in total.row()


def test_a_window_begins_where_the_last_one_ended() -> None:
    figures = ProducerFigures(3, 1.0, 0.0)
    first, second = figures.sent(1, 9.0, 1.5), figures.sent(1, 2.0, 2.5)
    assert first is not None
    assert second is not None
    assert (first.seconds, second.seconds) == (1.5, 1.0)
    assert second.latency_max_ms == 2.0


@pytest.mark.parametrize(("part", "expected"), [(0.0, 1.0), (0.5, 3.0), (0.95, 4.0), (0.999, 4.0), (1.0, 4.0)])
def test_percentiles_are_taken_by_rank(part: float, expected: float) -> None:
    assert percentile(array("d", (1.0, 2.0, 3.0, 4.0)), part) == expected
    assert percentile(array("d"), part) == 0.0


def test_latencies_of_many_are_sampled_but_averages_are_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logkernel.perf.figures.MOST_SAMPLES", 10)
    latencies = Latencies(100)
    for number in range(100):
        latencies.add(float(number))
    assert latencies.percentiles() == (50.0, 90.0, 90.0, 90.0)  # of 0, 10, 20 ...
    assert (latencies.average_ms, latencies.max_ms) == (49.5, 99.0)


def test_what_a_consumer_did() -> None:
    found = Consumed(1_000_000_000_123, 1_000_000_002_123, 4000, 4 * MIB, joining_ms=1000)
    assert found.header().split(", ") == ["start.time", "end.time", *CONSUMED]
    cells = found.line().split(", ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:123", cells[0])
    assert cells[2:] == ["4.0000", "2.0000", "4000", "2000.0000", "1000", "1000", "4.0000", "4000.0000"]
    assert found.row()["fetch.nMsg.sec"] == pytest.approx(4000)
    window = Consumed(0, 500, 10, 0, window=True)
    assert window.header().startswith("time, threadId, data.consumed.in.MB")
    assert window.line().split(", ")[1] == "0"


def test_round_trips_are_told_to_the_microsecond() -> None:
    trips = RoundTrips(Latencies(2), Latencies(2))
    for latency_ms in (0.125, 0.375):
        trips.acknowledged.add(latency_ms)
        trips.read.add(2 * latency_ms)
    assert trips.lines() == [
        "Acknowledged: 0.2500 ms avg, 0.3750 ms max, 50th = 0.375, 99th = 0.375, 99.9th = 0.375",
        "Avg latency: 0.5000 ms",
        "Percentiles: 50th = 0.750, 99th = 0.750, 99.9th = 0.750",
    ]
    assert [row["kind"] for row in trips.rows()] == ["acknowledged", "endToEnd"]


def test_a_rate_is_kept_without_tiny_sleeps() -> None:
    throttle = Throttle(100, 5.0)
    assert throttle.wait_s(1, 5.009) == 0.0
    assert throttle.wait_s(10, 5.05) == pytest.approx(0.05)
    assert throttle.wait_s(10, 6.0) == 0.0
    assert Throttle(-1, 0.0).wait_s(10**9, 0.0) == 0.0


def test_no_time_divides_by_nothing() -> None:
    assert Sent(1, 1, 0.0).records_s > 0
    assert Consumed(5, 5, 1, 1).records_s > 0
