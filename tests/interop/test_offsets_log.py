"""What lies in __consumer_offsets, as Kafka's own reader prints it."""

from __future__ import annotations

import json
import subprocess
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WAIT_S = 180.0
FORMATTER = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"


def printed(apache_kafka: ModuleType, bootstrap: str, group: str, isolation: str) -> list[Any]:
    """Every offset record of a group, in the log's order."""
    for limit_ms in (15_000, 120_000):  # the second where a slow machine has had no answer yet
        command = apache_kafka.java(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", "__consumer_offsets", "--from-beginning"),
            *("--formatter", FORMATTER, "--isolation-level", isolation, "--timeout-ms", str(limit_ms)),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        reader, text, rows = json.JSONDecoder(), done.stdout.strip(), []
        while text:
            row, end = reader.raw_decode(text)  # it prints them without anything in between
            rows.append(row)
            text = text[end:].lstrip()
        found = [row for row in rows if row["key"]["data"]["group"] == group]
        if found:
            break
    assert rows, done.stderr[-4000:]
    return found


def test_kafka_reads_our_offsets(apache_kafka: ModuleType, broker_session: Any, topic: str, make_topic: Any) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    group = f"{topic}-é"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 7, "a note")], asynchronous=False)
    consumer.close()
    (row,) = printed(apache_kafka, bootstrap, group, "read_uncommitted")
    assert row["key"] == {"type": 1, "data": {"group": group, "topic": topic, "partition": 0}}
    assert row["value"]["version"] == 4
    value = row["value"]["data"]
    assert (value["offset"], value["leaderEpoch"]) == (7, -1)
    assert value["metadata"].rstrip("\0") == "a note", "confluent-kafka sends the NUL behind it too"
    assert len(value["topicId"]) == 22, "a topic id in Kafka's base64"


@pytest.mark.longest
def test_an_offset_in_a_transaction_is_seen_as_such(
    apache_kafka: ModuleType, broker_session: Any, topic: str, make_topic: Any
) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    for offset, committed in ((3, True), (5, False)):
        producer.begin_transaction()
        place = TopicPartition(topic, 0, offset)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), WAIT_S)
        if committed:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
    assert consumer.committed([TopicPartition(topic, 0)], WAIT_S)[0].offset == 3
    consumer.close()
    every, committed_rows = (
        [row["value"]["data"]["offset"] for row in printed(apache_kafka, bootstrap, topic, isolation)]
        for isolation in ("read_uncommitted", "read_committed")
    )
    assert (every, committed_rows) == ([3, 5], [3])
