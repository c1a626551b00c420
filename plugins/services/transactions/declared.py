"""The broker settings of transactions."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import Setting
from logkernel.config.values import BOOLEAN, INT, SHORT, Between

from ..offsets_topic import SETTINGS as OFFSETS_TOPIC_SETTINGS

POSITIVE: Final = Between(1)

BROKER_ROWS: Final = (
    Setting(
        "transaction.max.timeout.ms", INT, "900000", POSITIVE, "Longest timeout in ms that a transaction may ask for."
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        "10000",
        POSITIVE,
        "Time in ms between checks for transactions that timed out.",
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        POSITIVE,
        "Time in ms between checks for expired transactional ids.",
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        "false",
        None,
        "Two-phase commit by an external coordinator (KIP-939); without effect: producers that ask for it are refused.",
        inert=True,
    ),
    Setting(
        "transaction.state.log.load.buffer.size",
        INT,
        "5242880",
        POSITIVE,
        "Bytes that Kafka reads at a time when states are loaded; stored and described, without effect.",
        inert=True,
    ),
    Setting("transaction.state.log.min.isr", INT, "2", POSITIVE, "min.insync.replicas of __transaction_state."),
    Setting("transaction.state.log.num.partitions", INT, "50", POSITIVE, "Partitions of __transaction_state."),
    Setting(
        "transaction.state.log.replication.factor",
        SHORT,
        "3",
        POSITIVE,
        "Replicas of __transaction_state; at most the number of brokers.",
    ),
    Setting("transaction.state.log.segment.bytes", INT, "104857600", POSITIVE, "segment.bytes of __transaction_state."),
    Setting(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        POSITIVE,
        "Time in ms that a transactional id is remembered after its last transaction.",
    ),
)

SETTINGS: Final = (*BROKER_ROWS, *OFFSETS_TOPIC_SETTINGS)
