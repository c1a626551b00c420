"""What clients feel of a broker's end: killed as the leader, and restarted in turn."""

from __future__ import annotations

import threading
import time
from typing import Any

import clients
import rounds
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from members import MemberCluster

SETTINGS = {"acks": "all", "linger.ms": 0, "message.timeout.ms": int(clients.WAIT_S * 1000), **clients.FAST_RECONNECT}


def failover(cluster: MemberCluster) -> dict[str, float]:
    """Seconds from kill -9 of a partition's leader until another leads, and until its producer has an acknowledgement
    again. librdkafka looks for a new leader once a second, so the second figure is a whole number of seconds."""
    topic = rounds.new_topic(cluster, 1, 3)
    failed: list[Any] = []
    producer = Producer({
        "bootstrap.servers": cluster.bootstrap, **SETTINGS,
        "on_delivery": lambda error, _: failed.append(error) if error is not None else None,
    })  # fmt: skip

    def send() -> None:
        producer.produce(topic, b"here?", partition=0)
        if producer.flush(clients.WAIT_S) or failed:
            raise RuntimeError(f"no acknowledgement: {failed}")

    send()
    killed = clients.leader(cluster.bootstrap, topic)
    others = ",".join(member.bootstrap for member in cluster.members if member is not cluster.member(killed))
    led: list[float] = []

    def look() -> None:
        admin = AdminClient({"bootstrap.servers": others, **clients.FAST_RECONNECT})
        while admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader in (killed, -1):
            time.sleep(0.02)
        led.append(time.perf_counter())

    looking = threading.Thread(target=look)
    member = cluster.member(killed)
    member.kill()
    begun = time.perf_counter()
    looking.start()
    send()
    seconds = time.perf_counter() - begun
    looking.join()
    member.start()
    clients.wait_for_isr(cluster.bootstrap, topic, 3)
    clients.delete_topic(cluster.bootstrap, topic)
    return {
        "kill -9 of a leader, until another leads": led[0] - begun,
        "kill -9 of a leader, until acknowledged again": seconds,
    }


class _Load:
    """A producer of so many records a second to all partitions, and a consumer, each on a thread."""

    def __init__(self, bootstrap: str, topic: str, rate: int) -> None:
        self.latencies_ms: list[float] = []
        self.errors: list[str] = []
        self.consumed = 0
        self._bootstrap, self._topic, self._rate = bootstrap, topic, rate
        self._ended, self._produced = threading.Event(), threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.latencies_ms.append(message.latency() * 1000)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, **SETTINGS, "on_delivery": self._delivered})
        begun, number = time.perf_counter(), 0
        while not self._ended.is_set():
            while (left := begun + number / self._rate - time.perf_counter()) > 0:
                producer.poll(left)
            producer.produce(self._topic, b"x" * 100, partition=number % rounds.PARTITIONS)
            number += 1
        producer.flush(clients.WAIT_S)
        self._produced.set()

    def _consume(self) -> None:
        consumer = Consumer({
            "bootstrap.servers": self._bootstrap, "group.id": self._topic, "auto.offset.reset": "earliest",
            **clients.FAST_RECONNECT,
        })  # fmt: skip
        consumer.subscribe([self._topic])
        deadline = None
        while deadline is None or time.perf_counter() < deadline:
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    self.consumed += 1
                else:
                    self.errors.append(str(message.error()))
            if self._produced.is_set():
                if self.consumed >= len(self.latencies_ms):
                    break
                deadline = deadline or time.perf_counter() + 30
        consumer.close()


RATE = 200


def rolling(cluster: MemberCluster) -> dict[str, float]:
    """Every broker stopped and started again, one after the other, each when all replicas are in sync; beside a
    producer and a consumer."""
    topic = rounds.new_topic(cluster, rounds.PARTITIONS, 3)
    load = _Load(cluster.bootstrap, topic, RATE)
    load.start()
    try:
        time.sleep(3)  # the group has assigned its partitions
        begun = time.perf_counter()
        for member in cluster.members:
            member.stop()
            member.start()
            clients.wait_for_isr(cluster.bootstrap, topic, 3)
        seconds = time.perf_counter() - begun
        time.sleep(1)
    finally:
        load.end()
    if load.errors:
        print(f"# client errors: {sorted(set(load.errors))}")
    lost = len(load.latencies_ms) - load.consumed
    clients.delete_topic(cluster.bootstrap, topic)
    return {
        "rolling restart, longest stall": max(load.latencies_ms) / 1000,
        "rolling restart, client errors": len(load.errors),
        "rolling restart, records not read": max(0, lost),
        "rolling restart, all of it": seconds,
    }
