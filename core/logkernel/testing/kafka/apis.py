"""The names of Kafka's APIs, as a test writes them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from logkernel.config.nearest import nearest
from logkernel.errors import ConfigError
from logkernel.plugins.transport.tcp import registry

APIS: Final = tuple(row.name for row in registry.ROWS)


def check_api(api: str, known: Collection[str] = APIS) -> None:
    """Raises `ConfigError` for a name that is none of them."""
    if api not in known:
        near = nearest(api, known)
        hint = f"did you mean {near!r}?" if near else "use Kafka's names, e.g. Produce"
        raise ConfigError(f"there is no API {api!r}; {hint}")
