"""Settings that one consumer group of the new protocol may have of its own (KIP-848). Those of share groups stand in
`table_share`."""

from __future__ import annotations

from typing import Final

from logkernel.config import table_share
from logkernel.config.definitions import Setting
from logkernel.config.table_topic import POSITIVE
from logkernel.config.values import INT, Between


def _row(name: str, default: str, low: Between, doc: str) -> Setting:
    return Setting(
        f"consumer.{name}", INT, default, low, doc, scope=table_share.GROUP, synonyms=(f"group.consumer.{name}",),
        dynamic=True,
    )  # fmt: skip


ROWS: Final = (
    _row("session.timeout.ms", "45000", POSITIVE, "Without a heartbeat for so long, a member is gone."),
    _row("heartbeat.interval.ms", "5000", POSITIVE, "How often members send heartbeats."),
    _row("assignment.interval.ms", "1000", Between(0), "Shortest time between two assignments of the group."),
)


def _bound(row: Setting, which: str) -> str:
    return row.synonyms[0].replace("group.consumer.", f"group.consumer.{which}.")


BOUNDS: Final = {**table_share.BOUNDS, **{row.name: (_bound(row, "min"), _bound(row, "max")) for row in ROWS}}
"""A group's setting → the broker settings that bound it."""

ORDER: Final = tuple((f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms") for kind in ("consumer", "share"))
"""(setting, the one that it must be above)."""
