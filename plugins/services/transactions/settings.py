"""The broker settings that rule transactions, by Kafka's names and with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import fields, frozen

from ..whole_numbers import whole_number

NAMES: Final[Mapping[str, str]] = {
    "max_timeout_ms": "transaction.max.timeout.ms",
    "abort_interval_ms": "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "expiration_ms": "transactional.id.expiration.ms",
    "expiration_interval_ms": "transaction.remove.expired.transaction.cleanup.interval.ms",
    "offsets_partitions": "offsets.topic.num.partitions",
}


@frozen
class TransactionSettings:
    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000
    expiration_ms: int = 604_800_000
    expiration_interval_ms: int = 3_600_000
    offsets_partitions: int = 50

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> TransactionSettings:
        """From settings by Kafka's names; raises `ConfigError` for what is no whole number >= 1."""
        found: dict[str, int] = {}
        for attribute in fields(cls):
            name = NAMES[attribute.name]
            value = settings.get(name, attribute.default)
            found[attribute.name] = attribute.default if value is None else whole_number(name, value, 1)
        return cls(**found)
