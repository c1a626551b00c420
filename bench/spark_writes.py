"""Spark writes to topics: ours, at least and exactly once, and its own connector on Apache Kafka.

Rows lie in Spark's memory; a write ends when all are acknowledged. Exactly once is a job with a `jobId`: a transaction
a task, and a decision. Each is done twice, and the second counts: who comes after another kind pays for classes,
workers and caches that went cold, and in a virtual machine for memory that its host had taken back, up to half of all.
"""

from __future__ import annotations

import uuid
from typing import Any

from clients import create_topic, delete_topic, wait_for_logs
from spark_rig import CONNECTOR, NETWORK, PARTITIONS, Rig


def rows(spark: Any, size: int, count: int) -> Any:
    """A DataFrame of keys and values that is kept in memory."""
    key = "concat('k', id % 100000)"
    frame = spark.range(0, count, 1, 2).selectExpr(
        f"{key} AS key", f"substr(repeat(sha2(string(id), 256), 16), 1, {size}) AS value"
    )
    frame = frame.selectExpr("CAST(key AS binary) AS key", "CAST(value AS binary) AS value").persist()
    frame.count()
    return frame


def writes(rig: Rig) -> None:
    for name, size, count in (
        ("100 B", 100, rig.arguments.small * 2 // 5),
        ("1 KB", 1000, rig.arguments.large // 2),
    ):
        frame = rows(rig.spark, size, count)
        for column in rig.columns(NETWORK, CONNECTOR):
            for once in (False, True) if column == NETWORK else (False,):
                for keep in (False, True):
                    _write(rig, f"write{' once' * once}, {name}", column, frame, count, once, keep)
        frame.unpersist()


def _write(rig: Rig, row: str, column: str, frame: Any, count: int, once: bool = False, keep: bool = True) -> None:
    bootstrap, topic = rig.server(column).bootstrap, f"t-{uuid.uuid4()}"
    create_topic(bootstrap, topic, PARTITIONS)
    wait_for_logs(bootstrap, topic, PARTITIONS)
    made = frame.write.format("kafka" if column == CONNECTOR else "logkernel").mode("append")
    made = made.option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    if once:
        made = made.option("jobId", str(uuid.uuid4()))
    rig.measure(row, column, count, made.save, keep)
    delete_topic(bootstrap, topic)
