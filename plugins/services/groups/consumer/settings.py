"""The broker settings that rule KIP-848 groups, by Kafka's names and with Kafka's defaults.

What a group may have of its own is asked for when it is needed: `GroupCoordinator.own_ms`.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from logkernel.contracts import Settings
from logkernel.errors import ConfigError

from ..bounds import names, whole

POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")


@frozen
class ConsumerSettings:
    regex_refresh_interval_ms: int = 600_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first is for groups whose members name none."""
    upgrades: bool = True
    """A classic group becomes a consumer group when a consumer joins it."""
    downgrades: bool = True
    """A consumer group becomes a classic one when its last consumer leaves."""

    @classmethod
    def read(cls, settings: Settings) -> ConsumerSettings:
        """Raises `ConfigError` for what is wrong in itself."""
        policy = str(settings.get("group.consumer.migration.policy") or POLICIES[0]).lower()
        if policy not in POLICIES:
            raise ConfigError(
                f"group.consumer.migration.policy={policy} is not known; use one of {', '.join(POLICIES)}"
            )
        return cls(
            whole(settings, "group.consumer.regex.refresh.interval.ms"),
            whole(settings, "group.consumer.max.size"),
            names(settings, "group.consumer.assignors"),
            policy in ("bidirectional", "upgrade"),
            policy in ("bidirectional", "downgrade"),
        )
