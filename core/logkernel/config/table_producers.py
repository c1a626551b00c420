"""Broker settings of the producer ids and transactions that a partition knows."""

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
        "Time in ms that a partition remembers a producer's sequence after its last write.",
        dynamic=True,
    ),
    Setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        "600000",
        POSITIVE,
        "Time in ms between checks for expired producers.",
        internal=True,
    ),
    Setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        "true",
        None,
        "Verify with the coordinator that a partition belongs to a transaction, before the first write to it.",
        dynamic=True,
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        "20",
        POSITIVE,
        "Time in ms before a write retries a coordinator that is busy with the previous transaction.",
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        "100",
        None,
        "Total time in ms of such retries.",
    ),
)
