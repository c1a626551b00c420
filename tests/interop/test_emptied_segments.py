"""A reader of a compacted log that has many segments of which nothing is left but where they end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WAIT_S = 180.0
SEGMENTS = 16
"""librdkafka asks for twice as much after each answer without a record, and calls the eleventh an error."""
RECORDS_A_SEGMENT = 21
"""Of 50,000 bytes, in a segment of a mebibyte."""


def test_a_client_meets_no_answer_without_a_record(start_broker: Any, topic: str, make_topic: Any) -> None:
    broker = start_broker("--set", "log.cleaner.backoff.ms=600000")
    make_topic(
        broker.bootstrap, topic, cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.5"
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "batch.num.messages": 1})
    count = SEGMENTS * RECORDS_A_SEGMENT
    for number in range(count):
        producer.produce(topic, b"%d %s" % (number, bytes(50_000)), b"key")
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    subprocess.run(
        [sys.executable, "-m", "logkernel", "topic", "compact", topic, "--data", str(broker.data)], check=True
    )
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "check", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    numbers = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        numbers.append(int(message.value().split()[0]))
    consumer.close()
    assert message is not None
    assert message.error().name() == "_PARTITION_EOF", message.error()
    assert numbers[-1] == count - 1
    assert len(numbers) <= RECORDS_A_SEGMENT + 1, "nothing was compacted"
