"""A client's metrics under Kafka's names: totals, and rates and averages over the last sample windows. Pure.

Nothing is counted per record: a batch knows how many it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from logkernel.client.producer.accumulator import Accumulator
    from logkernel.client.producer.batches import Batch
    from logkernel.peer.network import Network, Node
    from logkernel.vocabulary import TopicPartition


@define
class Tally:
    """What happened of one kind in one window."""

    sum: float = 0.0
    count: int = 0
    largest: float = float("-inf")


NOTHING = Tally(largest=0.0)


@define
class Window:
    """What happened in one sample window, by its name."""

    start_ms: int
    tallies: dict[str, Tally] = field(factory=dict)


RATES = (
    ("record-send", "records"),
    ("byte", "batch-size"),
    ("record-retry", "retries"),
    ("record-error", "errors"),
    ("batch-split", "splits"),
    ("request", "requests"),
)
CONSUMER_RATES = (
    ("records-consumed", "records"),
    ("bytes-consumed", "bytes"),
    ("fetch", "fetch"),
    ("heartbeat", "heartbeat"),
    ("commit", "commit"),
    ("rebalance", "rebalance"),
    ("failed-rebalance", "failed-rebalance"),
)
AVERAGES = (
    ("batch-size", "batch-size", True),
    ("record-queue-time", "queue-time", True),
    ("request-latency", "latency", True),
    ("records-per-request", "per-request", False),
    ("request-size", "request-size", True),
    ("compression-rate", "compression", False),
)
"""(metric, what is summed, whether the maximum is told too)."""


class Windows:
    """Totals and sample windows."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._length_ms: int = settings["metrics.sample.window.ms"]
        self._by_topic: bool = settings["metrics.recording.level"] != "INFO"
        self._windows: deque[Window] = deque(maxlen=settings["metrics.num.samples"])
        self._totals: dict[str, float] = {}
        """Of windows that are over."""
        self._topics: dict[str, dict[str, float]] = {}
        self.closed_windows = 0
        """Windows that came to an end: reporters are told after each."""
        self._windows.append(Window(0))
        self._begun = False

    def roll(self, now_ms: int) -> int:
        """Begin a new window where the last one is over; returns when that will be again."""
        last = self._windows[-1]
        if not self._begun:
            self._begun, last.start_ms = True, now_ms
        if now_ms - last.start_ms >= self._length_ms:
            for name, tally in last.tallies.items():
                self._totals[name] = self._totals.get(name, 0.0) + tally.sum
            self._windows.append(Window(now_ms))
            self.closed_windows += 1
        return self._windows[-1].start_ms + self._length_ms

    def _add(self, *pairs: tuple[str, float]) -> None:
        """Count (name, amount) of each."""
        tallies = self._windows[-1].tallies
        for name, amount in pairs:
            tally = tallies.get(name)
            if tally is None:
                tally = tallies[name] = Tally()
            tally.sum += amount
            tally.count += 1
            if amount > tally.largest:
                tally.largest = amount

    def _recent(self, name: str) -> list[Tally]:
        """Of the windows that are kept."""
        return [window.tallies.get(name, NOTHING) for window in self._windows]

    def _sum(self, name: str) -> float:
        return sum(tally.sum for tally in self._recent(name))

    def _total(self, name: str) -> float:
        """Of all time."""
        return self._totals.get(name, 0.0) + self._windows[-1].tallies.get(name, NOTHING).sum

    def network(self, network: Network, metadata_age_ms: int) -> dict[str, Any]:
        """What every client tells of its connections."""
        return {
            "requests-in-flight": sum(len(node.in_flight) for node in network.nodes.values()),
            "connection-count": sum(1 for node in network.nodes.values() if node.number >= 0),
            "connection-creation-total": network.connections_made,
            "connection-close-total": network.connections_closed,
            "response-total": network.responses,
            "metadata-age": metadata_age_ms / 1000,
        }


