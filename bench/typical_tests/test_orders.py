"""Fifty tests as services have them: produce, consume, a group, a retry, a transaction; by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

TEN = pytest.mark.parametrize("number", range(10))


def put(bootstrap: str, topic: str, *values: str, **settings: Any) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for value in values:
        producer.produce(topic, value, key=value)
    assert producer.flush(30) == 0


@contextmanager
def consumer(bootstrap: str, group: str, **settings: Any) -> Iterator[Consumer]:
    made = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, **settings,
    })  # fmt: skip
    try:
        yield made
    finally:
        made.close()


def take(reader: Consumer, count: int) -> list[str]:
    found: list[str] = []
    for _ in range(3000):
        message = reader.poll(0.01)
        if message is not None:
            assert message.error() is None
            found.append(message.value().decode())
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of {count} records")


@TEN
def test_produce(bootstrap: str, topic: str, number: int) -> None:
    told: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    producer.produce(
        topic, f"order {number}", on_delivery=lambda error, message: told.append((error, message.offset()))
    )
    assert producer.flush(30) == 0
    assert told == [(None, 0)]


@TEN
def test_consume(bootstrap: str, topic: str, number: int) -> None:
    put(bootstrap, topic, f"order {number}")
    with consumer(bootstrap, "unused") as reader:
        reader.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        assert take(reader, 1) == [f"order {number}"]


@TEN
def test_group(bootstrap: str, topic: str, number: int) -> None:
    put(bootstrap, topic, *(f"order {number}.{each}" for each in range(5)))
    with consumer(bootstrap, f"billing of {topic}") as reader:
        reader.subscribe([topic])
        assert len(take(reader, 5)) == 5
        reader.commit(asynchronous=False)
        committed = reader.committed([TopicPartition(topic, partition) for partition in range(3)], 10)
        assert sum(max(0, each.offset) for each in committed) == 5


@TEN
def test_retry(bootstrap: str, topic: str, number: int) -> None:
    """What could not be handled is read again, by the next consumer of the group."""
    put(bootstrap, topic, f"order {number}")
    for _ in range(2):
        with consumer(bootstrap, f"billing of {topic}") as reader:
            reader.subscribe([topic])
            assert take(reader, 1) == [f"order {number}"]


@TEN
def test_transaction(bootstrap: str, topic: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    for word, end in (("lost", producer.abort_transaction), ("kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, f"{word} {number}", partition=0)
        end(30)
    with consumer(bootstrap, "unused", **{"isolation.level": "read_committed"}) as reader:
        reader.assign([TopicPartition(topic, 0, 0)])
        assert take(reader, 1) == [f"kept {number}"]
