"""Reads the broker's settings of groups: whole numbers, lists of names, and those that bound one another."""

from __future__ import annotations

from typing import Final

from logkernel.contracts import Settings
from logkernel.errors import ConfigError

from ..whole_numbers import whole_number
from .declared import BROKER_ROWS, GROUP_ROWS

DEFAULTS: Final = {row.name: row.default for row in BROKER_ROWS}
REMEDY: Final = "raise the one or lower the other"


def whole(settings: Settings, name: str) -> int:
    """Return a setting by its full name, its default where it is not set. Raises `ConfigError` for what is no whole
    number >= 0."""
    value = settings.get(name)
    return whole_number(name, DEFAULTS[name] if value is None else value, 0)


def names(settings: Settings, name: str) -> tuple[str, ...]:
    """Return a setting that is a list of names, its default where it is not set."""
    value = settings.get(name) or str(DEFAULTS[name])
    return tuple(value.split(",") if isinstance(value, str) else value)


def check_bounds(settings: Settings) -> None:
    """Check each setting that a group may have of its own as Kafka does at the start: the broker's lies within its min
    and max, and the heartbeat interval below the session timeout. Raises `ConfigError`."""
    for row in GROUP_ROWS:
        value = f"group.{row.name}"
        if row.between is not None:
            low, high = row.between
            if low:
                _check_order(settings, low, high)
                _check_order(settings, low, value)
            _check_order(settings, value, high)
        if row.above:
            _check_order(settings, f"group.{row.above}", value, equal=False)


def _check_order(settings: Settings, less: str, more: str, *, equal: bool = True) -> None:
    low, high = whole(settings, less), whole(settings, more)
    if low > high or (low == high and not equal):
        word = "less than or equal to" if equal else "less than"
        raise ConfigError(f"{less}={low} must be {word} {more}={high}; {REMEDY}")
