"""The addresses under which clients and other brokers reach this broker."""

from __future__ import annotations

import socket
from typing import Any

from logkernel.broker.runtime import Runtime
from logkernel.vocabulary import PLAINTEXT

IN_PROCESS = "IN-PROCESS"
"""The listener of a broker that opens none: clients in its process reach it without an address."""
BrokerEndpoint = tuple[int, str, int, str | None]
"""(node id, host, port, rack)."""


class OwnAddresses:
    """By listener, since it is bound."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._bound: dict[str, int] = {}
        self._endpoints: dict[str, BrokerEndpoint] = {}

    def listening(self, name: str, port: int, host: str) -> None:
        """Note that a listener is bound: Metadata answers on it name this address from now on."""
        node_id, rack = self._runtime.node_id, self._runtime.config.get("broker.rack")
        self._bound[name] = port
        self._endpoints[name] = (node_id, host, port, rack)
        if (name, host) not in {(known.name, known.host) for known in self._runtime.config.listeners}:
            return  # opened by hand: it has no advertised address
        for advertised in self._runtime.config.advertised(self._bound, socket.gethostname()):
            if advertised.name in self._bound:
                self._endpoints[advertised.name] = (node_id, advertised.host, advertised.port, rack)

    def configured_listeners(self) -> list[tuple[str, str, int]]:
        """(name, host, port) of every listener to open; an empty host means every interface."""
        return [(listener.name, listener.host, listener.port) for listener in self._runtime.config.listeners]

    def endpoint(self, listener: str) -> BrokerEndpoint:
        """On that listener; on the first one where there is none of that name."""
        found = self._endpoints.get(listener) or next(iter(self._endpoints.values()), None)
        return found or (self._runtime.node_id, "localhost", -1, self._runtime.config.get("broker.rack"))

    def registration(self) -> dict[str, Any]:
        """Return this broker's registration, which the coordination keeps while the broker is alive, in the form of
        `image.BrokerRegistration`."""
        rack = self._runtime.config.get("broker.rack")
        listeners = {name: [host, port] for name, (_, host, port, _) in self._endpoints.items()}
        value = {"listeners": listeners or {IN_PROCESS: ["localhost", self._runtime.node_id]}, "rack": rack}
        spoken = {name: self._runtime.config.security_protocol(name) for name in listeners}
        protocols = {name: protocol for name, protocol in spoken.items() if protocol != PLAINTEXT}
        return {**value, "protocols": protocols} if protocols else value
