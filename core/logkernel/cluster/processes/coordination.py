"""The coordination of brokers in processes, on a UNIX socket: a session of a `SharedStore` for each connection.

| what happens to a connection | what becomes of its session |
|---|---|
| it breaks, as its broker died | ended at once |
| nothing comes over it for its timeout | ended; what its broker sends later is refused with the connection |
| it sends what is no message | ended |
| it takes nothing of what it is told | ended, when too much waits for it |

Silence is counted in this process's ticks: if the coordination itself stalled, no broker's session ends.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from logkernel.broker.control_socket import bind, unbind
from logkernel.cluster.processes.messages import (
    MAX_FRAME_BYTES,
    SOCKET,
    VERSION,
    Frames,
    Message,
    changes_of,
    error_row,
    pack,
    rows_of,
)
from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest, LogkernelError, UnsupportedVersion

TICK_S: Final = 0.1
MIN_TIMEOUT_MS: Final = 300
MAX_TIMEOUT_MS: Final = 3_600_000
HELLO_TICKS: Final = 50
"""How long a connection may say nothing at all."""
MAX_BEHIND_BYTES: Final = 2 * MAX_FRAME_BYTES
"""What may wait for a session that does not read."""

log = logging.getLogger("logkernel.coordination")


class CoordinationServer:
    """Serves `store`; everything here runs on the running loop's thread."""

    def __init__(self, store: SharedStore, folder: str) -> None:
        """`folder` gets the socket; its owner may connect."""
        self._store = store
        self._folder = folder
        self._server: asyncio.AbstractServer | None = None
        self._connections: set[_Connection] = set()
        self._ticking: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Raises `OSError` where no socket can be made."""
        loop = asyncio.get_running_loop()
        made = bind(self._folder, SOCKET)
        self._server = await loop.create_unix_server(lambda: _Connection(self._store, self._connections), sock=made)
        self._ticking = loop.call_later(TICK_S, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ticking = loop.call_later(TICK_S, self._tick, loop)
        for connection in list(self._connections):
            connection.tick()

    async def close(self) -> None:
        """End every session and remove the socket; the store stays open."""
        if self._ticking is not None:
            self._ticking.cancel()
        if self._server is not None:
            self._server.close()
            unbind(self._folder, SOCKET)
        for connection in list(self._connections):
            connection.end()


class _Connection(asyncio.Protocol):
    """One broker's: `SessionEvents` that are sent to it."""

    def __init__(self, store: SharedStore, all_: set[_Connection]) -> None:
        self._store = store
        self._all = all_
        self._frames = Frames()
        self._session: StoreSession | None = None
        self._silent_ticks = 0
        self._allowed_ticks = HELLO_TICKS
        self._will_poll = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport

    # ------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._all.discard(self)
        if self._session is not None:
            self._session.close()

    def data_received(self, data: bytes) -> None:
        self._silent_ticks = 0
        try:
            for message in self._frames.feed(data):
                if self._transport.is_closing():
                    return
                if "call" in message:
                    self._call(message)
        except LogkernelError as error:
            log.error("a session ends, as it sent no message: error=%s", error)
            self.end()

    def tick(self) -> None:
        self._silent_ticks += 1
        if self._silent_ticks > self._allowed_ticks:
            log.warning("a session ends, as its broker was silent: ticks=%d tick_s=%s", self._silent_ticks, TICK_S)
            self.end()

    def end(self) -> None:
        """End the session by closing the connection."""
        if self._session is not None:
            self._session.close()
        self._transport.abort()

    # ------------------------------------------------------------ calls

    def _call(self, message: Message) -> None:
        number, name = message.get("id"), message["call"]
        if not isinstance(number, int):
            raise InvalidRequest("a call has a number as its id")
        try:
            if self._session is None:
                self._session = self._hello(message)
                answer: Message = {"id": number, "result": None}
            else:
                answer = {"id": number, "result": self._named(name)(self._session, message)}
        except Exception as error:
            if not isinstance(error, (LogkernelError, OSError)):
                log.exception("a call failed: call=%s", name)
            answer = error_row(number, error)
        self._poll()  # what happened before the answer is told before it
        self._send(answer)

    def _hello(self, message: Message) -> StoreSession:
        timeout_ms = message.get("timeout_ms")
        if message["call"] != "hello" or message.get("v") != VERSION:
            raise UnsupportedVersion(
                f"a session begins with hello in version {VERSION}, not with {message['call']!r}"
                f" in version {message.get('v')!r}"
            )
        if not isinstance(timeout_ms, int) or not MIN_TIMEOUT_MS <= timeout_ms <= MAX_TIMEOUT_MS:
            raise InvalidRequest(
                f"a session's timeout is from {MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS} ms, not {timeout_ms!r}"
            )
        self._allowed_ticks = math.ceil(timeout_ms / 1000 / TICK_S)
        return self._store.session()

    def _named(self, name: Any) -> Call:
        if name == "subscribe":
            return self._subscribe
        found = CALLS.get(name) if isinstance(name, str) else None
        if found is None:
            raise InvalidRequest(f"the coordination has no call {name!r}; it has {', '.join(CALLS)} and subscribe")
        return found

    def _subscribe(self, session: StoreSession, message: Message) -> None:
        session.subscribe(self, self._wakeup)

    # ------------------------------------------------------------ contracts.SessionEvents

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        self._send({"event": "changes", "changes": rows_of(changes)})

    def on_controller(self, node_id: int | None, term: int) -> None:
        self._send({"event": "controller", "node": node_id, "term": term})

    def on_session(self, state: str) -> None:
        """The store ended the session: close the connection."""
        self.end()

    def _wakeup(self) -> None:
        if not self._will_poll:
            self._will_poll = True
            self._loop.call_soon(self._poll)

    def _poll(self) -> None:
        self._will_poll = False
        if self._session is not None:
            self._session.poll()

    def _send(self, message: Message) -> None:
        if self._transport.is_closing():
            return
        try:
            frame = pack(message)
        except InvalidRequest as error:
            if "id" not in message:  # it must not miss an event
                log.error("a session ends, as an event is too long for it: error=%s", error)
                self.end()
                return
            frame = pack(error_row(message["id"], error))
        self._transport.write(frame)
        if self._transport.get_write_buffer_size() > MAX_BEHIND_BYTES:
            log.error("a session ends, as its broker reads nothing: waiting_bytes=%d", MAX_BEHIND_BYTES)
            self.end()


