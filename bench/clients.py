"""The one client that drives both brokers: confluent-kafka (librdkafka), default settings save what a measure names."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

WAIT_S = 180.0
FAST_RECONNECT = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "log_level": 0,
}
"""For measures of a restart, so that they show the broker and not the client's patience."""


def create_topic(
    bootstrap: str,
    topic: str,
    partitions: int,
    timeout_s: float = WAIT_S,
    *,
    replicas: int = 1,
    assignment: Sequence[Sequence[int]] | None = None,
    settings: dict[str, str] | None = None,
) -> float:
    """Seconds until the topic exists and all its partitions have leaders. `assignment` names each partition's
    brokers."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    begun = time.perf_counter()
    placed: dict[str, Any] = {"replication_factor": replicas}
    if assignment is not None:
        placed = {"replica_assignment": [list(brokers) for brokers in assignment]}
    new = NewTopic(topic, partitions, config=settings or {}, **placed)
    admin.create_topics([new], request_timeout=timeout_s)[topic].result(timeout_s)
    wait_for_leaders(admin, topic, partitions, begun + timeout_s)
    return time.perf_counter() - begun


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(WAIT_S)


def wait_for_leaders(admin: AdminClient, topic: str, partitions: int, deadline: float) -> None:
    """Ask for metadata until every partition has a leader; raises TimeoutError."""
    while time.perf_counter() < deadline:
        found = admin.list_topics(topic, timeout=30).topics[topic].partitions
        if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
            return
        time.sleep(0.01)
    raise TimeoutError(f"{topic}: no leaders")


def wait_for_isr(bootstrap: str, topic: str, count: int) -> None:
    """Until all partitions of a topic have so many replicas in sync; raises TimeoutError."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **FAST_RECONNECT})
    deadline = time.perf_counter() + WAIT_S
    while time.perf_counter() < deadline:
        with contextlib.suppress(KafkaException):  # a broker that is not there yet
            found = admin.list_topics(topic, timeout=5).topics[topic].partitions
            if found and all(len(partition.isrs) == count for partition in found.values()):
                return
        time.sleep(0.02)
    raise TimeoutError(f"{topic}: not {count} replicas in sync")


def leader(bootstrap: str, topic: str) -> int:
    """The node that leads partition 0."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found: int = admin.list_topics(topic, timeout=30).topics[topic].partitions[0].leader
    return found


def wait_for_brokers(bootstrap: str, count: int) -> None:
    """Until so many brokers are known to the first one; raises TimeoutError."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.perf_counter() + WAIT_S
    while len(admin.list_topics(timeout=30).brokers) < count:
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{count} brokers do not come")
        time.sleep(0.01)


def wait_for_logs(bootstrap: str, topic: str, partitions: int) -> None:
    """Until every partition of a new topic answers. Kafka names their leaders before it has made their logs: of an
    idempotent producer's first batches it refuses one and takes the next, and never takes the first again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}
    deadline = time.perf_counter() + WAIT_S
    while True:
        try:
            for found in admin.list_offsets(latest).values():
                found.result(WAIT_S)
            return
        except KafkaException:
            if time.perf_counter() > deadline:
                raise
        time.sleep(0.01)


def payloads(size: int, count: int = 512) -> list[bytes]:
    """Record values of `size` bytes, half random: as compressible as common data."""
    chance = random.Random(size)
    return [(chance.randbytes(size // 2) + b"." * size)[:size] for _ in range(count)]


def produce(
    bootstrap: str, topic: str, partitions: int, size: int, count: int, settings: dict[str, Any] | None = None
) -> float:
    """Seconds from the first record handed over to the last one acknowledged."""
    values = payloads(size)
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "on_delivery": delivered, **(settings or {})})
    producer.list_topics(topic, timeout=30)
    begun = time.perf_counter()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % len(values)], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    left = producer.flush(WAIT_S)
    seconds = time.perf_counter() - begun
    if left or failed:
        raise RuntimeError(f"{left} records unsent, {len(failed)} failed: {failed[:1]}")
    return seconds


def consume(bootstrap: str, topic: str, partitions: int, count: int, settings: dict[str, Any] | None = None) -> float:
    """Seconds to read `count` records from the beginning of all partitions."""
    own = {"group.id": "bench", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, **own, **(settings or {})})
    begun = time.perf_counter()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    seen = 0
    while seen < count:
        if time.perf_counter() > begun + WAIT_S:
            raise TimeoutError(f"only {seen} of {count} records")
        seen += len(consumer.consume(5000, timeout=0.5))
    seconds = time.perf_counter() - begun
    consumer.close()
    return seconds


def latencies_ms(bootstrap: str, topic: str, count: int, size: int = 100) -> list[float]:
    """Send to acknowledgement, one record at a time, acks=all, linger 0; the first tenth warms up and is dropped."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    value = payloads(size)[0]
    found = []
    for _ in range(count + count // 10):
        begun = time.perf_counter()
        producer.produce(topic, value, partition=0)
        if producer.flush(WAIT_S):
            raise RuntimeError("no acknowledgement")
        found.append((time.perf_counter() - begun) * 1000)
    return found[count // 10 :]


def paced_latencies_ms(bootstrap: str, topic: str, partitions: int, rate: int, count: int, size: int) -> list[float]:
    """From handing over to acknowledgement, as the client measures it, of `rate` records a second, acks=all, linger 0.
    The first fifth warms up and is dropped."""
    found: list[float] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        found.append(message.latency() * 1000)

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "on_delivery": delivered})
    producer.list_topics(topic, timeout=30)
    values = payloads(size)
    begun = time.perf_counter()
    for number in range(count):
        while (left := begun + number / rate - time.perf_counter()) > 0:
            producer.poll(left)
        producer.produce(topic, values[number % len(values)], partition=number % partitions)
    if producer.flush(WAIT_S):
        raise RuntimeError("records without acknowledgement")
    return found[count // 5 :]


def first_ack(bootstrap: str, topic: str) -> None:
    """Return as soon as one record is acknowledged on partition 0; retries while nobody listens."""
    outcome: list[Any] = []
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "message.timeout.ms": int(WAIT_S * 1000)}
    producer = Producer({**settings, **FAST_RECONNECT})
    producer.produce(topic, b"here?", partition=0, on_delivery=lambda error, _: outcome.append(error))
    deadline = time.perf_counter() + WAIT_S
    while not outcome and time.perf_counter() < deadline:
        producer.poll(0.005)
    if outcome != [None]:
        raise RuntimeError(f"no acknowledgement: {outcome}")
