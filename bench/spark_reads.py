"""Spark reads topics: whole, by column, by filter, as a stream, and how long a record takes to get there.

A read ends in Spark's `noop` sink: every row is made, none is kept.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Collection
from functools import partial
from typing import Any

from clients import create_topic, payloads
from server import Server
from spark_rig import CONNECTOR, LATENCY, NETWORK, PARTITIONS, PATH, Rig

EVERYONE = (PATH, NETWORK, CONNECTOR)
LATENCY_RECORDS = 150
LATENCY_PAUSE_S = 0.05
LATENCY_WAIT_S = 120.0


def fill(server: Server, topic: str, partitions: int, size: int, count: int, codec: str = "none") -> None:
    from confluent_kafka import Producer

    create_topic(server.bootstrap, topic, partitions)
    settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 20, "batch.num.messages": 10_000}
    producer = Producer({**settings, "queue.buffering.max.messages": 200_000, "compression.type": codec})
    values = payloads(size)
    for number in range(count):
        while True:
            try:
                producer.produce(topic, values[number % len(values)], partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(600):
        raise RuntimeError(f"{topic}: records were not delivered")


def fill_for(server: Server, measures: Collection[str], small: int, large: int) -> None:
    """The topics that these measures read, the same on every broker."""
    if {"reads", "filters", "streams"} & set(measures):
        fill(server, "small", PARTITIONS, 100, small)
    if "splits" in measures:
        fill(server, "one", 1, 100, small // 2)
    if "reads" in measures:
        fill(server, "large", PARTITIONS, 1000, large)
        for codec in ("lz4", "zstd"):
            fill(server, f"small-{codec}", PARTITIONS, 100, small // 2, codec)


def warm_up(rig: Rig, measures: Collection[str]) -> None:
    """A JVM compiles what is hot, and workers load what they need. Twice, or whoever comes first pays for all."""
    topic = "small" if {"reads", "filters", "streams"} & set(measures) else "one"
    if topic == "small" or "splits" in measures:
        columns = rig.columns(PATH, NETWORK, CONNECTOR) if topic == "small" else [PATH, NETWORK]
        for column in columns + columns[::-1]:
            frame(rig, column, topic).write.format("noop").mode("overwrite").save()
    if "streams" in measures:
        for column in rig.columns(*EVERYONE):
            stream_through(rig, column)


def options(rig: Rig, column: str, topic: str) -> dict[str, str]:
    """`startingOffsets` is what streams begin with as well."""
    given = {"subscribe": topic, "startingOffsets": "earliest"}
    if column == PATH:
        given["path"] = str(rig.ours.data)
    else:
        given["kafka.bootstrap.servers"] = rig.server(column).bootstrap
    if column != CONNECTOR and rig.arguments.batch_bytes:
        given["batchBytes"] = str(rig.arguments.batch_bytes)
    return given


def frame(rig: Rig, column: str, topic: str, **more: str) -> Any:
    reader = rig.spark.read.format("kafka" if column == CONNECTOR else "logkernel")
    return reader.options(**options(rig, column, topic), **more).load()


def scan(rig: Rig, row: str, column: str, rows: int, found: Any) -> None:
    rig.measure(row, column, rows, lambda: found.write.format("noop").mode("overwrite").save())


def reads(rig: Rig) -> None:
    small, large = rig.arguments.small, rig.arguments.large
    whole = (
        ("100 B", "small", small),
        ("1 KB", "large", large),
        ("100 B, lz4", "small-lz4", small // 2),
        ("100 B, zstd", "small-zstd", small // 2),
    )
    for name, topic, rows in whole:
        for column in rig.columns(*EVERYONE):
            scan(rig, f"read, {name}", column, rows, frame(rig, column, topic))
    for name, topic, rows in whole[:2]:
        for column in rig.columns(*EVERYONE):
            only = {} if column == CONNECTOR else {"columns": "value"}
            scan(rig, f"read value, {name}", column, rows, frame(rig, column, topic, **only).select("value"))


def splits(rig: Rig) -> None:
    rows = rig.arguments.small // 2
    for column in rig.columns(PATH, NETWORK):
        with rig.one_core():
            scan(rig, "one partition, 1 core", column, rows, frame(rig, column, "one", minPartitions="1"))
        for tasks in (1, 2):
            name = f"one partition, {tasks} task{'s' * (tasks > 1)}"
            scan(rig, name, column, rows, frame(rig, column, "one", minPartitions=str(tasks)))


def filters(rig: Rig) -> None:
    """About 2 % of the records: by offset of every partition, and by the times of two records."""
    every = rig.arguments.small // PARTITIONS
    first, behind = every // 2, every // 2 + every // 50
    edges = frame(rig, PATH, "small", columns="partition,offset,timestamp")
    rows = edges.where(f"partition = 0 and offset in ({first}, {behind})").collect()
    low, high = sorted(int(row.timestamp.timestamp() * 1000) for row in rows)
    by_time = f"timestamp >= timestamp_millis({low}) and timestamp < timestamp_millis({max(high, low + 1)})"
    for column in rig.columns(PATH, NETWORK):
        for name, text in (("offsets", f"offset >= {first} and offset < {behind}"), ("times", by_time)):
            part = frame(rig, column, "small").where(text)
            scan(rig, f"{name} of 2 %", column, rig.arguments.small // 50, part)


def streams(rig: Rig) -> None:
    """AvailableNow in four triggers: a partition's share of a limit is rounded down, by either source."""
    for column in rig.columns(*EVERYONE):
        rig.measure("stream, 100 B", column, rig.arguments.small, partial(stream_through, rig, column))


