"""Quota `rate`: a topic's clients together write and read at most so many bytes a second, on each broker.

    setting                             limits
    produce.quota.bytes.per.second      what is written to the topic's partitions that a broker leads
    fetch.quota.bytes.per.second        what consumers read of them

A bucket holds what one second allows: so much passes at once. Whoever takes more is held back until the bucket is full
again by as much as was taken too much, as Kafka does by client: the sum keeps to the rate, whatever single requests do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import LONG, Between, Either
from logkernel.contracts import Quota, Usage
from logkernel.hookspecs import hookimpl

PRODUCE = "produce.quota.bytes.per.second"
FETCH = "fetch.quota.bytes.per.second"
UNLIMITED = -1
BURST_MS = 1_000


class Bucket:
    """Time-stamped debt: `paid_ms` is when all that was taken is paid for."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._paid_ms = float("-inf")

    def take(self, size: int, mono_ms: int) -> int:
        """Return for how many ms whoever takes `size` bytes is to wait afterwards."""
        if self._bytes_per_s == UNLIMITED:
            return 0
        self._paid_ms = max(self._paid_ms, mono_ms - BURST_MS) + size * 1000 / self._bytes_per_s
        return max(0, int(self._paid_ms - mono_ms))


class Rate:
    """`contracts.Quota`."""

    def __init__(self, produce_bytes_per_s: int, fetch_bytes_per_s: int) -> None:
        self._written = Bucket(produce_bytes_per_s)
        self._read = Bucket(fetch_bytes_per_s)

    def throttle(self, usage: Usage) -> int:
        if usage.written:
            return self._written.take(usage.written, usage.mono_ms)
        return self._read.take(usage.read, usage.mono_ms)


@hookimpl
def logkernel_quota(name: str, settings: Mapping[str, Any]) -> Quota | None:
    if name != "rate":
        return None
    return Rate(settings.get(PRODUCE, UNLIMITED), settings.get(FETCH, UNLIMITED))


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("quota", "rate")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    limit = Either(UNLIMITED, Between(1))
    return [
        Setting(
            PRODUCE, LONG, str(UNLIMITED), limit,
            "With quotas=rate, bytes a second that clients together may write to the topic on each broker; -1 is no"
            " limit.", scope=TOPIC, own=True,
        ),
        Setting(
            FETCH, LONG, str(UNLIMITED), limit,
            "With quotas=rate, bytes a second that consumers together may read of the topic from each broker; -1 is no"
            " limit.", scope=TOPIC, own=True,
        ),
    ]  # fmt: skip
