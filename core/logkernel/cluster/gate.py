"""A `BrokerDoor` that can be shut: requests to a paused broker wait, and go through when it resumes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from logkernel.contracts import Admission, Answer, BrokerDoor, ListenerSecurity, RequestContext
from logkernel.errors import KafkaError
from logkernel.requests.data import ProduceRequest


class Gate:
    """`contracts.BrokerDoor` in front of another one."""

    def __init__(self, door: BrokerDoor) -> None:
        self._door = door
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

    def serves(self) -> frozenset[str]:
        return self._door.serves()

    def commands(self, listener: str) -> frozenset[str]:
        return self._door.commands(listener)

    def security(self, listener: str) -> ListenerSecurity | None:
        return self._door.security(listener)

    def admit(self, listener: str, host: str) -> Admission:
        return self._door.admit(listener, host)

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return self._door.features()

    def features_epoch(self) -> int:
        return self._door.features_epoch()

    def refusal(self, request: Any, error: KafkaError) -> Any:
        return self._door.refusal(request, error)

    def disconnected(self, listener: str, connection_id: int) -> None:
        if self._gone:
            return
        if self._held is None:
            self._door.disconnected(listener, connection_id)
        else:
            self._held.append(lambda: self._door.disconnected(listener, connection_id))
