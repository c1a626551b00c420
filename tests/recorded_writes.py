"""A producer that notes what was acknowledged, and the check that all of it is there: once, and in order."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Any, Protocol

from logkernel.client.consumer.consumer import Consumer
from logkernel.client.producer.producer import Producer
from logkernel.errors import LogkernelError


class Clients(Protocol):
    """A `Cluster` of this process, or the `Remote` of `logkernel.connect`."""

    def producer(self, **settings: Any) -> Producer: ...

    def consumer(self, *topics: str, **settings: Any) -> Consumer: ...


class Recorded:
    """Writes numbers to one topic, `acks=all`, idempotent, until it is told to stop."""

    def __init__(self, cluster: Clients, topic: str, partitions: int = 1) -> None:
        self.topic = topic
        self.acknowledged: dict[int, list[int]] = defaultdict(list)
        """Partition → numbers, in the order in which they were sent."""
        self.failed: list[Exception] = []
        self._cluster = cluster
        self._partitions = partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Recorded:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(300)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        number = 0
        with self._cluster.producer(acks="all", delivery_timeout_ms=60_000, request_timeout_ms=5_000) as producer:
            while not self._stop.is_set():
                partition = number % self._partitions
                try:
                    producer.send(self.topic, b"%d" % number, partition=partition).result(70)
                except LogkernelError as error:
                    self.failed.append(error)
                else:
                    self.acknowledged[partition].append(number)
                number += 1

    def wait_for_more(self, count: int = 20, timeout_s: float = 180) -> None:
        """Until so many more are acknowledged."""
        target = self.count + count
        deadline = threading.Event()
        for _ in range(int(timeout_s / 0.01)):
            if self.count >= target:
                return
            deadline.wait(0.01)
        raise AssertionError(f"{self.count} acknowledged, {target} wanted; failures: {self.failed[-3:]}")

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def check(self, cluster: Clients) -> None:
        """Everything that was acknowledged is there once, in order; what was not may be there."""
        found: dict[int, list[int]] = defaultdict(list)
        with cluster.consumer(self.topic, auto_offset_reset="earliest") as consumer:
            left = {partition: set(numbers) for partition, numbers in self.acknowledged.items()}
            for _ in range(3000):
                for record in consumer.poll(0.1):
                    found[record.partition].append(int(record.value))
                    left.get(record.partition, set()).discard(int(record.value))
                if not any(left.values()):
                    break
        assert not any(left.values()), f"lost: { {p: sorted(n)[:10] for p, n in left.items() if n} }"
        for partition, numbers in found.items():
            assert len(numbers) == len(set(numbers)), f"doubled in partition {partition}"
            assert numbers == sorted(numbers), f"out of order in partition {partition}"
