"""What the in-process transport does beyond its contract: timeouts of calls, and words for what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from logkernel.errors import NetworkException, RequestTimedOut
from logkernel.plugins.transport import memory
from logkernel.testing.contracts.transport import Door, answer_to, numbered


def transport() -> Any:
    found = memory.logkernel_transport("memory")
    assert found is not None
    return found


def test_a_call_waits_as_long_as_it_is_told_to() -> None:
    door = Door()
    listener = asyncio.run(transport().listen("IN", "h", 0, door, {}))
    channel = transport().connect("h", listener.port, {"request.timeout.ms": 1})
    assert channel.call(numbered(1)) == answer_to(numbered(1))
    door.keeps = True
    with pytest.raises(RequestTimedOut, match=r"request\.timeout\.ms=1"):
        channel.call(numbered(2))
    door.kept.pop()[1]("too late")
    channel.close()
    channel.close()
    assert len(door.gone) == 1
    with pytest.raises(NetworkException, match="connect again"):
        channel.call(numbered(3))
    asyncio.run(listener.close())


def test_errors_name_the_address() -> None:
    listener = asyncio.run(transport().listen("P", "h", 7, Door(), {}))
    with pytest.raises(OSError, match="h:7 is taken"):
        asyncio.run(transport().listen("P", "h", 7, Door(), {}))
    channel = transport().connect("h", 7, {})
    asyncio.run(listener.close())
    with pytest.raises(NetworkException, match="h:7"):
        channel.call(numbered(1))
    with pytest.raises(NetworkException, match="h:7"):
        transport().connect("h", 7, {})
    assert memory.logkernel_transport("tcp") is None
    assert list(memory.logkernel_names()) == [("transport", "memory"), ("coordination", "memory")]
