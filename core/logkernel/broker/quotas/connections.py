"""How fast connections may come: broker-wide, to a listener, and from an address (KIP-612).

A connection that comes too fast for the broker or its listener waits, and with it those that come after it to the same
listener. One that comes too fast from its address is closed, after a while. Nothing waits longer than one sample.
"""

from __future__ import annotations

from logkernel.broker.quotas.limits import AddressLimits, Quotas, plain_address
from logkernel.broker.quotas.windows import Meters, Rate, Window
from logkernel.contracts import ADMITTED, Admission


class ConnectionRates:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._broker = Rate()
        self._listeners: dict[str, Rate] = {}
        self._addresses: Meters[Rate] = Meters(Rate)
        self.limits = AddressLimits({}, "")

    def configure(self, quotas: Quotas) -> None:
        self.limits = AddressLimits(quotas, "connection_creation_rate")

    def admit(
        self, listener: str, host: str, now_ms: int, broker_rate: int | None, listener_rate: int | None
    ) -> Admission:
        """A connection from `host` came to `listener`, or has its turn. The rates are connections a second, None for
        any."""
        wait_ms = 0
        if broker_rate is not None:
            wait_ms = self._use(self._broker, broker_rate, now_ms)
        if listener_rate is not None:
            rate = self._listeners.setdefault(listener, Rate())
            wait_ms = max(wait_ms, self._use(rate, listener_rate, now_ms))
        close_ms = self._of_address(host, now_ms) if self.limits else -1
        return Admission(wait_ms, close_ms) if wait_ms or close_ms >= 0 else ADMITTED

    def _of_address(self, host: str, now_ms: int) -> int:
        address = plain_address(host)
        quota = self.limits.of(address)
        if quota is None:
            return -1
        rate = self._addresses.of(address, now_ms, self._window.span_ms)
        close_ms = self._use(rate, quota, now_ms)
        if not close_ms:
            return -1
        rate.record(-1, now_ms, self._window)  # those that are closed do not count
        return close_ms

    def _use(self, rate: Rate, quota: float, now_ms: int) -> int:
        rate.record(1, now_ms, self._window)
        return min(rate.throttle_ms(quota, now_ms, self._window), self._window.size_ms)
