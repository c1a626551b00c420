"""The table of the admin client's settings; see `client.settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from logkernel.attrs_lite import evolve
from logkernel.client.settings.table import COMMON, NOT_HERE, ClientSetting, load_table, row
from logkernel.config.values import INT, Between

_NOT_ADMIN: Final = frozenset(
    {"metric.reporters", "metrics.num.samples", "metrics.sample.window.ms", "metrics.recording.level"}
)


def _common(setting: ClientSetting) -> ClientSetting:
    if setting.name == "connections.max.idle.ms":
        return evolve(setting, default=300_000)
    return evolve(setting, default=65_536) if setting.name == "receive.buffer.bytes" else setting


ADMIN: Final = (
    *(_common(setting) for setting in COMMON if setting.name not in _NOT_ADMIN),
    row(
        "default.api.timeout.ms",
        INT,
        60_000,
        Between(0),
        "Time limit of an operation in ms, with all its attempts; `within` sets another one.",
    ),
)


def load_admin(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of an admin client by Kafka's names, typed. Raises `ConfigError` with the remedy."""
    values, _ = load_table("admin client", ADMIN, given, {}, NOT_HERE)
    return values
