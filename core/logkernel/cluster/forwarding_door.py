"""A `BrokerDoor` in front of another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.contracts import Admission, Answer, BrokerDoor, ListenerSecurity, RequestContext
from logkernel.errors import KafkaError


class ForwardingDoor:
    """`contracts.BrokerDoor` that hands everything on. A subclass overrides what it changes."""

    def __init__(self, door: BrokerDoor) -> None:
        self._door = door

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        self._door.submit(request, context, answer)

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
        self._door.disconnected(listener, connection_id)
