"""A fresh Apache Kafka takes over the folders of compacted partitions, and its readers see exactly what ours saw."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from logkernel.storage.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINTS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WAIT_S = 180.0
PARTITIONS = 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ISOLATIONS = ("read_uncommitted", "read_committed")
Row = tuple[int, bytes | None, bytes | None, Any, Any]


def write(bootstrap: str, topic: str, chance: random.Random) -> None:
    """Plain batches of every codec, tombstones, and transactions, some of them aborted."""
    for codec in CODECS:
        plain = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5})
        for number in range(1500):
            value = None if chance.random() < 0.1 else b"%s %d %s" % (codec.encode(), number, bytes(300))
            headers = [("h", b"%d" % number)] if number % 7 == 0 else None
            plain.produce(topic, value, b"k%d" % chance.randrange(300), headers=headers)
        assert plain.flush(WAIT_S) == 0
    settings = {"bootstrap.servers": bootstrap, "transactional.id": topic, "linger.ms": 5}
    producer = Producer(settings)
    producer.init_transactions(WAIT_S)
    for number in range(12):
        producer.begin_transaction()
        for _ in range(20):
            producer.produce(topic, b"transaction %d" % number, b"k%d" % chance.randrange(330))
        if number % 3:
            producer.commit_transaction(WAIT_S)
        else:
            producer.flush(WAIT_S)
            producer.abort_transaction(WAIT_S)


def bounds_of(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """(first offset, end offset), as soon as the partition has its leader after a start."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=WAIT_S)
            return low, high
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            consumer.poll(0.1)


def read(bootstrap: str, topic: str, isolation: str) -> list[tuple[tuple[int, int], list[Row]]]:
    """Of each partition (first offset, end offset) and every record."""
    found = []
    for partition in range(PARTITIONS):
        consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "adoption", "isolation.level": isolation,
             "enable.partition.eof": True, "check.crcs": True}
        )  # fmt: skip
        bounds = bounds_of(consumer, TopicPartition(topic, partition))
        consumer.assign([TopicPartition(topic, partition, bounds[0])])
        rows: list[Row] = []
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None, "the end did not come"
            if message.error() is not None:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                break
            rows.append((message.offset(), message.key(), message.value(), message.headers(), message.timestamp()))
        consumer.close()
        found.append((bounds, rows))
    return found


def complaints(log: Path) -> list[str]:
    """What Kafka's log says against the files; of them its quorum's, of a start on a slow machine, are none."""
    of_the_quorum = (
        "kafka.server.ControllerApis",
        "kafka.server.ControllerRegistrationManager",
        "kafka.raft.",
        "org.apache.kafka.controller.EventPerformanceMonitor",
    )
    lines = log.read_text().splitlines()
    found = [line for line in lines if "orrupt" in line or " ERROR " in line]
    return [line for line in found if not any(f" ERROR {name}" in line for name in of_the_quorum)]


def compact(folder: Path, topic: str) -> str:
    command = [sys.executable, "-m", "logkernel", "topic", "compact", topic, "--data", str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=WAIT_S).stdout


@pytest.mark.longest
def test_a_fresh_kafka_adopts_compacted_partitions(
    apache_kafka: ModuleType, start_broker: Any, topic: str, make_topic: Callable[..., None], tmp_path: Path
) -> None:
    chance = random.Random(7)
    broker = start_broker("--set", "log.cleaner.enable=false")
    settings = {"cleanup_policy": "compact", "segment_bytes": "1048576", "min_compaction_lag_ms": "0"}
    make_topic(broker.bootstrap, topic, PARTITIONS, **settings)
    write(broker.bootstrap, topic, chance)
    assert f"{topic}-{PARTITIONS - 1}" in compact(broker.data, topic)
    write(broker.bootstrap, topic, chance)  # once more, so that a rewritten segment is rewritten
    assert f"{topic}-{PARTITIONS - 1}" in compact(broker.data, topic)
    write(broker.bootstrap, topic, chance)  # and what is not compacted
    wanted = {isolation: read(broker.bootstrap, topic, isolation) for isolation in ISOLATIONS}
    assert wanted["read_committed"] != wanted["read_uncommitted"], "nothing was aborted"
    assert any(row[2] is None for _, rows in wanted["read_committed"] for row in rows), "no tombstone is left"
    assert sum(len(rows) for _, rows in wanted["read_committed"]) < 20_000, "nothing was compacted"
    assert broker.terminate() == 0

    kafka = apache_kafka.KafkaServer(tmp_path / "kafka", {"log.cleaner.enable": "false"})
    kafka.prepare()
    try:
        kafka.start()
        make_topic(kafka.bootstrap, topic, PARTITIONS, **settings)
        kafka.stop()
        for partition in range(PARTITIONS):
            home = kafka.data / f"{topic}-{partition}"
            own = (home / "partition.metadata").read_bytes()
            shutil.rmtree(home)
            shutil.copytree(broker.data / home.name, home)
            (home / "partition.metadata").write_bytes(own)  # the topic id is the adopting cluster's own
        assert (kafka.data / CLEAN_SHUTDOWN).exists()
        kafka.start()  # it trusts our indexes and snapshots
        for isolation in ISOLATIONS:
            assert read(kafka.bootstrap, topic, isolation) == wanted[isolation], f"trusted, {isolation}"
        kafka.stop()
        (kafka.data / CLEAN_SHUTDOWN).unlink()
        (kafka.data / RECOVERY_POINTS).unlink()
        kafka.start()  # it recovers every segment: each batch is checked
        for isolation in ISOLATIONS:
            assert read(kafka.bootstrap, topic, isolation) == wanted[isolation], f"recovered, {isolation}"
        assert complaints(kafka.log_path) == []
    finally:
        kafka.stop()
