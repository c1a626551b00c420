"""The caller steps a client's machine against an embedded kernel: no socket, no thread, no copy of a batch.

A turn runs when some batches are full, when one lingers no more (at a later send, or by the kernel's timers, which
any call of the log runs), or when somebody waits for an outcome or memory. While it runs, signals are held back
(`signals`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from logkernel.client.drivers.driver import Driver, Machine, Pending, mono_ms, wall_ms
from logkernel.client.drivers.signals import HeldSignals
from logkernel.contracts import BrokerDoor, RequestContext
from logkernel.errors import NetworkException
from logkernel.peer.network import APART, Action, Connect, Transmit
from logkernel.requests.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

GATHERED_BYTES = 65_536
"""So much work gathers before a turn."""
CAPABILITIES = frozenset(
    {
        "topic_ids",
        "zstd",
        "transactions_v2",
        "group_not_found",
        "transaction_abortable",
        "member_id_required",
        "static_members",
        "skip_assignment",
        "max_timestamp",
        "earliest_local",
        "latest_tiered",
        "earliest_pending_upload",
        "client_member_id",
        "member_epochs",
    }
)


class Host(Protocol):
    """Brokers of this process, as a client in it needs them."""

    def connect(self, node: int, lost: Callable[[], None]) -> BrokerDoor:
        """The door of broker `node`, or of any broker for a negative number. `lost` is called, on the brokers' thread,
        when that broker is gone. Raises `ConnectionError` where it isn't there."""
        ...

    def run(self, work: Callable[[], Any]) -> Any:
        """Do `work` where the kernel may be stepped. Raises `LogkernelError` once it is closed."""
        ...

    def step(self) -> int | None:
        """Run what is due in the kernel; returns its next deadline (monotonic ms)."""
        ...

    def at(self, mono_ms: int, work: Callable[[], None]) -> Any:
        """Do `work` then; gives a timer with `cancel()`. Only inside `run`."""
        ...


