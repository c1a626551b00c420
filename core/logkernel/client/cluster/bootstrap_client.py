"""Questions that every broker of a cluster answers, put to the one that is reached first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from logkernel.errors import REFUSALS, KafkaError, NetworkException
from logkernel.kernel import Kernel
from logkernel.peer.network import placed


class BootstrapClient:
    """Blocking, for one thread at a time; connects at the first question.

    `addresses` are (host, port); `settings` those of the channel, by Kafka's names.
    """

    def __init__(
        self, kernel: Kernel, addresses: Sequence[tuple[str, int]], settings: Mapping[str, Any], transport: str = "tcp"
    ) -> None:
        self._kernel = kernel
        self._addresses = addresses
        self._settings = settings
        self._transport = transport
        self._channel: Any = None

    def request(self, request: Any) -> Any:
        """The answer to a versionless request; a broken connection is made anew, once. Raises `NetworkException` …"""
        for attempt in range(2):
            if self._channel is None:
                self._channel = self._connect()
            try:
                return self._channel.call(request)
            except NetworkException:
                self._channel = None
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def _connect(self) -> Any:
        transport = self._kernel.transport(self._transport)
        last: Exception = NetworkException("no broker can be reached; check bootstrap.servers")
        for host, port in self._addresses:
            try:
                return transport.connect(host, port, self._settings)
            except REFUSALS as error:
                raise placed(error, f"{host}:{port}") from error
            except (KafkaError, OSError) as error:
                last = error
        raise last

    def close(self) -> None:
        """May be called twice."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