def stream_through(rig: Rig, column: str) -> None:
    reader = rig.spark.readStream.format("kafka" if column == CONNECTOR else "logkernel")
    most = rig.arguments.small // 4 + 2 * PARTITIONS
    found = reader.options(**options(rig, column, "small"), maxOffsetsPerTrigger=str(most)).load()
    with tempfile.TemporaryDirectory() as folder:
        writer = found.writeStream.format("noop").trigger(availableNow=True)
        writer.option("checkpointLocation", folder).start().awaitTermination()


def latency(rig: Rig) -> None:
    """From `produce` to where `foreachBatch` has the row: triggers follow one another as fast as they can."""
    for column in rig.columns(*EVERYONE):
        topic = f"latency-{column}-{rig.turn}"
        create_topic(rig.server(column).bootstrap, topic, PARTITIONS)
        rig.measure(LATENCY, column, LATENCY_RECORDS, lambda column=column, topic=topic: _p50_s(rig, column, topic))


def _p50_s(rig: Rig, column: str, topic: str) -> float:
    from confluent_kafka import Producer

    took_ns: list[int] = []
    came = threading.Event()

    def batch(found: Any, number: int) -> None:
        rows = found.select("value").collect()
        now_ns = time.perf_counter_ns()
        took_ns.extend(now_ns - int(row.value) for row in rows)
        came.set()

    producer = Producer({"bootstrap.servers": rig.server(column).bootstrap, "linger.ms": 0})
    reader = rig.spark.readStream.format("kafka" if column == CONNECTOR else "logkernel")
    stream = reader.options(**options(rig, column, topic)).load().writeStream.foreachBatch(batch)
    with tempfile.TemporaryDirectory() as folder:
        query = stream.trigger(processingTime="0 seconds").option("checkpointLocation", folder).start()
        try:
            producer.produce(topic, str(time.perf_counter_ns()), partition=0)  # the first batch warms up
            producer.flush(30)
            _await(came)
            took_ns.clear()
            for number in range(LATENCY_RECORDS):
                producer.produce(topic, str(time.perf_counter_ns()), partition=number % PARTITIONS)
                producer.poll(0)
                time.sleep(LATENCY_PAUSE_S)
            producer.flush(30)
            while len(took_ns) < LATENCY_RECORDS:
                came.clear()
                if len(took_ns) < LATENCY_RECORDS:
                    _await(came)
        finally:
            query.stop()
    return statistics.median(took_ns) / 1e9


def _await(came: threading.Event) -> None:
    if not came.wait(LATENCY_WAIT_S):
        raise TimeoutError("no batch")
