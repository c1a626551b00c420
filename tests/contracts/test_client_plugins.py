"""Plugins of clients keep their contracts. None is built in; these are the shortest ones that do something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.client.producer.outgoing import ProducerRecord
from logkernel.contracts import Interceptor, MetricsReporter
from logkernel.testing.contracts import InterceptorContract, MetricsReporterContract


class Counter:
    """Counts records and their outcomes."""

    def __init__(self) -> None:
        self.sent = self.acknowledged = self.failed = 0

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.sent += 1
        return record

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        self.acknowledged += error is None
        self.failed += error is not None

    def close(self) -> None:
        """Nothing is open."""


class Newest:
    """Keeps the newest figures."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def report(self, metrics: Mapping[str, Any]) -> None:
        self.figures = dict(metrics)

    def close(self) -> None:
        """Nothing is open."""


class TestCounter(InterceptorContract):
    def make(self) -> Interceptor:
        return Counter()


class TestNewest(MetricsReporterContract):
    def make(self) -> MetricsReporter:
        return Newest()
