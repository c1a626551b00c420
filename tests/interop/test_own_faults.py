"""Brokers that stall, die and are slow under our clients: what was acknowledged is there, once, and in order."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import logkernel
from logkernel.errors import RequestTimedOut

pytestmark = pytest.mark.interop
COUNT = 6000
QUICK = {"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 50, "retry_backoff_ms": 20, "request_timeout_ms": 1000}


def stored(bootstrap: str, topic: str = "t") -> list[int]:
    """What lies in the log, by a consumer of librdkafka."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "r", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while True:
        message = consumer.poll(120)
        assert message is not None, "nothing for two minutes"
        if message.error():
            consumer.close()
            return found
        found.append(int(message.value()))


@contextlib.contextmanager
def stalled(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Slow:
    """A way to a broker that lets little through at a time, and now and then breaks."""

    def __init__(self) -> None:
        self.target = ("", 0)
        self.piece, self.nap_s = 1 << 16, 0.0
        self.cut_after = 0
        """A connection is cut when so many bytes went through it; 0 never."""
        self.cuts = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
                far = socket.create_connection(self.target)
            except OSError:
                return
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        carried = 0
        with contextlib.suppress(OSError):
            while data := one.recv(self.piece):
                if self.nap_s:
                    time.sleep(self.nap_s)
                other.sendall(data)
                carried += len(data)
                if self.cut_after and carried > self.cut_after:
                    self.cuts += 1
                    break
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._server.close()
        for end in self._open:
            end.close()


@pytest.fixture
def slow(start_broker: Callable[..., Any]) -> Iterator[Slow]:
    """A broker that is reached through `Slow` alone."""
    way = Slow()
    broker = start_broker("--set", f"advertised.listeners=PLAINTEXT://127.0.0.1:{way.port}")
    way.target = broker.address
    yield way
    way.close()


def test_a_broker_that_stalls_under_the_producer(start_broker: Callable[..., Any]) -> None:
    """Twice for longer than request.timeout.ms: what was sent again is not written again."""
    broker = start_broker()
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic("t", partitions=1)
        with log.producer(batch_size=500, **QUICK) as producer:
            deliveries = []
            third = COUNT // 3
            for first in range(0, COUNT, third):
                producer.flush(300)  # so that there is a connection, and a producer id
                with stalled(broker.pid) if first else contextlib.nullcontext():
                    deliveries += [producer.send("t", b"%d" % number) for number in range(first, first + third)]
                    if first:
                        with pytest.raises(RequestTimedOut):
                            producer.flush(2.5)
            producer.flush(300)
            assert [delivery.exception() for delivery in deliveries if delivery.exception()] == []
            assert producer.metrics()["record-retry-total"] > 0
            offsets = [delivery.result().offset for delivery in deliveries]
    assert offsets == list(range(COUNT))
    assert stored(broker.bootstrap) == list(range(COUNT))


def test_records_that_expire_under_a_stalled_broker_fail_and_the_rest_is_in_order(
    start_broker: Callable[..., Any],
) -> None:
    broker = start_broker()
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic("t", partitions=1)
        with log.producer(batch_size=500, delivery_timeout_ms=2000, **QUICK) as producer:
            deliveries = []
            for number in range(COUNT):
                deliveries.append(producer.send("t", b"%d" % number))
                if number == COUNT // 2:
                    with stalled(broker.pid):
                        deliveries[-1].exception(300)  # whatever becomes of it
            producer.flush(300)
            acknowledged = {n: d.result().offset for n, d in enumerate(deliveries) if d.exception() is None}
    found = stored(broker.bootstrap)
    assert len(acknowledged) < COUNT, "nothing expired: the broker did not stall for long enough"
    assert len(set(found)) == len(found), "something was written twice"
    assert found == sorted(found)
    assert all(offset < 0 or found[offset] == number for number, offset in acknowledged.items())
    assert acknowledged.keys() <= set(found)


def test_a_broker_that_stalls_and_dies_under_the_consumer(start_broker: Callable[..., Any]) -> None:
    broker = start_broker()
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic("t", partitions=1)
        with log.producer(batch_size=500) as producer:
            for number in range(COUNT):
                producer.send("t", b"%d" % number)
        settings = {"auto_offset_reset": "earliest", "max_poll_records": 50, "max_partition_fetch_bytes": 4000, **QUICK}
        with log.consumer("t", group="g", heartbeat_interval_ms=500, **settings) as consumer:
            found: list[int] = []
            faults = [COUNT // 4, COUNT // 2, 3 * COUNT // 4]
            end_s = time.monotonic() + 240
            while len(found) < COUNT and time.monotonic() < end_s:
                found += [int(row.value) for row in consumer.poll(1)]
                if faults and len(found) >= faults[0]:
                    if len(faults) == 2:
                        broker.kill()
                        broker.restart()
                    else:
                        with stalled(broker.pid):
                            found += [int(row.value) for row in consumer.poll(2.5, 10_000)]
                    del faults[0]
            assert found == list(range(COUNT))
            consumer.commit()
            assert consumer.committed([("t", 0)])["t", 0].offset == COUNT  # type: ignore[index]


def test_a_way_that_is_slow_and_breaks(slow: Slow) -> None:
    """Bytes come in crumbs, and connections are cut in the midst of requests and answers."""
    with logkernel.connect(f"127.0.0.1:{slow.port}") as log:
        log.create_topic("t", partitions=1)
        slow.piece, slow.nap_s, slow.cut_after = 777, 0.001, 20_000
        with log.producer(batch_size=1000, delivery_timeout_ms=600_000, **QUICK) as producer:
            deliveries = [producer.send("t", b"%d" % number) for number in range(COUNT)]
            producer.flush(300)
            assert [delivery.exception() for delivery in deliveries if delivery.exception()] == []
        assert slow.cuts > 2
        before = slow.cuts
        with log.consumer("t", auto_offset_reset="earliest", max_partition_fetch_bytes=9000, **QUICK) as consumer:
            found: list[int] = []
            end_s = time.monotonic() + 240
            while len(found) < COUNT and time.monotonic() < end_s:
                found += [int(row.value) for row in consumer.poll(1)]
        assert slow.cuts > before
        slow.cut_after = 0
        slow.nap_s = 0
    assert found == list(range(COUNT))
    assert stored(f"127.0.0.1:{slow.port}") == list(range(COUNT))


def test_a_slow_broker_holds_the_producer_back_and_not_its_memory(slow: Slow) -> None:
    """What a send waits for is room: buffer.memory is the most that is held."""
    with logkernel.connect(f"127.0.0.1:{slow.port}") as log:
        log.create_topic("t", partitions=1)
        slow.piece, slow.nap_s = 4000, 0.01
        with log.producer(buffer_memory=200_000, batch_size=5000) as producer:
            largest = 0
            for number in range(1000):
                producer.send("t", b"%d" % number + bytes(1000))
                largest = max(largest, 200_000 - int(producer._accumulator.pool.free))
            producer.flush(300)
            assert 150_000 < largest <= 200_000
            assert producer.metrics()["bufferpool-wait-time-ns-total"] > 0
