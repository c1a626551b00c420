"""What stands for a broker where no broker is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.contracts import ADMITTED, Admission, ListenerSecurity
from logkernel.errors import KafkaError


class OpenDoor:
    """A `contracts.BrokerDoor` without `submit`: it admits everybody and keeps nothing of connections."""

    def serves(self) -> frozenset[str]:
        return frozenset()

    def commands(self, listener: str) -> frozenset[str]:
        return frozenset()

    def security(self, listener: str) -> ListenerSecurity | None:
        return None

    def admit(self, listener: str, host: str) -> Admission:
        return ADMITTED

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return {}

    def features_epoch(self) -> int:
        return 0

    def refusal(self, request: Any, error: KafkaError) -> Any:
        raise error

    def disconnected(self, listener: str, connection_id: int) -> None:
        """Connections have no state here."""
