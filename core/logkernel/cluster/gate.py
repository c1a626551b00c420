"""A `BrokerDoor` that can be shut: requests to a paused broker wait, and go through when it resumes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from logkernel.cluster.forwarding_door import ForwardingDoor
from logkernel.contracts import Answer, BrokerDoor, RequestContext
from logkernel.requests.data import ProduceRequest


class Gate(ForwardingDoor):
    """A door that can be shut, opened, and removed with its broker."""

    def __init__(self, door: BrokerDoor) -> None:
        super().__init__(door)
        self._held: deque[Callable[[], None]] | None = None
        """What waits while the gate is shut; None while it is open."""
        self._gone = False
        self._watching: dict[Callable[[], None], None] = {}
        """In the order in which they came: the same run tells them in the same order."""

    def on_removed(self, lost: Callable[[], None]) -> None:
        """Call `lost` when the broker stops."""
        self._watching[lost] = None

    def shut(self) -> None:
        if self._held is None:
            self._held = deque()

    def open(self) -> None:
        held, self._held = self._held, None
        for work in held or ():
            work()

    def remove(self) -> None:
        """The broker stopped: drop all requests and answers from now on."""
        self._gone = True
        self._held = None
        watching, self._watching = self._watching, {}
        for lost in watching:
            lost()

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        if self._gone:
            return

        def back(response: Any) -> None:
            if not self._gone:
                answer(response)

        if self._held is None:
            self._door.submit(request, context, back)
            return
        if isinstance(request, ProduceRequest):  # its bytes are a socket's buffer, which is used again
            for topic in request.topic_data:
                for row in topic.partition_data:
                    row.records = None if row.records is None else bytearray(row.records)
        self._held.append(lambda: self._door.submit(request, context, back))

    def disconnected(self, listener: str, connection_id: int) -> None:
        if self._gone:
            return
        if self._held is None:
            self._door.disconnected(listener, connection_id)
        else:
            self._held.append(lambda: self._door.disconnected(listener, connection_id))
