"""The broker settings that rule groups, by Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from logkernel.contracts import Settings

from .bounds import check_bounds, names, whole
from .consumer.settings import ConsumerSettings

NAMES: Final[Mapping[str, str]] = {
    "min_session_timeout_ms": "group.min.session.timeout.ms",
    "max_session_timeout_ms": "group.max.session.timeout.ms",
    "initial_rebalance_delay_ms": "group.initial.rebalance.delay.ms",
    "max_size": "group.max.size",
    "streams_max_size": "group.streams.max.size",
    "offset_metadata_max_bytes": "offset.metadata.max.bytes",
    "retention_minutes": "offsets.retention.minutes",
    "retention_check_interval_ms": "offsets.retention.check.interval.ms",
}


@frozen
class GroupSettings:
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2**31 - 1
    streams_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    retention_minutes: int = 10_080
    retention_check_interval_ms: int = 600_000
    consumer: ConsumerSettings = field(factory=ConsumerSettings)
    task_assignors: tuple[str, ...] = ("sticky",)
    """Of Streams groups; the first is for groups that choose none."""

    @property
    def retention_ms(self) -> int:
        return self.retention_minutes * 60_000

    @classmethod
    def read(cls, settings: Settings) -> GroupSettings:
        """From settings by Kafka's names. Raises `ConfigError` for what is no whole number >= 0, and for settings that
        contradict one another."""
        check_bounds(settings)
        found = {attribute: whole(settings, name) for attribute, name in NAMES.items()}
        assignors = names(settings, "group.streams.assignors")
        return cls(**found, consumer=ConsumerSettings.read(settings), task_assignors=assignors)
