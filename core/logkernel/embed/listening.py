"""The event loop, in a thread, that owns the broker of an embedded log while it listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from logkernel.broker.broker import Broker
from logkernel.broker.loop_calls import call_on
from logkernel.broker.serve import Server, new_event_loop
from logkernel.config.listeners import address

T = TypeVar("T")


class Listening:
    """The event loop, in a thread, that owns the broker while it listens."""

    def __init__(self, broker: Broker, name: str, host: str, port: int) -> None:
        self._broker = broker
        self._started: Future[str] = Future()
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._thread = threading.Thread(
            target=self._main, args=(name, host, port), name="logkernel-listen", daemon=True
        )
        self._thread.start()
        self.address = self._started.result()

    def _main(self, name: str, host: str, port: int) -> None:
        loop = self._loop = new_event_loop()
        try:
            loop.run_until_complete(self._serve(name, host, port))
        finally:
            loop.close()

    async def _serve(self, name: str, host: str, port: int) -> None:
        self._stopping = asyncio.Event()
        server: Server = Server(self._broker)
        try:
            await server.start([(name, host, port)])
        except BaseException as error:
            self._started.set_exception(error)
            return
        self._started.set_result(address(server.listeners[0].host, server.listeners[0].port))
        await self._stopping.wait()
        await server.close()

    def run(self, work: Callable[[], T]) -> T:
        """Do `work` on that thread."""
        return call_on(self._loop, self._thread, work)

    def stop(self, timeout_s: float | None) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout_s)