# ---------------------------------------------------------------- the calls

Call = Callable[[StoreSession, Message], Any]


def _number(message: Message, name: str) -> int:
    found = message.get(name)
    if not isinstance(found, int):
        raise InvalidRequest(f"{name} is a number, not {found!r}")
    return found


def _changes(session: StoreSession, message: Message) -> Any:
    kinds = message.get("kinds")
    if kinds is not None and not (isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)):
        raise InvalidRequest("kinds are a list of texts, or null for all")
    return rows_of(list(session.changes(kinds)))


def _commit(session: StoreSession, message: Message) -> None:
    session.commit(changes_of(message.get("changes")))


def _commit_as_controller(session: StoreSession, message: Message) -> None:
    session.commit_as_controller(changes_of(message.get("changes")), _number(message, "term"))


def _kept(session: StoreSession, message: Message) -> int:
    return session.kept()


def _replace(session: StoreSession, message: Message) -> None:
    session.replace(changes_of(message.get("changes")))


def _announce(session: StoreSession, message: Message) -> int:
    value = message.get("value")
    if not isinstance(value, dict):
        raise InvalidRequest("a broker's fact is an object")
    return session.announce(_number(message, "node"), value)


def _campaign(session: StoreSession, message: Message) -> int | None:
    return session.campaign(_number(message, "node"))


def _resign(session: StoreSession, message: Message) -> None:
    session.resign()


def _broker_epochs(session: StoreSession, message: Message) -> list[tuple[int, int]]:
    return list(session.broker_epochs().items())


def _read_controller(session: StoreSession, message: Message) -> tuple[int | None, int]:
    return session.read_controller()


def _partition_count(session: StoreSession, message: Message) -> int | None:
    topic = message.get("topic")
    if not isinstance(topic, str):
        raise InvalidRequest("a topic is a text")
    return session.partition_count(topic)


def _topic_settings(session: StoreSession, message: Message) -> Any:
    topics = message.get("topics")
    if not (isinstance(topics, list) and all(isinstance(topic, str) for topic in topics)):
        raise InvalidRequest("topics are a list of texts")
    return rows_of(session.topic_settings(topics))


def _close(session: StoreSession, message: Message) -> None:
    session.close()


CALLS: Mapping[str, Call] = {
    "changes": _changes,
    "commit": _commit,
    "commit_as_controller": _commit_as_controller,
    "kept": _kept,
    "replace": _replace,
    "announce": _announce,
    "campaign": _campaign,
    "resign": _resign,
    "broker_epochs": _broker_epochs,
    "read_controller": _read_controller,
    "partition_count": _partition_count,
    "topic_settings": _topic_settings,
    "close": _close,
}
