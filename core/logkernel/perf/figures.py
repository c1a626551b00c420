"""Counts, latencies and windows of one run, as Kafka's perf tools compute and print them. Pure: times are arguments.

A MB is 1,048,576 bytes, as there. Percentiles are of every n-th record, half a million at most; averages and maxima are
of all records.
"""

from __future__ import annotations

from array import array
from datetime import datetime
from typing import Any, Final

from attrs import define, field

MIB: Final = 1024 * 1024
MOST_SAMPLES: Final = 500_000
PERCENTILES: Final = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
CONSUMED: Final = (
    "data.consumed.in.MB",
    "MB.sec",
    "data.consumed.in.nMsg",
    "nMsg.sec",
    "rebalance.time.ms",
    "fetch.time.ms",
    "fetch.MB.sec",
    "fetch.nMsg.sec",
)
"""The columns of kafka-consumer-perf-test.sh after its times."""


def percentile(ordered: array[float], part: float) -> float:
    """Return the value that `part` of the sorted values are at or below; 0 without values."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


@define
class Sent:
    """What a producer did in a window, or in the whole run."""

    records: int
    bytes: int
    seconds: float
    latency_sum_ms: float = 0.0
    latency_max_ms: float = 0.0
    percentiles_ms: tuple[float, ...] = ()
    """Latencies at `PERCENTILES`, of a whole run."""
    failed: int = 0

    @property
    def records_s(self) -> float:
        return self.records / max(self.seconds, 1e-9)

    @property
    def mib_s(self) -> float:
        return self.bytes / MIB / max(self.seconds, 1e-9)

    @property
    def latency_avg_ms(self) -> float:
        return self.latency_sum_ms / self.records if self.records else 0.0

    def line(self) -> str:
        """The line of kafka-producer-perf-test.sh."""
        places, digits = (2, 6) if self.percentiles_ms else (1, 1)
        text = f"{self.records} records sent, {self.records_s:.{digits}f} records/sec ({self.mib_s:.2f} MB/sec)"
        text += f", {self.latency_avg_ms:.{places}f} ms avg latency, {self.latency_max_ms:.{places}f} ms max latency"
        for (_, name), value in zip(PERCENTILES, self.percentiles_ms, strict=False):
            text += f", {value:.0f} ms {name}"
        return text + "."

    def row(self) -> dict[str, Any]:
        """A row for JSON, not rounded to whole milliseconds."""
        found: dict[str, Any] = {
            "kind": "total" if self.percentiles_ms else "window",
            "records": self.records,
            "recordsPerSec": round(self.records_s, 3),
            "mbPerSec": round(self.mib_s, 6),
            "avgLatencyMs": round(self.latency_avg_ms, 6),
            "maxLatencyMs": round(self.latency_max_ms, 6),
        }
        for (_, name), value in zip(PERCENTILES, self.percentiles_ms, strict=False):
            found[f"latencyMs{name}"] = round(value, 6)
        if self.failed:
            found["failed"] = self.failed
        return found


class Latencies:
    """Latencies of a run, sampled."""

    def __init__(self, expected: int) -> None:
        self._every = max(1, -(-expected // MOST_SAMPLES))
        self._kept = array("d")
        self.count = 0
        self.sum_ms = self.max_ms = 0.0

    def add(self, latency_ms: float) -> None:
        if self.count % self._every == 0:
            self._kept.append(latency_ms)
        self.count += 1
        self.sum_ms += latency_ms
        if latency_ms > self.max_ms:
            self.max_ms = latency_ms

    @property
    def average_ms(self) -> float:
        return self.sum_ms / self.count if self.count else 0.0

    def percentiles(self) -> tuple[float, ...]:
        """Latencies in ms at `PERCENTILES`."""
        ordered = array("d", sorted(self._kept))
        return tuple(percentile(ordered, part) for part, _ in PERCENTILES)


class ProducerFigures:
    """Counts records that were acknowledged or failed; gives a window each `interval_s`."""

    def __init__(self, expected: int, interval_s: float, now_s: float) -> None:
        self._interval_s = interval_s
        self._begun_s = self._window_s = now_s
        self._latencies = Latencies(expected)
        self._bytes = 0
        self.failed = 0
        self._window = Sent(0, 0, 0.0)

    def sent(self, size: int, latency_ms: float, now_s: float) -> Sent | None:
        """Count an acknowledged record; return the window if it is over."""
        self._latencies.add(latency_ms)
        self._bytes += size
        window = self._window
        window.records += 1
        window.bytes += size
        window.latency_sum_ms += latency_ms
        if latency_ms > window.latency_max_ms:
            window.latency_max_ms = latency_ms
        if now_s - self._window_s < self._interval_s:
            return None
        window.seconds = now_s - self._window_s
        self._window, self._window_s = Sent(0, 0, 0.0), now_s
        return window

    def total(self, now_s: float) -> Sent:
        found, whole = self._latencies, self._latencies.percentiles()
        return Sent(found.count, self._bytes, now_s - self._begun_s, found.sum_ms, found.max_ms, whole, self.failed)


@define
class Consumed:
    """What a consumer did from `begun_ms` to `ended_ms` (wall clock); for `joining_ms` of it without partitions."""

    begun_ms: int
    ended_ms: int
    records: int
    bytes: int
    joining_ms: int = 0
    window: bool = False
    seconds: float = field(default=0.0)
    """Length by a monotonic clock in ms; 0: use the wall clock."""

    @property
    def span_s(self) -> float:
        return max(self.seconds or (self.ended_ms - self.begun_ms) / 1000, 1e-6)

    @property
    def records_s(self) -> float:
        return self.records / self.span_s

    @property
    def mib_s(self) -> float:
        return self.bytes / MIB / self.span_s

    def _cells(self) -> tuple[tuple[float, str], ...]:
        fetching_ms = max(0.0, self.span_s * 1000 - self.joining_ms)
        fetching_s = max(fetching_ms / 1000, 1e-6)
        size = self.bytes / MIB
        return (
            (size, ".4f"),
            (self.mib_s, ".4f"),
            (self.records, "d"),
            (self.records_s, ".4f"),
            (self.joining_ms, "d"),
            (round(fetching_ms), "d"),
            (size / fetching_s, ".4f"),
            (self.records / fetching_s, ".4f"),
        )

    def header(self) -> str:
        """The line of names of kafka-consumer-perf-test.sh; for windows, that of --show-detailed-stats."""
        return ", ".join((*(("time", "threadId") if self.window else ("start.time", "end.time")), *CONSUMED))

    def line(self) -> str:
        times = (_stamp(self.ended_ms), "0") if self.window else (_stamp(self.begun_ms), _stamp(self.ended_ms))
        return ", ".join((*times, *(format(value, shape) for value, shape in self._cells())))

    def row(self) -> dict[str, Any]:
        values = dict(zip(CONSUMED, (value for value, _ in self._cells()), strict=True))
        times = {"start.time": self.begun_ms, "end.time": self.ended_ms}
        return {"kind": "window" if self.window else "total", **times, **values}


def _stamp(wall_ms: int) -> str:
    """Return local time, in the format of Kafka's tool."""
    return f"{datetime.fromtimestamp(wall_ms // 1000):%Y-%m-%d %H:%M:%S}:{wall_ms % 1000:03d}"


