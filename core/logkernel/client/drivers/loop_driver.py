"""An event loop that steps a client: over the channels of a transport, or an embedded kernel in a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from logkernel.client.cluster.calls import earliest
from logkernel.client.drivers.driver import NEVER_MS, Driver, Machine, Pending, Wake, mono_ms
from logkernel.client.drivers.embedded_driver import EmbeddedDriver, Host
from logkernel.client.settings.table import channel_settings
from logkernel.kernel import Kernel
from logkernel.peer.loop_channels import LoopChannels
from logkernel.peer.network import Action


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class LoopDriver(Driver):
    """Over a transport, on the running loop; used from that loop alone."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any], kernel: Kernel, transport: str) -> None:
        super().__init__(machine, settings)
        of_channels = channel_settings(settings)
        self._channels = LoopChannels(
            machine.core.network, kernel.transport(transport), lambda node: of_channels, self._happened
        )
        self._loop = asyncio.get_running_loop()
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None

    def waker(self, future: asyncio.Future[None]) -> Wake:
        return lambda: _wake(future)

    # ------------------------------------------------------------ turns

    def wake(self) -> None:
        if self._soon is None and not self.closed:
            self._soon = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._soon = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.closed:
            return
        next_ms = self.turn()
        if next_ms is not None:
            self._timer = self._loop.call_later(max(0, next_ms - mono_ms()) / 1000, self._turn)

    def _happened(self, event: Callable[[int], None]) -> None:
        self._events.append(event)
        self.wake()

    def perform(self, action: Action) -> None:
        self._channels.perform(action)

    # ------------------------------------------------------------ the end

    async def end(self, deadline_s: float | None) -> None:
        """Send what is left until `deadline_s`, then close the connections."""
        await _finish(self, deadline_s)
        self.closed = True
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        self._channels.close()
        await asyncio.sleep(0)


class AsyncEmbeddedDriver(EmbeddedDriver):
    """Over an embedded kernel: turns run in a worker thread, one at a time, as all calls of an `AsyncLog`."""

    def __init__(
        self,
        machine: Machine,
        settings: Mapping[str, Any],
        host: Host,
        call: Callable[[Callable[[], Any]], Awaitable[Any]],
    ) -> None:
        super().__init__(machine, settings, host)
        self._loop = asyncio.get_running_loop()
        self._call = call
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._later: asyncio.TimerHandle | None = None

    def waker(self, future: asyncio.Future[None]) -> Wake:
        def wake() -> None:
            self._loop.call_soon_threadsafe(_wake, future)

        return wake

    def gather(self, size: int, linger_ms: int, hurry: bool) -> int:
        self.wake()  # the loop's timers keep the time
        return NEVER_MS

    def wake(self) -> None:
        self._again = True
        if self._task is None and not self.closed:
            self._task = self._loop.create_task(self._turns())

    async def _turns(self) -> None:
        try:
            while self._again and not self.closed:
                self._again = False
                await self._call(lambda: self._host.run(self._turn))
        finally:
            self._task = None

    def _turn(self) -> None:
        super()._turn()
        # What the kernel has parked (a fetch that waits for records, a join) is answered by its own timers.
        next_ms = earliest(self._next_ms, self._host.step())
        if next_ms is not None and not self.closed:
            self._loop.call_soon_threadsafe(self._wake_later, max(0.0, (next_ms - mono_ms()) / 1000))

    def _wake_later(self, delay_s: float) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = None if self.closed else self._loop.call_later(delay_s, self.wake)

    async def end(self, deadline_s: float | None) -> None:  # type: ignore[override]
        """Send what is left until `deadline_s`."""
        await _finish(self, deadline_s)
        self.closed = True
        if self._later is not None:
            self._later.cancel()
        if self._task is not None:
            await self._task  # callbacks may still be under way in its thread


async def _finish(driver: Any, deadline_s: float | None) -> None:
    if not driver.closed:
        await wait_until(driver, lambda: not driver.machine.busy, deadline_s)
    driver.abandon()


async def wait_until(driver: Any, ready: Callable[[], bool], deadline_s: float | None, under_way: bool = False) -> bool:
    """Wait until `ready()` holds after a turn, or the monotonic `deadline_s`; whether it came."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    wake = driver.waker(future)
    with driver.lock:
        if driver.watch(ready, wake):
            return True
    if not under_way:
        driver.wake()
    try:
        return await _until(future, deadline_s) or ready()
    finally:
        driver.unwatch(wake)


async def wait_outcome(driver: Any, pending: Pending, deadline_s: float | None) -> bool:
    """Wait for an outcome, or the monotonic `deadline_s`; whether it came."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    if driver.watch_outcome(pending, driver.waker(future)):
        return True
    driver.wake()
    return await _until(future, deadline_s)


async def _until(future: asyncio.Future[None], deadline_s: float | None) -> bool:
    try:
        async with asyncio.timeout_at(_loop_time(deadline_s)):
            await future
    except TimeoutError:
        return False
    return True


def _loop_time(deadline_s: float | None) -> float | None:
    """A monotonic deadline on the loop's own clock."""
    import time

    return None if deadline_s is None else asyncio.get_running_loop().time() + max(0.0, deadline_s - time.monotonic())
