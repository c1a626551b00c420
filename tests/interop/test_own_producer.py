"""Our producer against a served broker and against Apache Kafka 4.3 and 3.9, read back by librdkafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel import aio
from logkernel.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

pytestmark = pytest.mark.interop


def read(
    bootstrap: str, topic: str, isolation: str = "read_uncommitted"
) -> list[tuple[int, bytes | None, bytes | None]]:
    """(partition, key, value) of every record, by librdkafka."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "r", "isolation.level": isolation, "enable.partition.eof": True}
    )
    count = len(consumer.list_topics(topic, timeout=120).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(count)])
    found, ended = [], 0
    while ended < count:
        message = consumer.poll(120)
        assert message is not None, "nothing for two minutes"
        if message.error():
            ended += 1
        else:
            found.append((message.partition(), message.key(), message.value()))
    consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive(bootstrap: str, topic: str, codec: str, eventually: Any) -> None:
    with logkernel.connect(bootstrap) as log:
        log.create_topic(topic, partitions=3)
        eventually(lambda: log.topics().get(topic) == 3, what="Kafka tells of its topic")
        with log.producer(compression_type=codec, batch_size=2000) as producer:
            deliveries = [producer.send(topic, b"v%d" % number, key=b"k%d" % number) for number in range(1000)]
            producer.flush(300)
            places = {(d.result(1).partition, d.result(1).offset) for d in deliveries}
        assert len(places) == 1000
    found = read(bootstrap, topic)
    assert sorted((key, value) for _, key, value in found) == sorted((b"k%d" % n, b"v%d" % n) for n in range(1000))


def test_keys_meet_those_of_librdkafkas_java_partitioner(bootstrap: str, topic: str) -> None:
    from confluent_kafka import Producer

    keys = [b"key-%d" % number for number in range(50)]
    with logkernel.connect(bootstrap) as log:
        log.create_topic(topic, partitions=7)
        with log.producer() as producer:
            mine = {key: producer.send(topic, b"v", key=key) for key in keys}
            producer.flush(300)
            chosen = {key: delivery.result(1).partition for key, delivery in mine.items()}
    told: dict[bytes, int] = {}
    other = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        other.produce(topic, b"w", key=key, on_delivery=lambda error, m: told.update({m.key(): m.partition()}))
    other.flush(300)
    assert told == chosen


def test_the_asyncio_producer_delivers_in_order(bootstrap: str, topic: str) -> None:
    async def work() -> list[int]:
        async with aio.connect(bootstrap) as log:
            await log.create_topic(topic, partitions=1)
            async with log.producer() as producer:
                deliveries = [await producer.send(topic, b"%d" % number) for number in range(200)]
                return [(await delivery).offset for delivery in deliveries]

    assert asyncio.run(work()) == list(range(200))


def test_a_topic_that_is_made_at_the_first_record(bootstrap: str, topic: str) -> None:
    with logkernel.connect(bootstrap) as log, log.producer() as producer:
        assert producer.send(topic, b"v").result(120).offset == 0


@pytest.mark.parametrize("version", [1, 2])
def test_transactions_commit_abort_and_fence(
    kafka: str, topic: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed is seen, what is aborted is not, and who was fenced hears of it; the old way, and the new."""
    from logkernel.client.producer.transactions import Transactions

    if version == 1:
        monkeypatch.setattr(Transactions, "level", lambda self: 1)
    with logkernel.connect(kafka) as log:
        log.create_topic(topic, partitions=2)
        with log.producer(transactional_id=topic) as producer:
            producer.init_transactions()
            with producer.transaction():
                for number in range(10):
                    producer.send(topic, b"in%d" % number, key=b"%d" % number)
            with contextlib.suppress(ZeroDivisionError), producer.transaction():
                producer.send(topic, b"out")
                producer.flush(300)
                producer.send(topic, b"never sent")
                raise ZeroDivisionError
            with producer.transaction():
                producer.send(topic, b"more")
                producer.send_offsets_to_transaction({(topic, 0): 5, (topic, 1): 7}, topic)
            with producer.transaction():
                pass
            with log.producer(transactional_id=topic) as heir:
                heir.init_transactions()
                producer.begin_transaction()
                with pytest.raises((ProducerFenced, InvalidProducerEpoch)):  # noqa: PT012
                    producer.send(topic, b"fenced")
                    producer.commit_transaction()
                with pytest.raises(KafkaError):
                    producer.abort_transaction()
                with heir.transaction():
                    heir.send(topic, b"heir")
    values = sorted(value or b"" for _, _, value in read(kafka, topic, "read_committed"))
    assert values == sorted([*(b"in%d" % number for number in range(10)), b"more", b"heir"])
    assert committed(kafka, topic) == {0: 5, 1: 7}


def committed(bootstrap: str, topic: str) -> dict[int, int]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    found = {row.partition: row.offset for row in consumer.committed([TopicPartition(topic, p) for p in (0, 1)], 120)}
    consumer.close()
    return found


def test_a_broker_that_is_killed_under_it(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    """Every record that was acknowledged is there, once and in order, after two kills."""
    broker = start_broker()
    with logkernel.connect(broker.bootstrap, reconnect_backoff_ms=10, reconnect_backoff_max_ms=50) as log:
        log.create_topic("t", partitions=1)
        with log.producer(batch_size=2000, retry_backoff_ms=20) as producer:
            deliveries = []
            for number in range(30_000):
                deliveries.append(producer.send("t", b"%d" % number))
                if number in (10_000, 20_000):
                    broker.kill()
                    broker.restart()
            producer.flush(300)
            assert [delivery.exception() for delivery in deliveries if delivery.exception()] == []
    values = [int(value or b"-1") for _, _, value in read(broker.bootstrap, "t")]
    assert values == list(range(30_000))