class ProducerMetrics(Windows):
    """Fed by the sender; `snapshot` is what users see."""

    # ------------------------------------------------------------ what happened

    def _add_topic(self, topic: str, name: str, amount: float) -> None:
        if self._by_topic:
            totals = self._topics.setdefault(topic, {})
            totals[name] = totals.get(name, 0.0) + amount

    def request_sent(self, batches: Sequence[Batch], now_ms: int) -> None:
        """With these batches."""
        found: list[tuple[str, float]] = []
        size_bytes = records = 0
        for batch in batches:
            size = len(batch.wire)
            size_bytes += size
            records += batch.count
            found += (
                ("batch-size", size),
                ("queue-time", now_ms - batch.created_ms),
                ("compression", size / (batch.builder.size or 1)),
                ("records", batch.count),
            )
            if self._by_topic:
                self._add_topic(batch.topic, "record-send-total", batch.count)
                self._add_topic(batch.topic, "byte-total", size)
        self._add(*found, ("requests", 1), ("request-size", size_bytes), ("per-request", records))

    def request_done(self, node: Node | None) -> None:
        if node is not None:
            self._add(("latency", node.latency_ms))

    def batch_retried(self, batch: Batch) -> None:
        self._add(("retries", batch.count))
        self._add_topic(batch.topic, "record-retry-total", batch.count)

    def batch_failed(self, batch: Batch) -> None:
        self._add(("errors", batch.count))
        self._add_topic(batch.topic, "record-error-total", batch.count)

    def batch_split(self) -> None:
        self._add(("splits", 1))

    def waited(self, wait_ms: float) -> None:
        """A sender of records waited for memory."""
        self._add(("wait", wait_ms))

    def exhausted(self) -> None:
        """A wait for memory ended without any."""
        self._add(("exhausted", 1))

    # ------------------------------------------------------------ what is told

    def snapshot(self, accumulator: Accumulator, network: Network, metadata_age_ms: int, now_ms: int) -> dict[str, Any]:
        """Metric name → number; with metrics.recording.level DEBUG, "topics" → topic → name → number."""
        found: dict[str, Any] = {}
        span_s = max(1, now_ms - self._windows[0].start_ms) / 1000
        for name, source in RATES:
            found[f"{name}-rate"] = self._sum(source) / span_s
            found[f"{name}-total"] = self._total(source)
        for name, source, with_max in AVERAGES:
            recent = self._recent(source)
            count = sum(tally.count for tally in recent)
            found[f"{name}-avg"] = sum(tally.sum for tally in recent) / count if count else 0.0
            if with_max:
                found[f"{name}-max"] = max(tally.largest for tally in recent)
        wait_ms = self._sum("wait")
        found["bufferpool-wait-ratio"] = min(1.0, wait_ms / 1000 / span_s)
        found["bufferpool-wait-time-ns-total"] = self._total("wait") * 1_000_000
        found["buffer-exhausted-total"] = self._total("exhausted")
        found["buffer-total-bytes"] = accumulator.pool.total
        found["buffer-available-bytes"] = accumulator.pool.free
        found["waiting-threads"] = len(accumulator.pool.waiting)
        found.update(self.network(network, metadata_age_ms))
        if self._by_topic:
            found["topics"] = {topic: dict(totals) for topic, totals in self._topics.items()}
        return found


class ConsumerMetrics(Windows):
    """Fed by the consumer's machine."""

    def taken(self, records: int) -> None:
        """A poll returned so many."""
        self._add(("records", records))

    def fetched(self, fetches: int, size_bytes: int) -> None:
        """So many fetches were sent, and so many bytes came."""
        self._add(("fetch", fetches), ("bytes", size_bytes))

    def count(self, name: str) -> None:
        """One of heartbeat, commit, rebalance, failed-rebalance."""
        self._add((name, 1))

    def snapshot(
        self, lags: Mapping[TopicPartition, int | None], network: Network, metadata_age_ms: int, now_ms: int
    ) -> dict[str, Any]:
        """Metric name → number; with metrics.recording.level DEBUG, "partitions" → "topic-0" → name → number."""
        found: dict[str, Any] = {}
        span_s = max(1, now_ms - self._windows[0].start_ms) / 1000
        for name, source in CONSUMER_RATES:
            found[f"{name}-rate"] = self._sum(source) / span_s
            found[f"{name}-total"] = self._total(source)
        known = [lag for lag in lags.values() if lag is not None]
        found["records-lag-max"] = max(known, default=0)
        found["assigned-partitions"] = len(lags)
        found.update(self.network(network, metadata_age_ms))
        if self._by_topic:
            found["partitions"] = {f"{topic}-{index}": {"records-lag": lag} for (topic, index), lag in lags.items()}
        return found
