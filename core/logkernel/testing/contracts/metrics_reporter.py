"""What every metrics reporter promises: it takes all metrics of a client, leaves them alone, and ends when told to."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from logkernel.contracts import MetricsReporter
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all

FIGURES = st.dictionaries(
    st.sampled_from(["record-send-rate", "request-latency-avg", "connection-count", "unheard-of"]),
    st.sampled_from([0, 7, 2**60, 0.0, 1.5, float("nan"), float("inf")]),
)
"""Averages of nothing are not a number."""


class MetricsReporterContract(Kit[MetricsReporter]):
    """`logkernel.contracts.MetricsReporter`. `settings` are the client's."""

    kind = "metrics reporter"
    methods = ("report", "close")

    def provide(self, kernel: Kernel, name: str) -> MetricsReporter:
        return kernel.metrics_reporter(name, self.settings)

    @for_all(30, windows=st.lists(FIGURES, max_size=4))
    def test_it_takes_any_metrics_and_leaves_them_alone(self, windows: list[dict[str, Any]]) -> None:
        """Other reporters get the same mapping. An error is logged, and the figures are lost."""
        reporter = self.make()
        for figures in windows:
            with self.calling("report()"):
                reporter.report(MappingProxyType(figures))
        reporter.close()

    def test_it_is_closed_after_any_number_of_reports(self) -> None:
        for count in (0, 1, 10):
            reporter = self.make()
            for _ in range(count):
                with self.calling("report()"):
                    reporter.report({"record-send-rate": 1.0})
            with self.calling(f"close() after {count} reports"):
                reporter.close()

    def test_it_takes_the_metrics_of_a_producer(self) -> None:
        import logkernel

        with logkernel.open() as log:
            log.create_topic("orders")
            with log.producer() as producer:
                producer.send("orders", b"value").result(10)
                metrics = producer.metrics()
        reporter = self.make()
        with self.calling("report() of a producer's metrics"):
            reporter.report(MappingProxyType(metrics))
        reporter.close()
