"""The control socket: how the command line talks to the broker that runs in a data folder.

A UNIX socket `control.sock` in every data folder, of mode 0600: who owns the folder commands the broker, nobody else,
and nobody over a network. One JSON object a line, each way:

    {"v": 1, "id": 7, "command": "topic.expire", "arguments": {"topic": "orders"}}
    {"v": 1, "id": 7, "ok": true, "result": {…}}
    {"v": 1, "id": 7, "ok": false, "error": "UnknownTopicOrPartition", "message": "orders"}

Answers carry the id of their request and may come in another order. A line is at most 64 KiB; whoever sends a longer
one, or bytes that are no such object, is told so and cut off.

While a plugin holds up the broker's thread, its loop accepts nobody. `ControlServer.refuse_waiting` does so then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

NAME = "control.sock"
VERSION = 1
MAX_LINE_BYTES = 1 << 16
REFUSAL_S = 0.5
"""Seconds that one command may take to arrive, where the broker's thread is held up."""
MAX_PATH_BYTES = 107
"""`sockaddr_un` holds 108, the last one a zero."""

log = logging.getLogger("logkernel.control")

Reply = Callable[[dict[str, Any]], None]
Handle = Callable[[str, dict[str, Any], Reply], None]
"""Takes command and arguments; answers once, now or later, with `ok` and what belongs to it."""


@contextmanager
def address(folder: str, name: str = NAME) -> Iterator[str]:
    """A path of the socket in `folder` that fits a socket's address, however long the folder's own path is.

    Raises `OSError`.
    """
    path = f"{folder}/{name}"
    if len(os.fsencode(path)) <= MAX_PATH_BYTES:
        yield path
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def bind(folder: str, name: str = NAME) -> socket.socket:
    """A bound socket that only the owner may connect to. The folder's lock is held: a socket there is a dead one.

    Raises `OSError`."""
    with address(folder, name) as path:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                raise FileExistsError(f"{folder}/{name} is no socket")
            os.unlink(path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(path)
            os.chmod(path, 0o600)  # before listening: until then a connect is refused
        except OSError:
            made.close()
            raise
    return made


def unbind(folder: str, name: str = NAME) -> None:
    """Remove the socket if it exists."""
    with contextlib.suppress(OSError), address(folder, name) as path:
        os.unlink(path)


class ControlServer:
    """Listens in each of `folders`. A folder in which no socket can be made is logged and left out."""

    def __init__(self, folders: list[str], handle: Handle) -> None:
        self._folders = folders
        self._handle = handle
        self._servers: list[tuple[str, asyncio.AbstractServer]] = []
        self._doors: list[socket.socket] = []
        """The same sockets again, for a thread that accepts in the loop's place."""
        self._open: set[asyncio.Transport] = set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        for folder in self._folders:
            try:
                made = bind(folder)
                door = made.dup()
                server = await loop.create_unix_server(lambda: _Connection(self._handle, self._open), sock=made)
            except OSError as error:
                log.warning("no control socket: folder=%s error=%s", folder, error)
            else:
                door.setblocking(False)
                self._doors.append(door)
                self._servers.append((folder, server))

    def refuse_waiting(self, error: str, message: str) -> None:
        """Answer the commands that nobody accepted yet with this error. From any thread; for a loop that is held up."""
        for door in self._doors:
            with contextlib.suppress(OSError, _NoCommand):  # nobody waits there, or is gone again
                channel, _ = door.accept()
                with channel, channel.makefile("rb") as lines:
                    channel.settimeout(REFUSAL_S)
                    number, _, _ = _parse(lines.readline(MAX_LINE_BYTES))
                    channel.sendall(_row(number, {"ok": False, "error": error, "message": message}))

    async def close(self) -> None:
        for door in self._doors:
            door.close()
        self._doors.clear()
        for folder, server in self._servers:
            server.close()
            unbind(folder)
        self._servers.clear()
        for transport in list(self._open):
            transport.close()


def _parse(line: bytes) -> tuple[Any, str, dict[str, Any]]:
    """Of a command: its id, its name and its arguments. Raises `_NoCommand`."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("no object")
        version, number = request["v"], request.get("id")
        command, arguments = request["command"], request.get("arguments", {})
        if not isinstance(command, str) or not isinstance(arguments, dict):
            raise ValueError("command is a string, arguments an object")
    except (ValueError, KeyError, RecursionError) as error:
        raise _NoCommand(None, "InvalidRequest", f"no command: {error}") from error
    if version != VERSION:
        raise _NoCommand(number, "UnsupportedVersion", f"version {version!r} is not {VERSION}")
    return number, command, arguments


def _row(number: Any, answer: dict[str, Any]) -> bytes:
    row = {"v": VERSION, "id": number, **answer}
    return json.dumps(row, separators=(",", ":"), default=str).encode() + b"\n"


class _NoCommand(ValueError):
    """A line that is no command: (its id, error, message)."""


class _Connection(asyncio.Protocol):
    """Cuts bytes into lines, lines into commands."""

    def __init__(self, handle: Handle, open_: set[asyncio.Transport]) -> None:
        self._handle = handle
        self._all = open_
        self._buffer = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._all.add(self._transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._all.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while not self._transport.is_closing():
            line, newline, rest = self._buffer.partition(b"\n")
            if len(line) > MAX_LINE_BYTES:
                self._refuse(None, "InvalidRequest", f"a line has at most {MAX_LINE_BYTES} bytes")
                return
            if not newline:
                return
            self._buffer = rest
            self._line(bytes(line))

    def _line(self, line: bytes) -> None:
        try:
            number, command, arguments = _parse(line)
        except _NoCommand as error:
            self._refuse(*error.args)
            return
        self._handle(command, arguments, lambda answer: self._reply(number, answer))

    def _refuse(self, number: Any, error: str, message: str) -> None:
        self._reply(number, {"ok": False, "error": error, "message": message})
        self._transport.close()

    def _reply(self, number: Any, answer: dict[str, Any]) -> None:
        if not self._transport.is_closing():
            self._transport.write(_row(number, answer))


class NoBroker(OSError):
    """No broker answers in a folder."""


def ask(folder: str, command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Send one command and wait for its answer. Raises `NoBroker`, `OSError`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        try:
            with address(folder) as path:
                channel.connect(path)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise NoBroker(
                f"no broker runs on {folder} (nothing answers at {folder}/{NAME}); start one with"
                f" `logkernel serve --data {folder}`, or name another directory with --data"
            ) from None
        row = {"v": VERSION, "id": 1, "command": command, "arguments": arguments}
        channel.sendall(json.dumps(row).encode() + b"\n")
        with channel.makefile("rb") as lines:
            line = lines.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError(f"the broker on {folder} stopped before it answered; it may have carried out the command")
    answer: dict[str, Any] = json.loads(line)
    return answer
