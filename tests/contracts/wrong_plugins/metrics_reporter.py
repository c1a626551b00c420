"""Metrics reporters that break a promise."""

from __future__ import annotations

from typing import Any

from wrong_plugins import Wrong, made


class Right:
    """It drops what it gets."""

    def report(self, metrics: Any) -> None:
        """Nobody reads it."""

    def close(self) -> None:
        """Nothing is open."""


class Rounding(Right):
    def report(self, metrics: Any) -> None:
        self.rounded = {name: round(value) for name, value in metrics.items()}


class Tidy(Right):
    def report(self, metrics: Any) -> None:
        metrics.pop("connection-count", None)


class Averaging(Right):
    def __init__(self) -> None:
        self.reports = 0

    def report(self, metrics: Any) -> None:
        self.reports += 1

    def close(self) -> None:
        self.mean = 1 / self.reports


class Knowing(Right):
    def report(self, metrics: Any) -> None:
        self.rate = metrics["records-consumed-rate"]


WRONG = [
    Wrong(
        "test_it_takes_any_metrics_and_leaves_them_alone",
        "raised (ValueError|OverflowError)",
        made(lambda _: Rounding()),
    ),
    Wrong("test_it_takes_any_metrics_and_leaves_them_alone", "raised AttributeError", made(lambda _: Tidy())),
    Wrong(
        "test_it_is_closed_after_any_number_of_reports",
        r"close\(\) after 0 reports raised",
        made(lambda _: Averaging()),
    ),
    Wrong(
        "test_it_takes_the_metrics_of_a_producer", "of a producer's metrics raised KeyError", made(lambda _: Knowing())
    ),
]
