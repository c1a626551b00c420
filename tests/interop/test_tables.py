"""Tables of what librdkafka wrote, from a served broker and from Apache Kafka: over the network and from their folders,
beside what librdkafka reads."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Partition

import logkernel
from logkernel.table import COLUMNS, HEADERS, open_source
from logkernel.vocabulary import TopicPartition

pytestmark = pytest.mark.interop
pa = pytest.importorskip("pyarrow")
TRANSACTIONS = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
}


@pytest.fixture(scope="module")
def kafka(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    server = apache_kafka.KafkaServer(tmp_path_factory.mktemp("kafka"), TRANSACTIONS)
    server.prepare()
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["ours", "kafka"])
def served(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """(bootstrap, data folder)"""
    if request.param == "kafka":
        server = request.getfixturevalue("kafka")
        return server.bootstrap, Path(server.data)
    broker = request.getfixturevalue("broker")
    return broker.bootstrap, broker.data


def fill(bootstrap: str, topic: str) -> None:
    """All codecs, then transactions; the last one stays open."""
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50})
        for number in range(500):
            headers = [("h", b"1"), ("n", None)] if number % 3 == 0 else None
            value = None if number % 7 == 0 else b"%s %d " % (codec.encode(), number) * 5
            producer.produce(topic, value, key=b"k%d" % number if number % 2 else None, headers=headers, partition=0)
        assert producer.flush(180) == 0
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "transaction.timeout.ms": 600_000})
    producer.init_transactions(180)
    for number in range(6):
        producer.begin_transaction()
        for _ in range(20):
            producer.produce(topic, b"txn %d" % number, partition=0)
        assert producer.flush(180) == 0
        if number % 2:
            producer.abort_transaction(180)
        else:
            producer.commit_transaction(180)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(180) == 0
    _kept.append(producer)


_kept: list[Producer] = []
"""A producer that goes may abort what it has open."""


def read(bootstrap: str, topic: str, level: str) -> tuple[list[Any], int]:
    """What librdkafka reads, and the end as it sees it."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": level, "enable.partition.eof": True}
    consumer = Consumer({**settings, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.assign([Partition(topic, 0, 0)])
    found: list[Any] = []
    while True:
        message = consumer.poll(180)
        assert message is not None
        if message.error() is not None:
            end = consumer.get_watermark_offsets(Partition(topic, 0), timeout=180)[1]
            consumer.close()
            return found, end
        found.append(
            (message.offset(), message.key(), message.value(), message.timestamp()[1], message.headers() or [])
        )


def rows(source: Any, name: TopicPartition, level: str) -> list[Any]:
    bounds = source.bounds(name, level)
    table = pa.Table.from_batches(
        source.scan(name, bounds.start, bounds.end, columns=(*COLUMNS, HEADERS), isolation=level)
    )
    table.validate(full=True)
    return [
        (
            row["offset"],
            row["key"],
            row["value"],
            round(row["timestamp"].timestamp() * 1000),
            [(pair["key"], pair["value"]) for pair in row["headers"] or ()],
        )
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize("way", ["network", "folder beside the network", "folder"])
def test_a_table_is_what_librdkafka_reads(served: tuple[str, Path], way: str) -> None:
    bootstrap, folder = served
    topic = f"tables-{uuid.uuid4().hex[:8]}"
    with logkernel.connect(bootstrap) as log:
        log.create_topic(topic, partitions=1)
    fill(bootstrap, topic)
    name = TopicPartition(topic, 0)
    if way == "folder" and not (folder / "control.sock").exists():
        pytest.skip("Apache Kafka tells its watermarks over the network alone")
    source = open_source(path=None if way == "network" else folder, bootstrap=None if way == "folder" else bootstrap)
    for level in ("read_uncommitted", "read_committed"):
        expected, _ = read(bootstrap, topic, level)
        assert len(expected) == {"read_uncommitted": 2621, "read_committed": 2560}[level]
        assert rows(source, name, level) == expected
    cuts = source.cuts(name, 0, 2600, 3)
    assert 1 <= len(cuts) <= 2
    source.close()


def test_a_folder_that_apache_kafka_left(apache_kafka: ModuleType, tmp_path: Path) -> None:
    server = apache_kafka.KafkaServer(tmp_path / "kafka", TRANSACTIONS)
    server.prepare()
    server.start()
    try:
        with logkernel.connect(server.bootstrap) as log:
            log.create_topic("left", partitions=1)
        fill(server.bootstrap, "left")
        expected = {level: read(server.bootstrap, "left", level)[0] for level in ("read_uncommitted", "read_committed")}
    finally:
        server.stop()
    source = open_source(path=server.data)
    name = TopicPartition("left", 0)
    for level, found in expected.items():
        assert [row for row in rows(source, name, level) if row[0] <= expected["read_uncommitted"][-1][0]] == found
