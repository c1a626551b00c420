"""Produce at full speed or at a rate, and measure the time until each record is acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from logkernel.perf.figures import ProducerFigures, Sent, Throttle
from logkernel.perf.target import payloads

clock = time.perf_counter


@define
class ProduceJob:
    """What to send. `settings` are Kafka's producer settings, with `.` or `_` in their names."""

    topic: str
    num_records: int
    record_size: int
    throughput: float = -1
    """Limit of records a second; negative sets no limit."""
    settings: Mapping[str, Any] = field(factory=dict)
    interval_s: float = 5.0
    """Length of a window in s."""


def by_keyword(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as keywords, with `_` for `.`."""
    return {name.replace(".", "_"): value for name, value in settings.items()}


def produce(log: Any, job: ProduceJob, tell: Callable[[Sent], Any]) -> Sent:
    """Send all records; `tell` gets each window. Failed records are counted. Raises as `Producer.send`."""
    values = payloads(job.record_size)
    with log.producer(**by_keyword(job.settings)) as producer:
        producer.partitions_for(job.topic)
        figures = ProducerFigures(job.num_records, job.interval_s, clock())
        throttle = Throttle(job.throughput, clock())
        send, count, topic, size = producer.send, len(values), job.topic, job.record_size

        def delivered(begun_s: float, metadata: Any, error: Exception | None) -> None:
            now_s = clock()
            if error is not None:
                figures.failed += 1
                return
            window = figures.sent(size, (now_s - begun_s) * 1000, now_s)
            if window is not None:
                tell(window)

        for number in range(job.num_records):
            begun_s = clock()
            send(topic, values[number % count], on_delivery=partial(delivered, begun_s))
            if job.throughput > 0:
                nap_s = throttle.wait_s(number + 1, clock())
                if nap_s:
                    time.sleep(nap_s)
        producer.flush()
        return figures.total(clock())
