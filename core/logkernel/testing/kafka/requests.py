"""What clients asked, as a test sees it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Self, SupportsIndex, overload

from logkernel.attrs_lite import frozen
from logkernel.requests.access import SaslAuthenticateRequest
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.testing.kafka.apis import check_api

HIDDEN: Final = b"[hidden]"
MOST_KEPT: Final = 10_000
"""Requests; the oldest go first."""
MOST_KEPT_BYTES: Final = 64 << 20
"""Of the records in them."""


@frozen
class ClientRequest:
    """One request, as it came. `request` is a class of `logkernel.requests`: newest form, whatever the version was."""

    api: str
    """Kafka's name, e.g. "Produce"."""
    version: int
    client_id: str | None
    software: str
    """The client's name and version, "" while it did not say them (KIP-511)."""
    connection: int
    correlation_id: int
    at_ms: int
    """The broker's wall time when it came, in ms since 1970."""
    request: Any
    broker: int = 1
    """The node id of the broker that was asked."""
    principal: str = "User:ANONYMOUS"
    """As whom the client is logged in, e.g. "User:ann"; "" before it is."""

    @property
    def fields(self) -> dict[str, Any]:
        """The request as dicts and lists."""
        import attrs

        found: dict[str, Any] = attrs.asdict(self.request)
        return found

    def __str__(self) -> str:
        whence = f"client={self.client_id} connection={self.connection}"
        return f"{self.api} v{self.version} {whence} broker={self.broker} {self.request}"


class Requests(tuple[ClientRequest, ...]):
    """Requests in the order in which they came."""

    __slots__ = ()

    def of(self, api: str | None = None, *, client_id: str | None = None, broker: int | None = None) -> Requests:
        """Those of one API (Kafka's name, e.g. "Produce"), of one client, to one broker. Raises `ConfigError` for an
        API that does not exist."""
        if api is not None:
            check_api(api)
        return Requests(
            each
            for each in self
            if (api is None or each.api == api)
            and (client_id is None or each.client_id == client_id)
            and (broker is None or each.broker == broker)
        )

    @overload
    def __getitem__(self, key: SupportsIndex) -> ClientRequest: ...
    @overload
    def __getitem__(self, key: slice) -> Requests: ...
    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Requests(found) if isinstance(key, slice) else found


class KeptRequests(Requests):
    """All that a broker keeps, at the time when they were asked for."""

    _clear: Callable[[], None]

    def __new__(cls, rows: Iterable[ClientRequest], clear: Callable[[], None]) -> Self:
        found = super().__new__(cls, rows)
        found._clear = clear
        return found

    def clear(self) -> None:
        """Have the broker forget what clients asked so far."""
        self._clear()


class RequestLog:
    """The newest requests of all clients. Filled and read on the broker's thread."""

    def __init__(self) -> None:
        self._kept: deque[tuple[ClientRequest, int]] = deque()
        self._bytes = 0
        self._gone = 0

    def add(self, request: ClientRequest, size: int) -> None:
        """`size` is how many bytes of records it holds."""
        self._kept.append((request, size))
        self._bytes += size
        while len(self._kept) > MOST_KEPT or (self._bytes > MOST_KEPT_BYTES and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]
            self._gone += 1

    def __iter__(self) -> Iterator[ClientRequest]:
        return (request for request, _ in self._kept)

    def since(self, number: int, most: int, most_bytes: int) -> list[tuple[int, ClientRequest]]:
        """Up to `most` requests from `number` on, with their numbers, the oldest first; of about `most_bytes`, but at
        least one. Requests are numbered from 0 as they come."""
        found: list[tuple[int, ClientRequest]] = []
        size = 0
        start = max(0, number - self._gone)
        for index, (request, held) in enumerate(islice(self._kept, start, start + most), start):
            size += held
            if found and size > most_bytes:
                break
            found.append((self._gone + index, request))
        return found

    @property
    def end(self) -> int:
        """The number that the next request gets."""
        return self._gone + len(self._kept)

    def clear(self) -> None:
        self._gone += len(self._kept)
        self._kept.clear()
        self._bytes = 0


def kept(request: Any) -> tuple[Any, int]:
    """The request in a form that may be kept, and how many bytes of records that holds: those of a Produce lie in a
    socket's buffer, which is used again."""
    if not isinstance(request, ProduceRequest):
        return request, 0
    size = 0
    topics = []
    for topic in request.topic_data:
        rows = []
        for row in topic.partition_data:
            data = None if row.records is None else bytes(row.records)
            size += len(data or b"")
            rows.append(PartitionProduceData(row.index, data))
        topics.append(TopicProduceData(topic.name, rows, topic.topic_id))
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics), size


def shown(request: Any) -> Any:
    """A kept request as a test may see and print it: without the password that a client logs in with."""
    return SaslAuthenticateRequest(HIDDEN) if isinstance(request, SaslAuthenticateRequest) else request


def again(request: Any) -> Any:
    """A kept request in the form that a broker takes: it writes into the batches of a Produce."""
    if not isinstance(request, ProduceRequest):
        return request
    topics = [
        TopicProduceData(
            topic.name,
            [
                PartitionProduceData(row.index, None if row.records is None else bytearray(row.records))
                for row in topic.partition_data
            ],
            topic.topic_id,
        )
        for topic in request.topic_data
    ]
    return ProduceRequest(request.transactional_id, request.acks, request.timeout_ms, topics)
