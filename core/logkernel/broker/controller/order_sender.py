"""Sends the controller's orders by `Orders`, one request at a time to each broker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from logkernel.broker.controller.channel import Send
from logkernel.broker.controller.order_waits import OrderWaits
from logkernel.broker.kept_out import REMEDY
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn
from logkernel.controller.orders import Answered, Orders
from logkernel.errors import ClusterAuthorizationFailed
from logkernel.requests.replication import Order

log = logging.getLogger("logkernel.controller")


class OrderSender:
    """Of one term."""

    def __init__(
        self, runtime: Runtime, turn: Turn, orders: Orders, send: Send, answered: Callable[[int, Answered], None]
    ) -> None:
        """`answered` gets (node id, what follows from its response besides the confirmation)."""
        self._runtime = runtime
        self._turn = turn
        self._orders = orders
        self._send = send
        self._on_answered = answered
        self._waits = OrderWaits(runtime, turn)
        self._back_off: Timer | None = None
        self._refusing: set[int] = set()
        """Brokers that let this one command nothing, as the log says."""
        self._will_send = self._closed = False

    def close(self) -> None:
        """The term is over: send nothing more, ignore responses, and answer all that wait."""
        self._closed = True
        self._stop_timer()
        self._waits.confirmed()

    def send_soon(self) -> None:
        """At the end of the turn."""
        if not self._will_send:
            self._will_send = True
            self._turn.call_soon(self._send_all)

    def when_confirmed(self, work: Callable[[], None], timeout_ms: int) -> None:
        """Run `work` once this broker itself has confirmed what was ordered until now, or the time is up."""
        self._waits.add(work, timeout_ms)
        self.send_soon()

    def _send_all(self) -> None:
        self._will_send = False
        if self._closed:
            return
        orders = self._orders
        now = self._runtime.clock.mono_ms()
        for node in orders.ready(now):
            request = orders.next_request(node, now)
            if request is not None:
                self._send(node, request, partial(self._answered, node, request))
        deadline = orders.next_deadline()
        self._stop_timer()
        if deadline is not None:
            self._back_off = self._runtime.timers.at(max(deadline, now + 1), self._send_all)
        if self._waits and orders.is_up_to_date(self._runtime.node_id):
            self._waits.confirmed()

    def _stop_timer(self) -> None:
        if self._back_off is not None:
            self._back_off.cancel()
            self._back_off = None

    def _answered(self, node: int, request: Order, response: Any) -> None:
        if not self._closed:
            self._note_refusal(node, response)
            self._on_answered(node, self._orders.on_answer(node, request, response, self._runtime.clock.mono_ms()))
            self.send_soon()

    def _note_refusal(self, node: int, response: Any) -> None:
        """Log it once while the broker refuses all orders, which are tried again for ever."""
        if response is None:
            return
        if response.error_code != ClusterAuthorizationFailed.code:
            self._refusing.discard(node)
        elif node not in self._refusing:
            self._refusing.add(node)
            log.error("orders refused, and tried again: broker=%d error=CLUSTER_AUTHORIZATION_FAILED; %s", node, REMEDY)
