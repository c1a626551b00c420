"""The brokers of a cluster in this process, as a client in it reaches them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from logkernel.cluster.gate import Gate
from logkernel.cluster.loop_thread import LoopThread

T = TypeVar("T")


class ClientHost:
    """See `client.drivers.embedded_driver.Host`."""

    def __init__(self, thread: LoopThread, gate_of: Callable[[int], Gate]) -> None:
        self._thread = thread
        self._gate_of = gate_of

    def connect(self, node: int, lost: Callable[[], None]) -> Gate:
        gate = self._gate_of(node)
        gate.on_removed(lost)
        return gate

    def run(self, work: Callable[[], T]) -> T:
        return self._thread.run(work)

    def step(self) -> int | None:
        """The brokers' loop steps them."""
        return None

    def at(self, mono_ms: int, work: Callable[[], None]) -> Any:
        return self._thread.call_later(max(0.0, mono_ms / 1000 - time.monotonic()), work)
