"""A door that answers what a test tells it to, and raw frames."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.broker.handlers.refusals import refusal
from logkernel.contracts import ADMITTED, Admission, RequestContext
from logkernel.errors import KafkaError
from logkernel.plugins.transport.tcp.registry import BY_REQUEST, ROWS
from logkernel.plugins.transport.tcp.transport import TcpTransport

LOOPS = ["asyncio", "uvloop"]


class FakeDoor:
    """Answers by `replies[request class name](request)`, or keeps the answer for the test where there is none."""

    def __init__(self) -> None:
        self.replies: dict[str, Callable[[Any], Any]] = {}
        self.seen: list[tuple[Any, RequestContext]] = []
        self.gone: list[tuple[str, int]] = []
        self.came: list[str] = []
        """Addresses of connections that were made."""
        self.admissions: list[Admission] = []
        """What the next ones are to do."""
        self.parked: list[Callable[[Any], None]] = []
        self.names = frozenset(row.request_name for row in ROWS)
        self.levels: dict[str, tuple[int, int, int]] = {}

    def submit(self, request: Any, context: RequestContext, answer: Callable[[Any], None]) -> None:
        self.seen.append((request, context))
        reply = self.replies.get(type(request).__name__)
        if reply is None:
            self.parked.append(answer)
        else:
            answer(reply(request))

    def serves(self) -> frozenset[str]:
        return self.names

    def commands(self, listener: str) -> frozenset[str]:
        return frozenset()

    def security(self, listener: str) -> None:
        return None

    def admit(self, listener: str, host: str) -> Admission:
        self.came.append(host)
        return self.admissions.pop(0) if self.admissions else ADMITTED

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return self.levels

    def features_epoch(self) -> int:
        return 3

    def refusal(self, request: Any, error: KafkaError) -> Any:
        return refusal(request, error)

    def disconnected(self, listener: str, connection_id: int) -> None:
        self.gone.append((listener, connection_id))


@pytest.fixture
def door() -> FakeDoor:
    return FakeDoor()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    """Runs a coroutine on each kind of loop, bounded in time."""
    factory = asyncio.new_event_loop
    if request.param == "uvloop":
        factory = pytest.importorskip("uvloop").new_event_loop

    def go(coroutine: Any) -> Any:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(coroutine, 60))

    return go


async def listen(door: FakeDoor, **settings: Any) -> Any:
    names = {name.replace("__", "."): value for name, value in settings.items()}
    return await TcpTransport().listen("PLAINTEXT", "127.0.0.1", 0, door, names)


def frame(name: str, version: int, correlation_id: int, body: bytes = b"", client_id: bytes | None = b"me") -> bytes:
    """A request frame as a client lays it out."""
    row = BY_REQUEST[name + "Request"]
    head = struct.pack(">hhi", row.key, version, correlation_id)
    head += struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    if version >= row.flexible_from:
        head += b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


HEARTBEAT_BODY = b"\0\1g" + struct.pack(">i", 7) + b"\0\1m"


def heartbeat(correlation_id: int) -> bytes:
    return frame("Heartbeat", 0, correlation_id, HEARTBEAT_BODY)


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """(correlation id, the rest) of the next response."""
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    body = await reader.readexactly(size)
    return struct.unpack_from(">i", body)[0], body[4:]


async def until_quiet(listener: Any, count: Callable[[], int]) -> int:
    """The `count` that several round trips of another connection, each a turn of the loop, do not change any more.

    What was sent before can be read in each of these turns: where the count stands still, it is held back."""
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    seen, unchanged = -1, 0
    while unchanged < 10:
        writer.write(frame("ApiVersions", 0, 0))
        await read_frame(reader)
        seen, before = count(), seen
        unchanged = unchanged + 1 if seen == before else 0
    writer.close()
    return seen


@pytest.fixture
def wire() -> SimpleNamespace:
    """The helpers of this file."""
    return SimpleNamespace(
        listen=listen, frame=frame, heartbeat=heartbeat, read_frame=read_frame, until_quiet=until_quiet
    )
