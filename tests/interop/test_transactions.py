"""Transactions of unmodified clients: what readers see, who is fenced, and that offsets move with their records."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WAIT_S = 180.0


def confluent_producer(bootstrap: str, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0, **settings}
    )
    producer.init_transactions(WAIT_S)
    return producer


def confluent_values(bootstrap: str, topic: str, isolation: str = "read_committed", partition: int = 0) -> list[bytes]:
    """To the end as this isolation level sees it."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": isolation})
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[bytes] = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        values.append(message.value())
    assert message is not None
    assert message.error().name() == "_PARTITION_EOF", message.error()
    consumer.close()
    return values


def python_values(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Partition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation)
    where = Partition(topic, 0)
    consumer.assign([where])
    consumer.seek(where, 0)
    end = consumer.end_offsets([where])[where]
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while consumer.position(where) < end and time.monotonic() < deadline:
        values += [message.value for rows in consumer.poll(500).values() for message in rows]
    assert consumer.position(where) >= end
    consumer.close()
    return values


async def aio_values(bootstrap: str, topic: str, isolation: str) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Partition

    where = Partition(topic, 0)
    values: list[bytes] = []
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation) as consumer:
        consumer.assign([where])
        consumer.seek(where, 0)
        end = (await consumer.end_offsets([where]))[where]
        deadline = time.monotonic() + WAIT_S
        while await consumer.position(where) < end and time.monotonic() < deadline:
            for rows in (await consumer.getmany(timeout_ms=500)).values():
                values += [message.value for message in rows]
    return values


def write_confluent(bootstrap: str, topic: str) -> None:
    producer = confluent_producer(bootstrap, topic)
    for number in range(6):
        producer.begin_transaction()
        for part in range(5):
            producer.produce(topic, b"%d.%d" % (number, part), partition=0)
        if number % 3 == 1:
            producer.flush(WAIT_S)
            producer.abort_transaction(WAIT_S)
        else:
            producer.commit_transaction(WAIT_S)


