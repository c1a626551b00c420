"""Settings of services that are whole numbers."""

from __future__ import annotations

from typing import Any

from logkernel.errors import ConfigError


def whole_number(name: str, value: Any, least: int) -> int:
    """Return the value of a setting as a number. Raises `ConfigError` for what is none, or is below `least`."""
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name}={value!r} is not a whole number; give one, at least {least}") from None
    if number < least:
        raise ConfigError(f"{name}={value!r} is below {least}; give a whole number, at least {least}")
    return number
