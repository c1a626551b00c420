"""Refuses proposals of in-sync replicas that later ones of the same broker overtook."""

from __future__ import annotations

from logkernel.errors import NetworkException


class ProposalConnections:
    """The newest connection by which each broker proposed to this one, whenever it was the controller."""

    def __init__(self) -> None:
        self._newest: dict[tuple[int, str], int] = {}
        """(broker, listener) → connection id."""

    def check(self, node: int, listener: str, connection_id: int) -> None:
        """Raises `NetworkException` for a proposal over an older connection of a broker than one by which it proposed
        meanwhile. Its leader does not wait for the answer any more, and may have been told that the proposal was
        refused; what it names then is not what that leader waits for."""
        if connection_id < self._newest.get((node, listener), 0):
            raise NetworkException(f"broker {node} proposes over a newer connection now")
        self._newest[node, listener] = connection_id