class EmbeddedDriver(Driver):
    """See the module."""

    hurries = True

    def __init__(self, machine: Machine, settings: Mapping[str, Any], host: Host) -> None:
        super().__init__(machine, settings)
        self._host = host
        self._context = RequestContext(
            client_id=settings["client.id"] or "embedded", software_name="logkernel", capabilities=CAPABILITIES
        )
        self._doors: dict[int, BrokerDoor] = {}
        """By the number of the connection."""
        self._turning = False
        self._more = False
        """A callback of the turn under way gave it more to do."""
        self._turner = 0
        """The thread whose turn it is."""
        self._timer: Any = None
        self._next_ms: int | None = None
        """When the timer begins a turn."""
        self._gathered_bytes = 0
        """What was gathered since the last turn."""

    # ------------------------------------------------------------ turns

    def wake(self) -> None:
        if self.in_callback():
            self._more = True
        elif not self.closed:
            self._host.run(self._turn)

    def gather(self, size: int, linger_ms: int, hurry: bool) -> int:
        """A turn costs little more for much work than for little: it gathers, for as long as it may linger."""
        due_ms = wall_ms() + linger_ms + 1
        before, self._gathered_bytes = self._gathered_bytes, self._gathered_bytes + size
        if hurry or before >= GATHERED_BYTES or linger_ms <= 0 or self.in_callback():
            self.wake()
        elif not self.closed:
            turn_ms = mono_ms() + linger_ms
            if self._next_ms is None or turn_ms < self._next_ms:
                self._host.run(lambda: self._come_again(turn_ms))
        return due_ms

    def _come_again(self, at_ms: int | None) -> None:
        """The kernel's timers begin the next turn."""
        self._next_ms = at_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_ms is not None:
            self._timer = self._host.at(at_ms, self._due)

    def is_due(self) -> bool:
        return self._next_ms is not None and self._next_ms <= mono_ms()

    def _turn(self) -> None:
        if self._turning:
            return
        self._turning = True
        self._turner = threading.get_ident()
        try:
            with HeldSignals():
                self._more = True
                while self._more:
                    self._more = False
                    self._gathered_bytes = 0
                    next_ms = self.turn()
        finally:
            self._turning = False
        self._come_again(next_ms)

    def _due(self) -> None:
        self._timer = None
        if not self.closed:
            self._turn()

    def perform(self, action: Action) -> None:
        if isinstance(action, Connect):
            self._connect(action)
        elif isinstance(action, Transmit):
            self._submit(action)
        else:
            self._doors.pop(action.number, None)

    def _connect(self, action: Connect) -> None:
        network, number = self.machine.core.network, action.number

        def lost() -> None:
            if self._doors.pop(number, None) is not None and not self.closed:
                error = NetworkException(f"broker {action.node} is gone")
                self._events.append(lambda now_ms: network.on_lost(number, error, now_ms))
                self._turn()

        try:
            door = self._host.connect(action.node % APART if action.node >= 0 else action.node, lost)
        except ConnectionError as refused:
            error = NetworkException(str(refused))
            self._events.append(lambda now_ms: network.on_lost(number, error, now_ms))
            return
        self._doors[number] = door
        features = {name: row[2] for name, row in door.features().items()}
        self._events.append(lambda now_ms: network.on_connected(number, features, now_ms))

    def _submit(self, action: Transmit) -> None:
        network, number, request_id = self.machine.core.network, action.number, action.request_id

        def answer(response: Any) -> None:
            self._events.append(lambda now_ms: network.on_response(number, request_id, response, now_ms))
            self._turn()  # does nothing while a turn is under way: that one goes on

        door = self._doors.get(number)
        if door is None:
            return  # it was lost, and what was under way fails with it
        context = self._context
        if action.withheld:
            context = RequestContext(
                client_id=context.client_id, software_name="logkernel", capabilities=CAPABILITIES - action.withheld
            )
        try:
            if isinstance(action.request, ApiVersionsRequest):
                answer(_versions(door))
                return
            door.submit(action.request, context, answer)
        except Exception as error:
            refused = error
            self._events.append(lambda now_ms: network.on_refused(number, request_id, refused, now_ms))

    # ------------------------------------------------------------ waiting and ending

    def wait(self, ready: Callable[[], bool], deadline_s: float | None, under_way: bool = False) -> bool:
        """Step the kernel until `ready()` or the monotonic `deadline_s`; whether it came."""
        if not ready():
            self.refuse_to_wait()
        event = threading.Event()
        while True:
            self._host.step()
            self.wake()
            with self.lock:
                if ready():
                    return True
                self._waiters.append((ready, event.set))
            now_s = time.monotonic()
            if (deadline_s is not None and now_s >= deadline_s) or self.closed:
                self.unwatch(event.set)
                return ready()
            next_ms = self._next_ms
            left_s = 0.05 if next_ms is None else max(0.0, min(0.05, (next_ms - mono_ms()) / 1000))
            if deadline_s is not None:
                left_s = min(left_s, deadline_s - now_s)
            event.wait(left_s)
            self.unwatch(event.set)

    def nudge(self) -> None:
        """Nothing to do: waiting threads check every 50 ms, as another thread may be stepping the kernel."""

    def in_callback(self) -> bool:
        return self._turning and self._turner == threading.get_ident()

    def wait_outcome(self, pending: Pending, deadline_s: float | None) -> bool:
        return pending.done or self.wait(lambda: pending.done, deadline_s)

    def end(self, deadline_s: float | None) -> None:
        """Send what is left until `deadline_s`. From a callback: the turn that is under way does."""
        if self.closed or self.in_callback():
            return
        try:
            self.wait(lambda: not self.machine.busy, deadline_s)
        finally:
            self.closed = True
            self.abandon()

    def end_soon(self) -> None:
        """What lingers is sent by the kernel's timers, or when the log is closed."""


def _versions(door: BrokerDoor) -> ApiVersionsResponse:
    """The finalized features, as a transport reads them from ApiVersions."""
    response = ApiVersionsResponse(finalized_features_epoch=door.features_epoch())
    for name, (low, high, level) in sorted(door.features().items()):
        response.supported_features.append(SupportedFeatureKey(name, low, high))
        if level > 0:
            response.finalized_features.append(FinalizedFeatureKey(name, level, level))
    return response
