"""A broker under measurement: started, asked over a bare socket, killed; the same for ours and for Kafka."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections import deque
from pathlib import Path

READY_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
API_VERSIONS_V0 = struct.pack(">hhih", 18, 0, 1, 5) + b"bench"


QUIET_PORTS = range(20_000, 32_768)
"""Services rarely have them, Linux gives them to no connection, and tests/zookeepers.py draws lower ones."""
WORKERS = 16
"""Of pytest-xdist, each of which draws from ports of its own."""
_given: deque[int] = deque(maxlen=100)


def free_port() -> int:
    """A port that was free a moment ago, and that nobody takes while a server starts: Linux gives it to none who asks
    for any, no other worker of the tests draws it, nor does the next call."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = random.SystemRandom().choice(QUIET_PORTS[worker % WORKERS :: WORKERS])
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.append(port)
                return port


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that were free a moment ago."""
    while True:
        first = free_port()
        with contextlib.ExitStack() as held, contextlib.suppress(OSError, OverflowError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def ask_api_versions(link: socket.socket) -> bytes:
    """One ApiVersions v0 round trip; raises OSError where the peer hangs up."""
    link.sendall(struct.pack(">i", len(API_VERSIONS_V0)) + API_VERSIONS_V0)
    head = link.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        raise ConnectionError("closed before an answer")
    return link.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)


def _environment() -> dict[str, str]:
    """As a user has it: a shell that forbids Python its compiled files would have it compile all at each start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Server(ABC):
    """One broker on `folder` and one port. Subclasses say how it is formatted and what its command is."""

    name = "?"

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.settings = dict(settings or {})
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def log_path(self) -> Path:
        return self.folder / "server.log"

    def prepare(self) -> None:
        """Once before the first start: folders, formatting."""
        self.folder.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def command(self) -> list[str]:
        """What starts it, in the foreground."""

    def start(self) -> float:
        """Start it; returns the seconds from exec to its first answer (ApiVersions, asked every 2 ms)."""
        begun = time.perf_counter()
        self.launch()
        self.wait_for_answer()
        return time.perf_counter() - begun

    def launch(self) -> None:
        """Start it, and return at once."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(),
                start_new_session=True,  # as a service, a container or a terminal of its own has it (decision 032)
            )  # fmt: skip

    def wait_for_answer(self) -> None:
        deadline = time.perf_counter() + READY_TIMEOUT_S
        while time.perf_counter() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                tail = self.log_path.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{tail}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as link:
                self.ask(link)
                return
            time.sleep(0.002)
        raise RuntimeError(f"{self.name} gave no answer within {READY_TIMEOUT_S} s")

    def ask(self, link: socket.socket) -> None:
        """Ask what one that is ready answers. Raises OSError where it does not."""
        ask_api_versions(link)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
