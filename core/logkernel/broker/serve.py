"""Runs a broker on an event loop: listeners, timers, signals; its coming into a cluster, and its leaving."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from logkernel.broker.control_socket import ControlServer, Reply
from logkernel.broker.hang_watch import HangWatch
from logkernel.broker.runtime import Flushed, flush_here
from logkernel.broker.workers import ThreadWorkers
from logkernel.config.listeners import address, why_cannot_listen
from logkernel.contracts import BrokerDoor, Listener
from logkernel.errors import CannotListen, DuplicateBrokerRegistration
from logkernel.plugin_faults import Hang

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from logkernel.broker.broker import Broker

FLUSH_THREADS = 2
SWITCH_INTERVAL_S = 0.0005
"""A request takes the interpreter's lock anew after each system call, and waits this long for it where another thread
computes in Python (a cleaner without the compiled codec); the interpreter's own 5 ms came up to tens of them."""

LOOK_AGAIN_S = 0.01

log = logging.getLogger("logkernel.serve")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop if it is installed, else plain asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Server:
    """A started broker's listeners on the running loop; its timers are the loop's."""

    def __init__(self, broker: Broker, door: BrokerDoor | None = None) -> None:
        """`door` is what listeners see in the broker's place."""
        self.broker = broker
        self._door: BrokerDoor = door or broker
        self._paused = self._killed = self._closing = False
        self.listeners: list[Listener] = []
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._flusher: Executor | None = None
        self._flushes: set[asyncio.Future[None]] = set()
        self._control: ControlServer | None = None
        self._watch: HangWatch | None = None
        self._left: asyncio.Future[None] | None = None
        """Done when `leave` need not wait any more."""

    async def start(self, listeners: list[tuple[str, str, int]], transport: str = "tcp") -> None:
        """Listen on each (name, host, port); port 0 picks a free one. Raises `CannotListen`."""
        self.broker.runtime.drive(self)
        half = self.broker.runtime.kernel.transport(transport)
        for name, host, port in listeners:
            try:
                listener = await half.listen(name, host, port, self._door, self.broker.runtime.config)
            except OSError as error:
                raise CannotListen(why_cannot_listen(host, port, error)) from error
            self.listeners.append(listener)
            self.broker.addresses.listening(name, listener.port, listener.host)
        await self._listen_for_commands()
        if isinstance(self.broker.runtime.workers, ThreadWorkers):  # a simulated broker has no threads
            self._watch = HangWatch(self.broker.runtime.kernel.faults.running, self._refuse_commands)
            self._watch.start()
        self._step()
        addresses = tuple(address(listener.host, listener.port) for listener in self.listeners)
        self.broker.runtime.kernel.tell(
            "logkernel_broker_started", node_id=self.broker.runtime.node_id, addresses=addresses
        )

    async def _listen_for_commands(self) -> None:
        """In every folder on disk that is online; who owns it may command this broker."""
        folders = self.broker.logs.folders()
        if folders:

            def handle(command: str, arguments: dict[str, Any], reply: Reply) -> None:
                from logkernel.broker.commands import handle as carry_out

                carry_out(self.broker, command, arguments, reply)

            self._control = ControlServer(folders, handle)
            await self._control.start()

    def _refuse_commands(self, hangs: Sequence[Hang]) -> None:
        """On the thread of the watch, while the loop is held up."""
        if self._control is not None:
            what = "; ".join(map(str, hangs))
            self._control.refuse_waiting("PluginError", f"{what}; the broker answers nothing until it does")

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    # ------------------------------------------------------------ runtime.Driver

    def run_flush(self, work: Callable[[], None], done: Flushed) -> None:
        """Sync without blocking the loop; later appends share the next flush."""
        if self._closing:
            flush_here(work, done)
            return

        def finish(future: asyncio.Future[None]) -> None:
            self._flushes.discard(future)
            error = future.exception()
            if not self._killed:  # else nobody is left who wants to know
                done(error)
                self.broker.turn.end()

        try:
            if self._flusher is None:
                from concurrent.futures import ThreadPoolExecutor

                self._flusher = ThreadPoolExecutor(FLUSH_THREADS, "logkernel-flush")
            future = self._loop.run_in_executor(self._flusher, work)
        except RuntimeError:  # the interpreter ends: threads take no new work, and their pool no first import
            flush_here(work, done)
            return
        self._flushes.add(future)
        future.add_done_callback(finish)

    def wake(self) -> None:
        if not self._closing:
            self._loop.call_soon_threadsafe(self._step)

    def wake_at(self, mono_ms: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        wait_ms = max(0, mono_ms - self.broker.runtime.clock.mono_ms())
        self._handle = self._loop.call_later(wait_ms / 1000, self._step)

    def _step(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._paused or self._killed:
            return
        try:
            deadline = self.broker.step()
        except Exception:
            log.exception("a timer failed")
            deadline = self.broker.runtime.timers.next_deadline()
        if deadline is not None:
            self.wake_at(deadline)

    # ------------------------------------------------------------ a cluster

    def join(self) -> None:
        """Have a broker of a cluster announced."""
        self.broker.governance.join()
        self._step()

    async def leave(self) -> None:
        """Have others lead the partitions of a broker of a cluster, where they can; waits as long as
        `controlled.shutdown.max.retries` and `controlled.shutdown.retry.backoff.ms` say, or until it is killed."""
        left = self._left = self._loop.create_future()
        self.broker.governance.leave(lambda: None if left.done() else left.set_result(None))
        self._step()
        await left

    def pause(self) -> None:
        """Run nothing of the broker until `resume`."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._step()

    async def kill(self) -> None:
        """Run nothing of the broker ever again; its listeners are closed, its flushes end unheard."""
        self._killed = True
        if self._left is not None and not self._left.done():
            self._left.set_result(None)
        self.broker.runtime.drive(None)
        self._stop_watching()
        if self._control is not None:
            await self._control.close()
        for listener in self.listeners:
            await listener.close()
        self.listeners.clear()
        if self._flusher is not None:
            self._flusher.shutdown()

    async def close(self) -> None:
        if self._control is not None:
            await self._control.close()
        for listener in self.listeners:
            await listener.close()
        self.listeners.clear()
        self._closing = True
        while self._flushes:
            await asyncio.wait(self._flushes)
            await asyncio.sleep(0)
        if self._flusher is not None:
            self._flusher.shutdown()
        self._stop_watching()
        self.broker.runtime.drive(None)
        if self._handle is not None:
            self._handle.cancel()


async def run(
    broker: Broker,
    listeners: list[tuple[str, str, int]],
    ready: Callable[[Server], None],
    signals: Sequence[int],
    known: int = 1,
    alone: asyncio.Event | None = None,
) -> None:
    """Serve until one of `signals` arrives. Raises `CannotListen`, `DuplicateBrokerRegistration`.

    A broker of a cluster is ready when it was told of a controller and of `known` brokers, itself included. Before
    it stops it waits for others to take over, unless `alone` is set, before or during the wait: then nobody can.
    """
    import sys

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    server = Server(broker)
    await server.start(listeners)
    server.join()
    try:
        while not (stop.is_set() or broker.governance.is_ready(known)):
            await asyncio.sleep(LOOK_AGAIN_S)
    except DuplicateBrokerRegistration:
        await server.close()
        raise
    if not stop.is_set():
        ready(server)
    await stop.wait()
    log.info("stopping")
    await _leave(server, alone or asyncio.Event())
    await server.close()


async def _leave(server: Server, alone: asyncio.Event) -> None:
    tasks = [asyncio.ensure_future(server.leave()), asyncio.ensure_future(alone.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
