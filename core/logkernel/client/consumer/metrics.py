"""A consumer's metrics, under Kafka's names. Pure. The group's member and the commits count their events by name:
heartbeat, commit, rebalance, failed-rebalance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.client.metrics import WindowedMetrics
from logkernel.peer.network import Network
from logkernel.vocabulary import TopicPartition

CONSUMER_RATES = (
    ("records-consumed", "records"),
    ("bytes-consumed", "bytes"),
    ("fetch", "fetch"),
    ("heartbeat", "heartbeat"),
    ("commit", "commit"),
    ("rebalance", "rebalance"),
    ("failed-rebalance", "failed-rebalance"),
)


class ConsumerMetrics(WindowedMetrics):
    """Fed by the consumer's machine."""

    def taken(self, records: int) -> None:
        """A poll returned so many."""
        self._add(("records", records))

    def fetched(self, fetches: int, size_bytes: int) -> None:
        """So many fetches were sent, and so many bytes came."""
        self._add(("fetch", fetches), ("bytes", size_bytes))

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
