"""A thread that steps a client's machine over the blocking channels of a transport."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field

from logkernel.client import shutdown
from logkernel.client.drivers.driver import Driver, Machine, Pending, Wake, closed_early, log, mono_ms, tell_all
from logkernel.client.settings.table import channel_settings
from logkernel.errors import REFUSALS, LogkernelError, NetworkException
from logkernel.kernel import Kernel
from logkernel.peer.network import LOSSES, Action, Close, Connect, Transmit

LONGEST_SLEEP_S = 60.0


@define(eq=False)
class _Open:
    """A channel, and the replies that are awaited on it, oldest first."""

    number: int
    channel: Any
    replies: deque[tuple[int, Any]] = field(factory=deque)
    interest: int = selectors.EVENT_READ


class ThreadDriver(Driver):
    """See the module. `start` starts the thread, a daemon; `end` ends it."""

    def __init__(self, machine: Machine, settings: Mapping[str, Any], kernel: Kernel, transport: str) -> None:
        super().__init__(machine, settings)
        self._transport = kernel.transport(transport)
        self._channel_settings = channel_settings(settings)
        self._selector = selectors.DefaultSelector()
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._far.setblocking(False)
        self._selector.register(self._far, selectors.EVENT_READ, None)
        self._open: dict[int, _Open] = {}
        self._given_up: set[int] = set()
        self._connecting: set[int] = set()
        self._held: dict[_Open, None] = {}
        """Channels whose output is to leave when this turn's actions are done."""
        self._sleeping = False
        self._ending = False
        self._thread = threading.Thread(target=self._main, name=f"logkernel-{machine.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # ------------------------------------------------------------ the thread

    def _main(self) -> None:
        try:
            self._drive()
        except BaseException as error:  # nobody must wait for a thread that is gone
            log.exception("the %s's thread failed", self.machine.name)
            self.broken = error if isinstance(error, Exception) else LogkernelError(repr(error))
        finally:
            self._end()

    def _drive(self) -> None:
        """The thread's work, until all is over."""
        while not self._over():
            deadline_ms = self.turn()
            if self._over():
                break
            self._wait(deadline_ms)

    def _over(self) -> bool:
        return self._ending and not (self.machine.busy and self.broken is None and not self.closed)

    def _wait(self, deadline_ms: int | None) -> None:
        """Until there is something for a turn: parts of an answer are none. The channels are looked at in any case."""
        woken = False
        self._sleeping = True  # before the first look at `_again`, as `wake` looks at it after setting that
        while not woken:
            left_s = LONGEST_SLEEP_S
            if self._again or self._events:
                left_s = 0.0
            elif deadline_ms is not None:
                left_s = min(left_s, max(0.0, (deadline_ms - mono_ms()) / 1000))
            ready = self._selector.select(left_s)
            woken = not (ready and left_s)
            for key, _ in ready:
                if key.data is None:
                    woken = True
                    with contextlib.suppress(BlockingIOError):
                        self._far.recv(4096)
                else:
                    self._serve(key.data)
            woken = woken or bool(self._events)
        self._sleeping = False

    def _serve(self, opened: _Open) -> None:
        """Send and receive what is possible on one channel."""
        opened.channel.poll()
        self._collect(opened)

    def _collect(self, opened: _Open) -> None:
        number, replies = opened.number, opened.replies
        network = self.machine.core.network
        while replies and replies[0][1].correlation_id is None:
            request_id, reply = replies.popleft()
            try:
                response = reply.result()
            except LOSSES:
                break
            self._events.append(partial(network.on_response, number, request_id, response))
        if opened.channel.fileno() < 0:
            self._lost(opened)
            return
        interest = selectors.EVENT_READ | (selectors.EVENT_WRITE if opened.channel.wants_write else 0)
        if interest != opened.interest:
            opened.interest = interest
            self._selector.modify(opened.channel.fileno(), interest, opened)

    def _lost(self, opened: _Open) -> None:
        """A channel closed itself; its descriptor has left the selector with it."""
        del self._open[opened.number]
        self._drop_closed()
        error = opened.channel.failure or NetworkException("the connection is gone")
        number = opened.number
        self._events.append(lambda now_ms: self.machine.core.network.on_lost(number, error, now_ms))

    def _drop_closed(self) -> None:
        live = {id(opened) for opened in self._open.values()}
        for descriptor, key in list(self._selector.get_map().items()):
            if key.data is not None and id(key.data) not in live:
                self._selector.unregister(descriptor)

    # ------------------------------------------------------------ actions

    def carry_out(self, actions: list[Action]) -> None:
        """Requests to one broker leave together: a call of the system for each is a good part of what they cost."""
        super().carry_out(actions)
        held, self._held = self._held, {}
        for opened in held:
            opened.channel.flush()
            if self._open.get(opened.number) is opened:
                self._collect(opened)

    def perform(self, action: Action) -> None:
        if isinstance(action, Transmit):
            self._transmit(action)
        elif isinstance(action, Connect):
            self._connecting.add(action.number)
            try:
                threading.Thread(target=self._connect, args=(action,), name="logkernel-connect", daemon=True).start()
            except RuntimeError:  # the interpreter is ending: no more threads
                self._connect(action)
        elif isinstance(action, Close):
            self._close(action.number)

    def _transmit(self, action: Transmit) -> None:
        opened = self._open.get(action.number)
        if opened is None:
            return  # it was lost meanwhile, which the machine is being told
        network, number, request_id = self.machine.core.network, action.number, action.request_id
        try:
            reply = opened.channel.send(action.request, action.withheld, hold=True)
        except LOSSES:
            self._lost(opened)
            return
        except Exception as error:
            refused = error
            self._events.append(lambda now_ms: network.on_refused(number, request_id, refused, now_ms))
            return
        opened.replies.append((request_id, reply))
        self._held[opened] = None

    def _connect(self, action: Connect) -> None:
        """In a thread of its own: names are resolved and connections made by blocking calls."""
        network = self.machine.core.network
        settings = {**self._channel_settings, "socket.connection.setup.timeout.ms": action.timeout_ms}
        try:
            channel = self._transport.connect(action.host, action.port, settings)
        except (LogkernelError, OSError) as error:
            failure = error if isinstance(error, (NetworkException, *REFUSALS)) else NetworkException(str(error))
            self._events.append(lambda now_ms: network.on_lost(action.number, failure, now_ms))
        else:
            if self.closed:
                channel.close()
                return
            self._events.append(lambda now_ms: self._connected(action.number, channel, now_ms))
        self.wake()

    def _connected(self, number: int, channel: Any, now_ms: int) -> None:
        self._connecting.discard(number)
        if number in self._given_up or self._ending_now():
            self._given_up.discard(number)
            channel.close()
            return
        opened = self._open[number] = _Open(number, channel)
        self._selector.register(channel.fileno(), selectors.EVENT_READ, opened)
        self.machine.core.network.on_connected(number, channel.features, now_ms)

    def _ending_now(self) -> bool:
        return self._ending and self.closed

    def _close(self, number: int) -> None:
        opened = self._open.pop(number, None)
        if opened is None:
            if number in self._connecting:
                self._given_up.add(number)
            return
        self._selector.unregister(opened.channel.fileno())
        opened.channel.close()

    # ------------------------------------------------------------ waiting and ending

    def wake(self) -> None:
        self._again = True
        if self._sleeping:
            self._sleeping = False
            with contextlib.suppress(OSError):
                self._near.send(b"\0")

    def wait(self, ready: Any, deadline_s: float | None, under_way: bool = False) -> bool:
        """Block until `ready()` or the monotonic `deadline_s`; whether it came."""
        if ready():
            return True
        self.refuse_to_wait()
        told: SimpleQueue[None] = SimpleQueue()
        wake = partial(told.put, None)
        with self.lock:
            if self.watch(ready, wake):
                return True
        if not under_way:
            self.wake()
        return self._wait_for(told, deadline_s, ready, wake)

    def wait_outcome(self, pending: Pending, deadline_s: float | None) -> bool:
        if pending.done:
            return True
        self.refuse_to_wait()
        told: SimpleQueue[None] = SimpleQueue()
        wake = partial(told.put, None)
        if self.watch_outcome(pending, wake):
            return True
        self.wake()
        return self._wait_for(told, deadline_s, lambda: pending.done, wake)

    def in_callback(self) -> bool:
        return threading.current_thread() is self._thread

    def _wait_for(self, told: SimpleQueue[None], deadline_s: float | None, ready: Any, wake: Wake) -> bool:
        """A queue costs less than an event, which is a condition and its lock, written in Python."""
        while told.empty():
            if not self._thread.is_alive():
                return bool(ready())
            left_s = 1.0 if deadline_s is None else min(1.0, deadline_s - time.monotonic())
            if left_s <= 0:
                self.unwatch(wake)
                with self.lock:
                    return bool(ready())
            with contextlib.suppress(Empty):
                told.get(timeout=left_s)
                break
        return True

    def end(self, deadline_s: float | None) -> None:
        """Let the thread send what is left until `deadline_s`, then end it. From the thread itself: at once."""
        self._ending = True
        if self._thread.ident is None:  # never started
            self._end()
            return
        self.wake()
        if self.in_callback():
            return
        while self._thread.is_alive():
            left_s = 1.0 if deadline_s is None else deadline_s - time.monotonic()
            if left_s <= 0:
                break
            self._thread.join(min(1.0, left_s))
        self.closed = True
        self._sleeping = True
        self.wake()
        self._thread.join(1.0)

    def end_soon(self) -> None:
        """As `end`, without waiting: the thread sends what is left, then ends."""
        self._ending = True
        if self._thread.ident is None:
            self._end()
            return
        self.wake()

    def _end(self) -> None:
        self.closed = True
        with self.lock:
            self.machine.core.network.close_all(mono_ms())
            self.machine.abandon(self.broken or closed_early(self.machine))
            self.machine.core.network.actions.clear()
            finished, wakes = self._take_finished()
            wakes += [wake for _, wake in self._waiters]
            self._waiters = []
        for number in list(self._open):
            self._close(number)
        tell_all(finished, wakes)
        self._selector.close()
        self._near.close()
        self._far.close()
        shutdown.unregister(self)

    def forked(self) -> None:
        """The child closes its copies of the descriptors, quietly; the parent's connections live on."""
        super().forked()
        for opened in self._open.values():
            opened.channel.disown()
        self._open.clear()
        self._selector.close()
        self._near.close()
        self._far.close()
        self._sleeping = False
