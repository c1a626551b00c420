"""kill -9 while logs are compacted, dropped and rolled: no key loses its last acknowledged value."""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

KILLS = int(os.environ.get("LOGKERNEL_KILLS", "5"))
"""The whole proof takes a hundred."""
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900 + 10 * KILLS)]
WAIT_S = 180.0
KEYS = 40
SETTINGS = (
    "--set", "log.cleaner.backoff.ms=1",
    "--set", "log.retention.check.interval.ms=20",
    "--set", "log.flush.offset.checkpoint.interval.ms=50",
)  # fmt: skip


def read_all(bootstrap: str, topic: str) -> list[tuple[int, bytes, int]]:
    """(offset, key, number) of all that is there."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True, "check.crcs": True}
    )
    low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S)
    consumer.assign([TopicPartition(topic, 0, low)])
    found = []
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            consumer.close()
            return found
        found.append((message.offset(), message.key(), int(message.value().split()[0])))
    pytest.fail("the end did not come")


def test_cleaning_over_kills(start_broker: Any, topic: str, make_topic: Any, eventually: Any) -> None:
    broker = start_broker(*SETTINGS)
    dropped = f"{topic}-dropped"
    make_topic(
        broker.bootstrap, topic, cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01",
        file_delete_delay_ms="50",
    )  # fmt: skip
    make_topic(broker.bootstrap, dropped, segment_bytes="1048576", retention_bytes="3000000", file_delete_delay_ms="50")
    settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 200}
    producer = Producer({**settings, "linger.ms": 2})
    chance = random.Random(5)
    acked: dict[str, dict[bytes, int]] = {topic: {}, dropped: {}}
    sent = 0

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acked[message.topic()][message.key()] = int(message.value().split()[0])

    for _ in range(KILLS):
        target, deadline = sent + 400, time.monotonic() + WAIT_S
        until = time.monotonic() + chance.uniform(0.2, 0.8)
        while time.monotonic() < until or sent < target:
            assert time.monotonic() < deadline
            if len(producer) < 500:
                for name in (topic, dropped):
                    key = b"k%d" % chance.randrange(KEYS)
                    producer.produce(name, b"%d %s" % (sent, bytes(5000)), key, on_delivery=delivered)
                sent += 1
            producer.poll(0 if len(producer) < 500 else 0.01)
        broker.kill()
        broker.restart()
    assert producer.flush(WAIT_S) == 0
    eventually(lambda: read_all(broker.bootstrap, dropped)[0][0] > 0, WAIT_S, "the first segments are dropped")
    eventually(lambda: len(read_all(broker.bootstrap, topic)) < sent, WAIT_S, "something is compacted")
    for name in (topic, dropped):
        found = read_all(broker.bootstrap, name)
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        last = {key: number for _, key, number in found}
        if name == topic:
            assert last == acked[topic]
            assert len(found) < sent, "nothing was compacted"
        else:
            assert offsets == list(range(offsets[0], sent)), "a hole"
            assert offsets[0] > 0, "nothing was dropped"
            assert all(acked[dropped][key] == number for key, number in last.items())
    broker.terminate()
    leftovers = [path.name for path in broker.data.rglob("*") if path.suffix in (".cleaned", ".swap")]
    assert leftovers == []
    assert "cannot be cleaned" not in broker.log()
    assert "Traceback" not in broker.log()
