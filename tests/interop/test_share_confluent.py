"""confluent-kafka's share consumer: librdkafka asks ShareGroupHeartbeat 1, ShareFetch 1 and ShareAcknowledge 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
if not hasattr(confluent_kafka, "ShareConsumer"):
    pytest.skip("this confluent-kafka has no share consumer", allow_module_level=True)

pytestmark = pytest.mark.interop

WAIT_S = 180.0


def from_the_start(bootstrap: str, group: str, **settings: str) -> None:
    """Let the group begin at the earliest offset."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    rows = {"share.auto.offset.reset": "earliest", **settings}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in rows.items()]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(WAIT_S)


def produce(bootstrap: str, topic: str, first: int, count: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(first, first + count):
        producer.produce(topic, f"v{number}".encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def consumer(bootstrap: str, group: str, topic: str, **settings: str) -> Any:
    extra = {name.replace("_", "."): value for name, value in settings.items()}
    made = confluent_kafka.ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group, **extra})
    made.subscribe([topic])
    return made


def poll_until(
    reader: Any, done: Callable[[list[Any]], bool], each: Callable[[Any], None] = lambda _: None
) -> list[Any]:
    """Everything polled until `done`; fails after WAIT_S."""
    got: list[Any] = []
    deadline = time.monotonic() + WAIT_S
    while not done(got):
        assert time.monotonic() < deadline, [message.value() for message in got]
        for message in reader.poll(0.5):
            assert message.error() is None, message.error()
            got.append(message)
            each(message)
    return got


def test_implicit_acknowledgement(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic)
    from_the_start(broker_session.bootstrap, topic)
    produce(broker_session.bootstrap, topic, 0, 50)
    with consumer(broker_session.bootstrap, topic, topic) as reader:
        got = poll_until(reader, lambda seen: len(seen) >= 50)
        assert [message.value() for message in got] == [f"v{number}".encode() for number in range(50)]
        produce(broker_session.bootstrap, topic, 50, 5)
        more = poll_until(reader, lambda seen: len(seen) >= 5)
        assert [message.offset() for message in more] == list(range(50, 55))
        assert all(error is None for error in reader.commit_sync(WAIT_S).values())
    with consumer(broker_session.bootstrap, topic, topic) as again:
        produce(broker_session.bootstrap, topic, 55, 1)
        assert [message.offset() for message in poll_until(again, bool)] == [55]


def test_explicit_release_and_reject(broker_session: Any, topic: str, make_topic: Any) -> None:
    from confluent_kafka import AcknowledgeType

    make_topic(broker_session.bootstrap, topic)
    from_the_start(broker_session.bootstrap, topic)
    produce(broker_session.bootstrap, topic, 0, 3)
    seen: dict[int, int] = {}
    with consumer(broker_session.bootstrap, topic, topic, share_acknowledgement_mode="explicit") as reader:

        def judge(message: Any) -> None:
            offset = message.offset()
            seen[offset] = seen.get(offset, 0) + 1
            word = AcknowledgeType.RELEASE if offset == 1 and seen[offset] < 3 else AcknowledgeType.ACCEPT
            reader.acknowledge(message, AcknowledgeType.REJECT if offset == 2 else word)

        poll_until(reader, lambda _: seen.get(1, 0) >= 3, judge)
        reader.commit_sync(WAIT_S)
    assert seen == {0: 1, 1: 3, 2: 1}


def test_two_consumers_share_one_partition(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic)
    from_the_start(broker_session.bootstrap, topic, **{"share.assignment.interval.ms": "0"})
    readers = [consumer(broker_session.bootstrap, topic, topic) for _ in range(2)]
    got: list[list[int]] = [[], []]
    deadline = time.monotonic() + WAIT_S
    number = 0
    while (sum(map(len, got)) < max(number, 400) or not all(got)) and time.monotonic() < deadline:
        if number < 400 or sum(map(len, got)) == number:  # whoever joins later is sent more, until it was given some
            produce(broker_session.bootstrap, topic, number, 20)
            number += 20
        for mine, reader in zip(got, readers, strict=True):
            mine += [message.offset() for message in reader.poll(0.2)]
    for reader in readers:
        reader.close()
    assert all(got), [len(mine) for mine in got]
    assert sorted(got[0] + got[1]) == list(range(number))