def write_python(bootstrap: str, topic: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for part in range(5):
            producer.send(topic, b"%d.%d" % (number, part), partition=0)
        if number % 3 == 1:
            producer.flush()
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    producer.close()


def write_aio(bootstrap: str, topic: str) -> None:
    async def write() -> None:
        from aiokafka import AIOKafkaProducer

        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
            for number in range(6):
                await producer.begin_transaction()
                for part in range(5):
                    await producer.send_and_wait(topic, b"%d.%d" % (number, part), partition=0)
                if number % 3 == 1:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()

    asyncio.run(write())


WRITERS = {"confluent-kafka": write_confluent, "kafka-python": write_python, "aiokafka": write_aio}
COMMITTED = [b"%d.%d" % (number, part) for number in (0, 2, 3, 5) for part in range(5)]
EVERYTHING = [b"%d.%d" % (number, part) for number in range(6) for part in range(5)]


@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_aborted_records_are_seen_by_nobody_who_wants_committed_ones(
    writer: str, broker_session: Any, topic: str, make_topic: Any
) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    WRITERS[writer](bootstrap, topic)
    assert confluent_values(bootstrap, topic) == COMMITTED
    assert confluent_values(bootstrap, topic, "read_uncommitted") == EVERYTHING
    assert python_values(bootstrap, topic, "read_committed") == COMMITTED
    assert python_values(bootstrap, topic, "read_uncommitted") == EVERYTHING
    assert asyncio.run(aio_values(bootstrap, topic, "read_committed")) == COMMITTED


@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_java_reads_what_others_commit(
    writer: str, java_transactions: Any, broker_session: Any, topic: str, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    WRITERS[writer](broker_session.bootstrap, topic)
    assert java_transactions.run("read", broker_session.bootstrap, topic) == [v.decode() for v in COMMITTED]


def test_others_read_what_java_commits(
    java_transactions: Any, broker_session: Any, topic: str, make_topic: Any
) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    assert java_transactions.run("write", bootstrap, topic) == ["done"]
    assert confluent_values(bootstrap, topic) == COMMITTED
    assert python_values(bootstrap, topic, "read_committed") == COMMITTED
    assert asyncio.run(aio_values(bootstrap, topic, "read_committed")) == COMMITTED
    assert java_transactions.run("read", bootstrap, topic) == [v.decode() for v in COMMITTED]


def test_an_open_transaction_hides_what_follows_it(broker_session: Any, topic: str, make_topic: Any) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    producer = confluent_producer(bootstrap, topic)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(WAIT_S)
    plain = Producer({"bootstrap.servers": bootstrap})
    plain.produce(topic, b"plain", partition=0)
    plain.flush(WAIT_S)
    assert confluent_values(bootstrap, topic) == []
    assert confluent_values(bootstrap, topic, "read_uncommitted") == [b"open", b"plain"]
    producer.commit_transaction(WAIT_S)
    assert confluent_values(bootstrap, topic) == [b"open", b"plain"]


def test_a_second_producer_fences_the_first_and_settles_its_transaction(
    broker_session: Any, topic: str, make_topic: Any
) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    zombie = confluent_producer(bootstrap, topic)
    zombie.begin_transaction()
    zombie.produce(topic, b"half", partition=0)
    zombie.flush(WAIT_S)
    heir = confluent_producer(bootstrap, topic)
    assert confluent_values(bootstrap, topic) == [], "aborted, and so stable"
    zombie.produce(topic, b"late", partition=0)
    with pytest.raises(KafkaException) as caught:
        zombie.commit_transaction(WAIT_S)
    assert caught.value.args[0].name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), caught.value
    heir.begin_transaction()
    heir.produce(topic, b"whole", partition=0)
    heir.commit_transaction(WAIT_S)
    assert confluent_values(bootstrap, topic) == [b"whole"]


def moved(bootstrap: str, source: str, target: str, group: str, rounds: int, *, abort: Any = ()) -> None:
    """Consume, transform, produce: one transaction a round."""
    producer = confluent_producer(bootstrap, group)
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "isolation.level": "read_committed"})
    consumer.subscribe([source])
    try:
        for number in range(rounds):
            messages = consumer.consume(10, WAIT_S)
            assert len(messages) == 10
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value() + b"!", partition=0)
            places = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), WAIT_S)
            if number in abort:
                producer.abort_transaction(WAIT_S)
                for place in consumer.committed(consumer.assignment(), WAIT_S):
                    consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))
            else:
                producer.commit_transaction(WAIT_S)
    finally:
        consumer.close()


def test_offsets_move_with_their_records(broker_session: Any, topic: str, make_topic: Any) -> None:
    bootstrap, target = broker_session.bootstrap, f"{topic}-out"
    make_topic(bootstrap, topic)
    make_topic(bootstrap, target)
    source = Producer({"bootstrap.servers": bootstrap})
    for number in range(50):
        source.produce(topic, b"%d" % number, partition=0)
    source.flush(WAIT_S)
    moved(bootstrap, topic, target, f"{topic}-mover", 4, abort=(1,))
    moved(bootstrap, topic, target, f"{topic}-mover", 2)
    assert confluent_values(bootstrap, target) == [b"%d!" % number for number in range(50)]


def test_java_moves_offsets_with_their_records(
    java_transactions: Any, broker_session: Any, topic: str, make_topic: Any
) -> None:
    bootstrap, target = broker_session.bootstrap, f"{topic}-out"
    make_topic(bootstrap, topic)
    make_topic(bootstrap, target)
    source = Producer({"bootstrap.servers": bootstrap})
    for number in range(50):
        source.produce(topic, b"%d" % number, partition=0)
    source.flush(WAIT_S)
    assert java_transactions.run("move", bootstrap, topic, target, "50") == ["done"]
    assert confluent_values(bootstrap, target) == [b"%d!" % number for number in range(50)]
