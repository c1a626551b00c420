"""The broker on which Spark's two sources are held against each other, and how each reads a batch of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import logkernel

pyspark = pytest.importorskip("pyspark")
SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
"""Spark pushes filters down since 4.1, and has limits of triggers since 4.2."""
limits = pytest.mark.skipif(SPARK < (4, 2), reason="limits of triggers came with Spark 4.2")

TOPIC = "orders"
PARTITIONS = 3
BASE_MS = 1_700_000_000_000
TIMES = json.dumps({TOPIC: {"0": BASE_MS + 55, "1": BASE_MS, "2": BASE_MS + 1000}})
LATER = json.dumps({TOPIC: {"0": BASE_MS + 60, "1": BASE_MS + 800, "2": BASE_MS + 99_000}})


@frozen
class Cluster:
    bootstrap: str
    data: Path
    beside: dict[str, str]
    """What `path` needs to know the newest bounds: Apache Kafka's checkpoints are seconds old."""


SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "log.cleaner.backoff.ms": "100",
}
COMPACTING = {"cleanup.policy": "compact", "segment.ms": "300", "min.cleanable.dirty.ratio": "0.01"}


def serving(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with records of every shape: codecs, nulls, headers, transactions, times ten ms apart."""
    if request.param == "ours":
        start = request.getfixturevalue("start_module_broker")
        broker = start(*(part for name, text in SETTINGS.items() for part in ("--set", f"{name}={text}")))
        yield filled(Cluster(broker.bootstrap, broker.data, {}))
        return
    kafka = request.getfixturevalue("apache_kafka").KafkaServer(folders.mktemp("kafka"), SETTINGS)
    kafka.prepare()
    kafka.start()
    try:
        yield filled(Cluster(kafka.bootstrap, kafka.data, {"kafka.bootstrap.servers": kafka.bootstrap}))
    finally:
        kafka.stop()


def filled(broker: Cluster) -> Cluster:
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic(TOPIC, PARTITIONS, retention_ms=-1)
        log.create_topic("other", 1, retention_ms=-1)
    for number, codec in enumerate(("none", "lz4", "zstd")):
        produce(broker.bootstrap, TOPIC, number, range(200), codec)
    produce(broker.bootstrap, "other", 0, range(20), "gzip")
    transact(broker.bootstrap, TOPIC, 2, "commit", range(200, 210))
    transact(broker.bootstrap, TOPIC, 2, "abort", range(210, 220))
    return broker


def produce(bootstrap: str, topic: str, partition: int, numbers: range, codec: str = "none") -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "batch.num.messages": 50})
    send(producer, topic, partition, numbers)
    assert producer.flush(180) == 0


def transact(bootstrap: str, topic: str, partition: int, end: str, numbers: range) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"spark-{end}"})
    producer.init_transactions(180)
    producer.begin_transaction()
    send(producer, topic, partition, numbers)
    producer.flush(180)
    if end == "commit":
        producer.commit_transaction(180)
    else:
        producer.abort_transaction(180)


def send(producer: Any, topic: str, partition: int, numbers: range) -> None:
    for number in numbers:
        producer.produce(
            topic,
            None if number % 7 == 3 else json.dumps({"id": number, "name": f"n{number}"}).encode(),
            None if number % 5 == 2 else b"k%d" % number,
            partition=partition,
            headers=[("a", b"1"), ("a", None)] if number % 3 == 0 else [],
            timestamp=BASE_MS + number * 10,
        )


def by_kafka(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("kafka").options(**{"kafka.bootstrap.servers": cluster.bootstrap, **given}).load()


def by_path(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("logkernel").options(**{**cluster.beside, **given}).load(str(cluster.data))


def by_network(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    return spark.read.format("logkernel").options(**{"kafka.bootstrap.servers": cluster.bootstrap, **given}).load()


OURS = pytest.mark.parametrize("read", [by_path, by_network], ids=["path", "bootstrap"])


def rows(frame: Any) -> list[Any]:
    """All of a frame, sorted by place."""
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


_judged: dict[str, Any] = {}


def judged(spark: Any, cluster: Cluster, given: dict[str, str]) -> Any:
    """What the connector reads, asked once for both of ours."""
    name = json.dumps([cluster.bootstrap, given])
    if name not in _judged:
        frame = by_kafka(spark, cluster, given)
        _judged[name] = (frame.schema, rows(frame))
    return _judged[name]


def compacted(cluster: Cluster, topic: str, eventually: Any) -> None:
    """A topic of 100 records, of which those at 3, 50, 51, 52 and 99 are left, and of some behind them."""
    from confluent_kafka import Producer

    with logkernel.connect(cluster.bootstrap) as log:
        log.create_topic(topic, 1, config=COMPACTING)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "batch.num.messages": 10})

        def append(number: int, key: bytes) -> None:
            time_ms = BASE_MS + number * 10
            producer.produce(topic, b"%d" % number, key, partition=0, timestamp=time_ms)

        for number in range(100):
            append(number, b"%d" % number if number in (3, 50, 51, 52) else b"often")

        later = count(100, 40)

        def small() -> bool:
            append(next(later), b"last")  # closes a segment: its time is 300 ms and more behind
            assert producer.flush(180) == 0
            keys: list[Any] = log.table(topic, columns=["key"]).read_all()["key"].to_pylist()
            return keys.count(b"often") == 1

        eventually(small, 240, "compaction")


def delete_before(bootstrap: str, topic: str, offset: int, partition: int = 0) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, partition, offset)]).values():
        future.result(180)
