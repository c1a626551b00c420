"""The isolation levels of reads, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logkernel.errors import ConfigError
from logkernel.vocabulary import READ_COMMITTED, READ_UNCOMMITTED

ISOLATION: Final[Mapping[str, int]] = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}


def isolation_level(name: str) -> int:
    """The protocol's number. Raises `ConfigError`."""
    try:
        return ISOLATION[name]
    except KeyError:
        raise ConfigError(f"isolation={name!r} is not known; use {' or '.join(ISOLATION)}") from None
