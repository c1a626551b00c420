"""One record at a time: how long until it is acknowledged, and until a consumer has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from logkernel.errors import LogkernelError, RequestTimedOut
from logkernel.perf.figures import Latencies, RoundTrips
from logkernel.perf.produce import by_keyword, clock
from logkernel.perf.target import payloads

WAIT_S = 60.0
WARM = 20
"""Records that are sent first and not counted, to warm up connections and code."""


@define
class LatencyJob:
    topic: str
    num_records: int
    record_size: int
    settings: Mapping[str, Any] = field(factory=dict)
    """Of the producer."""


def latency(log: Any, job: LatencyJob, tell: Callable[[int], Any] = lambda done: None) -> RoundTrips:
    """Send a record, wait for its acknowledgement, read it, then the next; `tell` gets the number done.

    Raises `RequestTimedOut` if a record does not arrive, `LogkernelError` if another one does.
    """
    values = payloads(job.record_size)
    trips = RoundTrips(Latencies(job.num_records), Latencies(job.num_records))
    with log.producer(**{"linger_ms": 0, **by_keyword(job.settings)}) as producer, log.consumer() as consumer:
        partitions = [(job.topic, index) for index in producer.partitions_for(job.topic)]
        consumer.assign(partitions)
        consumer.seek_to_end()
        for name in partitions:
            consumer.position(name)
        for number in range(-WARM, job.num_records):
            value = values[number % len(values)]
            begun_s = clock()
            producer.send(job.topic, value).result(WAIT_S)
            acknowledged_s = clock()
            rows = consumer.poll(WAIT_S)
            read_s = clock()
            if not rows:
                raise RequestTimedOut(f"a record that was acknowledged was not read within {WAIT_S:g} s")
            if len(rows) > 1 or rows[0].value != value:
                raise LogkernelError(f"something else writes to topic {job.topic!r}; measure on a topic of its own")
            if number >= 0:
                trips.acknowledged.add((acknowledged_s - begun_s) * 1000)
                trips.read.add((read_s - begun_s) * 1000)
                tell(number + 1)
    return trips
