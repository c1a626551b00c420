"""A metrics reporter gets the metrics of a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class MetricsReporter(Protocol):
    """Gets a client's metrics at the end of each sample window (`metrics.sample.window.ms`), and when it closes."""

    def report(self, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...
