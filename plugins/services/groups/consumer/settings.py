"""The broker settings that rule KIP-848 groups, by Kafka's names and with Kafka's defaults.

What a group may have of its own is asked for when it is needed: `GroupCoordinator.own_ms`.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from logkernel.contracts import Settings
from logkernel.errors import ConfigError

PREFIX: Final = "group.consumer."
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
        """Raises `ConfigError` for what is wrong in itself or contradicts another setting."""
        session_ms = _bounded(settings, "session.timeout.ms", 45_000, 45_000, 60_000)
        heartbeat_ms = _bounded(settings, "heartbeat.interval.ms", 5_000, 5_000, 15_000)
        if heartbeat_ms >= session_ms:
            raise ConfigError(f"{PREFIX}heartbeat.interval.ms={heartbeat_ms} must be below the session timeout")
        _bounded(settings, "assignment.interval.ms", 1_000, 0, 15_000)
        assignors = settings.get(f"{PREFIX}assignors") or cls().assignors
        policy = str(settings.get(f"{PREFIX}migration.policy") or POLICIES[0]).lower()
        if policy not in POLICIES:
            raise ConfigError(f"{PREFIX}migration.policy={policy} is not known; use one of {', '.join(POLICIES)}")
        return cls(
            _whole(settings, "regex.refresh.interval.ms", 600_000),
            _whole(settings, "max.size", 2**31 - 1),
            tuple(assignors.split(",") if isinstance(assignors, str) else assignors),
            policy in ("bidirectional", "upgrade"),
            policy in ("bidirectional", "downgrade"),
        )


def _bounded(settings: Settings, name: str, default: int, low: int, high: int) -> int:
    value = _whole(settings, name, default)
    low, high = _whole(settings, f"min.{name}", low), _whole(settings, f"max.{name}", high)
    if not low <= value <= high:
        raise ConfigError(f"{PREFIX}{name}={value} is not between its min and max, {low} and {high}")
    return value


def _whole(settings: Settings, name: str, default: int) -> int:
    value: Any = settings.get(PREFIX + name)
    if value is None:
        return default
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{PREFIX}{name}={value!r} is not a whole number") from None
    if number < 0:
        raise ConfigError(f"{PREFIX}{name}={value!r} is below 0")
    return number
