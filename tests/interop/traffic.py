"""A librdkafka producer and a consumer group that work while brokers come and go: what was sent, read, and how long it
took."""

from __future__ import annotations

import threading
import time
from typing import Any

PARTITIONS = 3
PAUSE_S = 0.002
READ_S = 300.0


class Traffic:
    """Sends numbers to each partition in turn, acks=all and idempotent, and reads them by a group that commits.

    An error of a record, a fatal one, or one that the consumer is given ends up in `errors`. Brokers that are stopped
    are none: clients look for another one by themselves."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        import confluent_kafka

        self.errors: list[str] = []
        self.read: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self.acknowledged: dict[int, list[int]] = {index: [] for index in range(PARTITIONS)}
        self.slowest_ack_s = 0.0
        self.slowest_poll_s = 0.0
        """The longest time between two records that the consumer was given."""
        self._kinds = confluent_kafka
        self._topic = topic
        self._ended, self._all_read = threading.Event(), threading.Event()
        shared = {"bootstrap.servers": bootstrap, "error_cb": self._error, "log_level": 0}
        self._producer = confluent_kafka.Producer({**shared, "enable.idempotence": True, "linger.ms": 2})
        self._consumer = confluent_kafka.Consumer(
            {**shared, "group.id": f"{topic}-readers", "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
        )
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._poll)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._threads[0].join()
        self._all_read.wait(READ_S)
        self._all_read.set()
        self._threads[1].join()

    def _error(self, error: Any) -> None:
        if error.fatal():
            self.errors.append(str(error))

    def _write(self) -> None:
        def told(index: int, number: int, begun: float, error: Any) -> None:
            if error is not None:
                self.errors.append(f"{index}:{number}: {error}")
            else:
                self.acknowledged[index].append(number)
            self.slowest_ack_s = max(self.slowest_ack_s, time.monotonic() - begun)

        while not self._ended.is_set():
            for index in range(PARTITIONS):
                number, begun = self.sent[index], time.monotonic()
                self.sent[index] += 1
                self._producer.produce(
                    self._topic, b"%d" % number, partition=index,
                    on_delivery=lambda error, _, told_of=(index, number, begun): told(*told_of, error),
                )  # fmt: skip
            self._producer.poll(PAUSE_S)
        if self._producer.flush(READ_S):
            self.errors.append("not everything was acknowledged")

    def _poll(self) -> None:
        self._consumer.subscribe([self._topic])
        last: float | None = None
        while not self._all_read.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                if not self._threads[0].is_alive() and self._reads_all():
                    break
                continue
            if message.error():
                self.errors.append(str(message.error()))
                continue
            self.read[message.partition()].append(int(message.value()))
            now = time.monotonic()
            self.slowest_poll_s = max(self.slowest_poll_s, 0.0 if last is None else now - last)
            last = now
        self._consumer.close()
        self._all_read.set()

    def _reads_all(self) -> bool:
        return all(len(self.read[index]) >= self.sent[index] for index in self.sent)

    def check(self) -> None:
        """Nothing is lost, doubled or out of order; no client met an error. Returns after the traffic ended."""
        assert self.errors == []
        for index, count in self.sent.items():
            assert self.acknowledged[index] == list(range(count)), f"acknowledged of partition {index}"
            assert self.read[index] == list(range(count)), f"read of partition {index}"
