"""The in-process transport: listen, connect, call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from logkernel.contracts import Answer, RequestContext
from logkernel.errors import NetworkException, RequestTimedOut
from logkernel.plugins.transport import memory


class Door:
    """Answers (listener, client id, request); a request "later" is answered when told to."""

    def __init__(self) -> None:
        self.parked: list[Answer] = []
        self.gone: list[tuple[str, int]] = []

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        if request == "later":
            self.parked.append(answer)
        else:
            answer((context.listener, context.client_id, request))

    def serves(self) -> frozenset[str]:
        return frozenset()

    def commands(self, listener: str) -> frozenset[str]:
        return frozenset()

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return {}

    def features_epoch(self) -> int:
        return 3

    def disconnected(self, listener: str, connection_id: int) -> None:
        self.gone.append((listener, connection_id))


def transport() -> Any:
    found = memory.logkernel_transport("memory")
    assert found is not None
    return found


def test_requests_reach_the_door_of_their_name() -> None:
    door = Door()
    one = asyncio.run(transport().listen("IN", "h", 0, door, {}))
    two = asyncio.run(transport().listen("OUT", "h", 0, Door(), {}))
    assert 0 < one.port != two.port
    channel = transport().connect("h", one.port, {"client.id": "me", "request.timeout.ms": 1})
    assert channel.call("ping") == ("IN", "me", "ping")
    waiting = channel.send("later")
    assert not waiting.done()
    door.parked.pop()("done")
    assert waiting.result(0) == "done"
    with pytest.raises(RequestTimedOut, match=r"request\.timeout\.ms=1"):
        channel.call("later")
    door.parked.pop()("too late")
    channel.close()
    with pytest.raises(NetworkException, match="connect again"):
        channel.call("ping")
    asyncio.run(one.close())
    asyncio.run(two.close())


def test_names_are_taken_refused_and_freed() -> None:
    listener = asyncio.run(transport().listen("P", "h", 7, Door(), {}))
    with pytest.raises(OSError, match="h:7 is taken"):
        asyncio.run(transport().listen("P", "h", 7, Door(), {}))
    channel = transport().connect("h", 7, {})
    asyncio.run(listener.close())
    with pytest.raises(NetworkException, match="h:7"):
        channel.call("ping")
    with pytest.raises(ConnectionRefusedError, match="h:7"):
        transport().connect("h", 7, {})
    assert memory.logkernel_transport("tcp") is None
    assert list(memory.logkernel_names()) == [("transport", "memory"), ("coordination", "memory")]


def test_the_door_hears_of_closed_channels() -> None:
    door = Door()
    listener = asyncio.run(transport().listen("INTERNAL", "here", 0, door, {}))
    channel = transport().connect("here", listener.port, {})
    channel.close()
    channel.close()
    ((name, number),) = door.gone
    assert name == "INTERNAL"
    assert number > 0
    asyncio.run(listener.close())
