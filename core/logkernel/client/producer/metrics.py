"""A producer's metrics, under Kafka's names. Pure.

Nothing is counted per record: a batch knows how many it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logkernel.client.metrics import WindowedMetrics
from logkernel.client.producer.accumulator import Accumulator
from logkernel.client.producer.batches import Batch
from logkernel.peer.network import Network, Node

RATES = (
    ("record-send", "records"),
    ("byte", "batch-size"),
    ("record-retry", "retries"),
    ("record-error", "errors"),
    ("batch-split", "splits"),
    ("request", "requests"),
)
AVERAGES = (
    ("batch-size", "batch-size", True),
    ("record-queue-time", "queue-time", True),
    ("request-latency", "latency", True),
    ("records-per-request", "per-request", False),
    ("request-size", "request-size", True),
    ("compression-rate", "compression", False),
)
"""(metric, what is summed, whether there is a maximum too)."""


class ProducerMetrics(WindowedMetrics):
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
