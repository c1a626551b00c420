"""The coordination on its socket: who is silent, who sends nonsense, who may connect; and a session without answers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import stat
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from logkernel.broker.control_socket import address
from logkernel.cluster.processes.coordination import CoordinationServer
from logkernel.cluster.processes.messages import LENGTH, SOCKET, VERSION, Frames, Message, pack
from logkernel.cluster.processes.session import SocketSession
from logkernel.cluster.store import SharedStore
from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError
from logkernel.plugins.transport import memory

SOON_S = 60.0
BEARS_MS = 2_000
"""A session's timeout that ends no session of a broker that speaks, though the machine stalls."""


def new_store() -> SharedStore:
    def no_log() -> Any:
        raise AssertionError("memory needs no log")

    found = memory.logkernel_coordination("memory", no_log)
    assert found is not None
    return SharedStore(found)


class Raw:
    """A broker of the test's own making: frames as it likes them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = Frames()
        self._waiting: list[Message] = []

    async def ask(self, message: Message) -> Message:
        self.send(pack(message))
        return await self.next()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def next(self) -> Message:
        while not self._waiting:
            data = await asyncio.wait_for(self._reader.read(1 << 16), SOON_S)
            assert data, "the connection ended"
            self._waiting += self._frames.feed(data)
        return self._waiting.pop(0)

    async def ended(self) -> None:
        """Wait for the end of the connection."""
        with contextlib.suppress(ConnectionError):
            while await asyncio.wait_for(self._reader.read(1 << 16), SOON_S):
                pass

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


HELLO: Message = {"call": "hello", "id": 0, "v": VERSION, "timeout_ms": 60_000}
Connect = Callable[[], Coroutine[Any, Any, Raw]]


@contextlib.asynccontextmanager
async def served(folder: Path, store: SharedStore) -> AsyncIterator[Connect]:
    server = CoordinationServer(store, str(folder))
    await server.start()
    raws: list[Raw] = []

    async def connect() -> Raw:
        with address(str(folder), SOCKET) as path:
            raws.append(Raw(*await asyncio.open_unix_connection(path)))
        return raws[-1]

    try:
        yield connect
    finally:
        for raw in raws:
            await raw.close()
        await server.close()
        assert not (folder / SOCKET).exists()
        assert store.sessions == []


def test_a_broker_that_is_silent_loses_its_session_and_its_late_commit_is_void(tmp_path: Path) -> None:
    async def run() -> None:
        store = new_store()
        async with served(tmp_path, store) as connect:
            raw = await connect()
            assert "result" in await raw.ask({**HELLO, "timeout_ms": BEARS_MS})
            await raw.ask({"call": "announce", "id": 1, "node": 1, "value": {}})
            assert set(store.brokers) == {1}
            await raw.ended()
            assert store.brokers == {}
            raw.send(pack({"call": "commit", "id": 2, "changes": [["config", "topic:t", {}]]}))
            other = await connect()  # served after what was sent before it
            await other.ask(HELLO)
            assert [each.kind for each in store.keeper.changes()] == ["broker_epoch"]

    asyncio.run(run())


def test_a_broker_that_gives_signs_of_life_keeps_its_session(tmp_path: Path) -> None:
    async def run() -> None:
        store = new_store()
        async with served(tmp_path, store) as connect:
            silent, living = await connect(), await connect()
            for raw, node in ((silent, 1), (living, 2)):
                await raw.ask({**HELLO, "timeout_ms": BEARS_MS})
                await raw.ask({"call": "announce", "id": 1, "node": node, "value": {}})
            beating = asyncio.create_task(beat(living))
            await silent.ended()
            assert set(store.brokers) == {2}
            beating.cancel()

    async def beat(raw: Raw) -> None:
        while True:
            raw.send(pack({"beat": 1}))
            await asyncio.sleep(0.02)

    asyncio.run(run())


@pytest.mark.parametrize("data", [LENGTH.pack(2**32 - 1), LENGTH.pack(2) + b"no", pack({"call": "kept", "id": "x"})])
def test_what_is_no_message_ends_the_session(tmp_path: Path, data: bytes) -> None:
    async def run() -> None:
        async with served(tmp_path, new_store()) as connect:
            raw = await connect()
            await raw.ask(HELLO)
            raw.send(data)
            await raw.ended()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"call": "kept", "id": 0}, "begins with hello"),
        ({**HELLO, "v": 2}, f"begins with hello in version {VERSION}"),
        ({**HELLO, "timeout_ms": 5}, "timeout is from"),
        ({**HELLO, "timeout_ms": None}, "timeout is from"),
    ],
)
def test_a_bad_hello_is_refused(tmp_path: Path, message: Message, told: str) -> None:
    async def run() -> None:
        async with served(tmp_path, new_store()) as connect:
            raw = await connect()
            answer = await raw.ask(message)
            assert told in answer["message"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"call": "format", "id": 1}, "no call 'format'"),
        ({"call": "announce", "id": 1, "node": "one", "value": {}}, "node is a number"),
        ({"call": "announce", "id": 1, "node": 1, "value": []}, "fact is an object"),
        ({"call": "commit", "id": 1, "changes": [["topic"]]}, "a change is"),
        ({"call": "commit_as_controller", "id": 1, "changes": [], "term": 5}, "term 5 is over"),
    ],
)
def test_a_bad_call_is_refused_and_the_session_lives(tmp_path: Path, message: Message, told: str) -> None:
    async def run() -> None:
        async with served(tmp_path, new_store()) as connect:
            raw = await connect()
            await raw.ask(HELLO)
            assert told in (await raw.ask(message))["message"]
            assert (await raw.ask({"call": "kept", "id": 2}))["result"] == 0

    asyncio.run(run())


def test_only_the_owner_may_connect_however_long_the_path(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-long-name-of-a-folder"] * 6)
    folder.mkdir(parents=True)

    async def run() -> None:
        async with served(folder, new_store()) as connect:
            assert stat.S_IMODE((folder / SOCKET).stat().st_mode) == 0o600
            assert "result" in await (await connect()).ask(HELLO)

    asyncio.run(run())


# ---------------------------------------------------------------- the broker's side


def test_without_a_coordination_there_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(KafkaStorageError, match="no coordination answers"):
        SocketSession(str(tmp_path), 1000)


class Answering:
    """A coordination that answers the first so many calls, and then keeps the connection open, or ends it."""

    def __init__(self, folder: Path) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen(1)

    def serve(self, answers: int, end: bool) -> None:
        self._connection, _ = self._listening.accept()
        frames = Frames()
        while answers:
            for message in frames.feed(self._connection.recv(1 << 16)):
                if "call" in message:
                    self._connection.sendall(pack({"id": message["id"], "result": None}))
                    answers -= 1
        if end:
            self._connection.recv(1)
            self._connection.close()

    def close(self) -> None:
        self._listening.close()
        self._connection.close()


@pytest.mark.parametrize("end", [True, False], ids=["broken connection", "late answer"])
def test_a_call_without_an_answer_ends_the_session(tmp_path: Path, end: bool) -> None:
    async def run() -> None:
        coordination = Answering(tmp_path)
        serving = asyncio.create_task(asyncio.to_thread(coordination.serve, 2, end))
        told: list[str] = []
        session = await asyncio.to_thread(SocketSession, str(tmp_path), 60_000, answer_s=SOON_S if end else 0.5)

        class Events:
            def on_changes(self, changes: object) -> None: ...

            def on_controller(self, node_id: int | None, term: int) -> None: ...

            def on_session(self, state: str) -> None:
                told.append(state)

        await asyncio.to_thread(session.subscribe, Events(), lambda: None)
        with pytest.raises(KafkaStorageError, match="may have carried it out"):
            await asyncio.to_thread(session.commit, [MetadataChange("config", "topic:t", {})])
        with pytest.raises(KafkaStorageError, match="begin a new one"):
            session.kept()
        session.poll()
        assert told == ["lost"]
        await serving
        coordination.close()

    asyncio.run(run())
