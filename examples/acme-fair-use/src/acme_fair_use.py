"""Quota `fair-use`: each client may write so many batches to a topic in a minute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import INT, Between
from logkernel.contracts import Quota, Usage
from logkernel.hookspecs import hookimpl

BATCHES = "acme.fair.batches.per.minute"
MINUTE_MS = 60_000


class FairUse:
    """`logkernel.contracts.Quota`; one object for each topic. What it remembers, it forgets every minute."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._minute = 0
        self._written: dict[str, int] = {}
        """Client id → batches of this minute."""

    def throttle(self, usage: Usage) -> int:
        if not usage.written or usage.client.internal:
            return 0
        minute, passed_ms = divmod(usage.mono_ms, MINUTE_MS)
        if minute != self._minute:
            self._minute = minute
            self._written.clear()
        client_id = usage.client.client_id or ""
        self._written[client_id] = self._written.get(client_id, 0) + 1
        return MINUTE_MS - passed_ms if self._written[client_id] >= self._batches else 0


@hookimpl
def logkernel_quota(name: str, settings: Mapping[str, Any]) -> Quota | None:
    return FairUse(settings[BATCHES]) if name == "fair-use" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("quota", "fair-use")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    doc = "Batches that a client may write to the topic on each broker in a minute."
    return [Setting(BATCHES, INT, "600", Between(1), doc, scope=TOPIC)]