@define
class RoundTrips:
    """Latencies of records that were sent one at a time."""

    acknowledged: Latencies
    read: Latencies

    def lines(self) -> list[str]:
        """The output lines; the last two are those of kafka-e2e-latency.sh, with fractions of ms."""
        found = []
        for title, latencies in (("acknowledged", self.acknowledged), ("end to end", self.read)):
            p50, _, p99, p999 = latencies.percentiles()
            if title == "acknowledged":
                found.append(
                    f"Acknowledged: {latencies.average_ms:.4f} ms avg, {latencies.max_ms:.4f} ms max,"
                    f" 50th = {p50:.3f}, 99th = {p99:.3f}, 99.9th = {p999:.3f}"
                )
            else:
                found.append(f"Avg latency: {latencies.average_ms:.4f} ms")
                found.append(f"Percentiles: 50th = {p50:.3f}, 99th = {p99:.3f}, 99.9th = {p999:.3f}")
        return found

    def rows(self) -> list[dict[str, Any]]:
        found = []
        for kind, latencies in (("acknowledged", self.acknowledged), ("endToEnd", self.read)):
            p50, _, p99, p999 = (round(value, 6) for value in latencies.percentiles())
            average_ms, max_ms = round(latencies.average_ms, 6), round(latencies.max_ms, 6)
            times = {"avgMs": average_ms, "maxMs": max_ms, "ms50th": p50, "ms99th": p99, "ms99.9th": p999}
            found.append({"kind": kind, "records": latencies.count, **times})
        return found


class Throttle:
    """Keeps a rate: `wait_s` is the time to sleep before the next record. A negative rate sets no limit."""

    LEAST_S: Final = 0.002
    """Shorter sleeps are added up to at least this."""

    def __init__(self, records_s: float, begun_s: float) -> None:
        self._records_s = records_s
        self._begun_s = begun_s

    def wait_s(self, sent: int, now_s: float) -> float:
        if self._records_s <= 0:
            return 0.0
        ahead_s = sent / self._records_s - (now_s - self._begun_s)
        return ahead_s if ahead_s >= self.LEAST_S else 0.0
