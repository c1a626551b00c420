"""Consumer groups: members share, one leaves and the rest take over, offsets outlive members and brokers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from group_members import PARTITIONS, WAIT_S, fill, poll_until, shares, subscribed

pytestmark = pytest.mark.interop


def test_two_members_share_and_one_takes_over(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    fill(broker_session.bootstrap, topic, 400)
    members = [subscribed(broker_session.bootstrap, topic, topic) for _ in range(2)]
    values = poll_until(members, lambda values: len(set(values)) == 400 and shares(members) == [2, 2])
    assert set(values) == set(range(400))
    for consumer in members:
        consumer.commit(asynchronous=False)
    members.pop().close()
    fill(broker_session.bootstrap, topic, 400, start=400)
    values = poll_until(members, lambda values: len(values) == 400)
    assert sorted(values) == list(range(400, 800))
    assert shares(members) == [PARTITIONS]
    members.pop().close()


def test_a_group_goes_on_where_it_stopped(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    fill(broker_session.bootstrap, topic, 100)
    first = subscribed(broker_session.bootstrap, topic, topic)
    poll_until([first], lambda values: len(values) == 100)
    first.commit(asynchronous=False)
    first.close()
    fill(broker_session.bootstrap, topic, 20, start=100)
    second = subscribed(broker_session.bootstrap, topic, topic)
    assert sorted(poll_until([second], lambda values: len(values) == 20)) == list(range(100, 120))
    second.close()


def test_committed_offsets_survive_a_kill(start_broker: Any, topic: str, make_topic: Any) -> None:
    broker = start_broker()
    make_topic(broker.bootstrap, topic, PARTITIONS)
    fill(broker.bootstrap, topic, 100)
    reader = subscribed(broker.bootstrap, "durable", topic)
    poll_until([reader], lambda values: len(values) == 100)
    reader.commit(asynchronous=False)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    before = [place.offset for place in reader.committed(places, timeout=WAIT_S)]
    assert before == [25] * PARTITIONS
    broker.kill()
    broker.restart()
    after = [place.offset for place in reader.committed(places, timeout=WAIT_S)]
    assert after == before
    reader.close()


def test_groups_are_listed_and_described(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    fill(broker_session.bootstrap, topic, 10)
    reader = subscribed(broker_session.bootstrap, topic, topic)
    poll_until([reader], lambda values: len(values) == 10)
    admin = AdminClient({"bootstrap.servers": broker_session.bootstrap})
    listed = admin.list_consumer_groups().result(WAIT_S)
    assert topic in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([topic])[topic].result(WAIT_S)
    assert described.state.name == "STABLE"
    assert [len(found.assignment.topic_partitions) for found in described.members] == [PARTITIONS]
    reader.close()


def test_clients_of_three_makes_in_one_group(broker_session: Any, topic: str, make_topic: Any) -> None:
    """Each client in turn takes the group over from the one before, at the offset that it left."""
    from kafka import KafkaConsumer

    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    fill(broker_session.bootstrap, topic, 40)
    first = subscribed(broker_session.bootstrap, topic, topic)
    poll_until([first], lambda values: len(values) == 40)
    first.commit(asynchronous=False)
    first.close()

    fill(broker_session.bootstrap, topic, 40, start=40)
    settings = {"bootstrap_servers": broker_session.bootstrap, "group_id": topic, "auto_offset_reset": "earliest"}
    second = KafkaConsumer(topic, **settings)
    values: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(values) < 40 and time.monotonic() < deadline:
        values += [int(m.value) for messages in second.poll(500).values() for m in messages]
    second.commit()
    second.close()
    assert sorted(values) == list(range(40, 80))

    fill(broker_session.bootstrap, topic, 40, start=80)
    assert sorted(asyncio.run(aiokafka_read(topic, settings, 40))) == list(range(80, 120))


async def aiokafka_read(topic: str, settings: dict[str, Any], count: int) -> list[int]:
    from aiokafka import AIOKafkaConsumer

    values: list[int] = []
    async with AIOKafkaConsumer(topic, **settings) as consumer:
        deadline = time.monotonic() + WAIT_S
        while len(values) < count and time.monotonic() < deadline:
            batches = await consumer.getmany(timeout_ms=500)
            values += [int(m.value) for messages in batches.values() for m in messages]
        await consumer.commit()
    return values


def test_two_kinds_of_member_at_once(broker_session: Any, topic: str, make_topic: Any) -> None:
    """confluent-kafka and kafka-python agree on `range`, and share the partitions in one generation."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    native = Consumer(
        {
            "bootstrap.servers": broker_session.bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
        }
    )
    native.subscribe([topic])
    other = KafkaConsumer(
        topic,
        bootstrap_servers=broker_session.bootstrap,
        group_id=topic,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline and (len(native.assignment()), len(other.assignment())) != (2, 2):
        native.poll(0.05)
        other.poll(50)
    assert (len(native.assignment()), len(other.assignment())) == (2, 2)
    native.close()
    other.close()
