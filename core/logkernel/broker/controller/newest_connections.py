"""Refuses what arrives over an older connection of its sender than something that came before it.

A sender of orders or proposals uses one connection at a time. If that breaks, it sends what has no answer again, over a
new one. What the old one still delivers is a late copy: nobody waits for its answer, and it may contradict what the
sender has said meanwhile.
"""

from __future__ import annotations

from logkernel.errors import NetworkException


class NewestConnections:
    """The newest connection over which each sender was heard."""

    def __init__(self) -> None:
        self._newest: dict[tuple[int, str], int] = {}
        """(broker, listener) → connection id."""

    def check(self, node: int, listener: str, connection_id: int) -> None:
        """Raises `NetworkException` for a request over an older connection of a broker than one that it used since."""
        if connection_id < self._newest.get((node, listener), 0):
            raise NetworkException(f"broker {node} uses a newer connection now")
        self._newest[node, listener] = connection_id
