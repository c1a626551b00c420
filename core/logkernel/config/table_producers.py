"""Broker settings of what a partition knows of its producers: their ids, and the transactions that they write in."""

from __future__ import annotations

from logkernel.config.definitions import Setting
from logkernel.config.table_topic import POSITIVE
from logkernel.config.values import BOOLEAN, INT

ROWS: tuple[Setting, ...] = (
    Setting(
        "producer.id.expiration.ms",
        INT,
        "86400000",
        POSITIVE,
        "How long a partition remembers a producer's sequence after its last write.",
        dynamic=True,
    ),
    Setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        "600000",
        POSITIVE,
        "How often partitions are looked through for producers to forget.",
    ),
    Setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        "true",
        None,
        "Ask the coordinator whether a partition belongs to a transaction before its first write.",
        dynamic=True,
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        "20",
        POSITIVE,
        "How long a write waits before it asks again for a coordinator that is busy with the transaction before.",
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        "100",
        None,
        "How long a write asks again for such a coordinator, in all.",
    ),
)
