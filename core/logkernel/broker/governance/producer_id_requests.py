"""Producer ids that the controller gives, a block at a time (KIP-730)."""

from __future__ import annotations

from typing import Final

from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.view import ControllerView
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.controller.producers import ProducerIds
from logkernel.errors import CoordinatorLoadInProgress
from logkernel.requests.replication import AllocateProducerIdsRequest, AllocateProducerIdsResponse

ASK_AHEAD: Final = 100
"""Ids of a block that are left when the next one is asked for."""
ASK_AGAIN_MS: Final = 50
"""When no controller gave producer ids."""


class ProducerIdRequests:
    """The block in hand, and the request for the next one."""

    def __init__(self, runtime: Runtime, turn: Turn, view: ControllerView, channel: ControllerChannel) -> None:
        self._runtime = runtime
        self._turn = turn
        self._view = view
        self._channel = channel
        self._ids = ProducerIds()
        self._asking = self._closed = False

    def close(self) -> None:
        """Ask no more."""
        self._closed = True

    def next(self) -> int:
        """An id that was never given before. Raises `CoordinatorLoadInProgress` until a block was given."""
        taken = self._ids.take()
        if self._ids.left <= ASK_AHEAD:
            self.ask()
        if taken is None:
            raise CoordinatorLoadInProgress("a block of producer ids was asked for; try again")
        return taken

    def ask(self) -> None:
        """Ask for a block. One request is under way at a time."""
        if self._asking or self._closed:
            return
        self._asking = True
        request = AllocateProducerIdsRequest(self._runtime.node_id, self._view.broker_epoch)
        self._turn.call_soon(lambda: self._channel.ask(request, self._given))

    def _given(self, response: AllocateProducerIdsResponse | None) -> None:
        self._asking = False
        if response is not None and not response.error_code:
            first = response.producer_id_start
            self._ids.refill(range(first, first + response.producer_id_len))
        elif not self._closed:
            self._runtime.after(ASK_AGAIN_MS, self.ask)
