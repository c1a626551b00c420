"""The topic __consumer_offsets and its settings. Consumer groups and share groups keep their state in it, and offsets
that are committed with a transaction make it part of the transaction: each of the three services declares it, so that
any of them can be replaced or blocked alone."""

from __future__ import annotations

from typing import Final

from logkernel.config.definitions import Setting
from logkernel.config.values import INT, SHORT, Between
from logkernel.contracts import ServiceTopic
from logkernel.requests.sharding import GROUP_TOPIC

POSITIVE: Final = Between(1)


class _Codec:
    """A codec by its number in a batch's attributes."""

    def __call__(self, value: int) -> None:
        if not 0 <= value <= 4:
            raise ValueError(f"Value must be {self}")

    def __str__(self) -> str:
        return "one of 0, 1, 2, 3, 4"


TOPIC: Final = ServiceTopic(
    name=GROUP_TOPIC,
    partitions_setting="offsets.topic.num.partitions",
    config={"cleanup.policy": "compact", "compression.type": "producer"},
    replication_setting="offsets.topic.replication.factor",
    config_settings={"segment.bytes": "offsets.topic.segment.bytes"},
    written_by=("__admin_client",),
    commit_timeout_setting="offsets.commit.timeout.ms",
)

SETTINGS: Final = (
    Setting(
        "offsets.commit.timeout.ms",
        INT,
        "5000",
        POSITIVE,
        "Time in ms that commits, and what else is written to __consumer_offsets, wait for the replicas.",
    ),
    Setting(
        "offsets.topic.compression.codec",
        INT,
        "0",
        _Codec(),
        "Codec id of Kafka's commits; without effect: what is written to __consumer_offsets is not compressed.",
        inert=True,
    ),
    Setting(
        "offsets.topic.num.partitions",
        INT,
        "50",
        POSITIVE,
        "Partitions of __consumer_offsets; do not change it later.",
    ),
    Setting(
        "offsets.topic.replication.factor",
        SHORT,
        "3",
        POSITIVE,
        "Replicas of __consumer_offsets; at most the number of brokers.",
    ),
    Setting("offsets.topic.segment.bytes", INT, "104857600", POSITIVE, "segment.bytes of __consumer_offsets."),
)
