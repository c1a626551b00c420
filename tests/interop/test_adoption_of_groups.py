"""A folder that Apache Kafka wrote is served here with its groups, of every kind, and goes back to Kafka with them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from test_adoption import complaints
from test_share_confluent import consumer as share_consumer
from test_share_confluent import from_the_start, poll_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WAIT_S = 180.0
PARTITIONS = 2
RECORDS = 40
PROTOCOLS = {
    "classic": {},
    "consumer": {"group.protocol": "consumer"},
    "consumer-static": {"group.protocol": "consumer", "group.instance.id": "one"},  # stays in the group
}


def write(bootstrap: str, topic: str, first: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"v%d" % number, b"k", partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


def take(bootstrap: str, topic: str, group: str, count: int) -> list[bytes | None]:
    """The next records of a group, each committed."""
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": "false", **PROTOCOLS[group]}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    found: list[Message] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, [each.value() for each in found]
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message)
            consumer.commit(message, asynchronous=False)
    consumer.close()
    return [each.value() for each in found]


def write_and_take_shared(bootstrap: str, topic: str, first: int) -> None:
    """The share group is given what is new, and nothing that it had."""
    write(bootstrap, topic, first)
    consumer = share_consumer(bootstrap, "share", topic)
    got = poll_until(consumer, lambda got: len(got) >= RECORDS)
    consumer.commit_sync()
    consumer.close()
    assert sorted(each.value() for each in got) == sorted(b"v%d" % number for number in range(first, first + RECORDS))


def committed(bootstrap: str, topic: str) -> dict[str, dict[int, int]]:
    """Offsets by group and partition, as soon as the groups' coordinators are there."""
    found: dict[str, dict[int, int]] = {}
    for group, settings in PROTOCOLS.items():
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
        wanted = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        deadline = time.monotonic() + WAIT_S
        while group not in found:
            try:
                rows = consumer.committed(wanted, WAIT_S)
                found[group] = {row.partition: max(0, row.offset) for row in rows}
            except KafkaException as error:
                if error.args[0].name() != "NOT_COORDINATOR" or time.monotonic() > deadline:
                    raise
                consumer.poll(0.1)
        consumer.close()
    return found


def kinds(bootstrap: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
    assert listed.errors == []
    return {row.group_id: row.type.name for row in listed.valid}


@pytest.mark.longest
def test_groups_go_from_kafka_to_here_and_back(
    apache_kafka: ModuleType, start_broker: Any, topic: str, make_topic: Callable[..., None], tmp_path: Path
) -> None:
    shared = f"{topic}-shared"
    kafka = apache_kafka.KafkaServer(tmp_path / "kafka", {"offsets.topic.num.partitions": "1"})
    kafka.prepare()
    try:
        kafka.start()
        for name in (topic, shared):
            make_topic(kafka.bootstrap, name, PARTITIONS)
        write(kafka.bootstrap, topic, 0)
        taken = {group: take(kafka.bootstrap, topic, group, 10 + 2 * n) for n, group in enumerate(PROTOCOLS)}
        from_the_start(kafka.bootstrap, "share")
        write_and_take_shared(kafka.bootstrap, shared, 0)
        groups, offsets = kinds(kafka.bootstrap), committed(kafka.bootstrap, topic)
        assert sum(offsets["consumer"].values()) == 12
        kafka.stop()

        for life in (1, 2):  # the second start reads what the first wrote
            broker = start_broker("--set", "offsets.topic.num.partitions=1", data=kafka.data)
            assert kinds(broker.bootstrap).items() >= groups.items()
            assert committed(broker.bootstrap, topic) == offsets
            for group in PROTOCOLS:
                taken[group] += take(broker.bootstrap, topic, group, 5)
            write_and_take_shared(broker.bootstrap, shared, life * RECORDS)
            offsets = committed(broker.bootstrap, topic)
            assert broker.terminate() == 0
            assert "level=error" not in broker.log()

        kafka.start()
        assert committed(kafka.bootstrap, topic) == offsets
        assert kinds(kafka.bootstrap).items() >= groups.items()  # only now: it lists what is loaded
        for group in PROTOCOLS:
            taken[group] += take(kafka.bootstrap, topic, group, RECORDS - len(taken[group]))
            assert sorted(taken[group]) == sorted(b"v%d" % number for number in range(RECORDS)), group
        write_and_take_shared(kafka.bootstrap, shared, 3 * RECORDS)
        assert complaints(kafka.log_path) == []
    finally:
        kafka.stop()
