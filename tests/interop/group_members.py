"""librdkafka's consumers in one group: what they share, and what they read between them."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Producer

PARTITIONS = 4
WAIT_S = 180.0


def fill(bootstrap: str, topic: str, count: int, start: int = 0) -> None:
    """`count` numbered records, spread evenly."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(start, start + count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def subscribed(bootstrap: str, group: str, topic: str, **settings: str) -> Consumer:
    """A member that reads from the start; keywords are its settings with `_` for `.`."""
    usual = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(usual | {name.replace("_", "."): value for name, value in settings.items()})
    consumer.subscribe([topic])
    return consumer


def poll_until(members: list[Consumer], done: Any) -> list[int]:
    """Poll all members in turn until `done(values so far)`; returns the values."""
    values: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while not done(values):
        assert time.monotonic() < deadline, f"only {len(values)} values; assigned {[m.assignment() for m in members]}"
        for consumer in members:
            message = consumer.poll(0.05)
            if message is not None:
                assert message.error() is None, message.error()
                values.append(int(message.value()))
    return values


def shares(members: list[Consumer]) -> list[int]:
    """How many partitions each has, fewest first."""
    return sorted(len(consumer.assignment()) for consumer in members)
