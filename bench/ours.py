"""logkernel as installed in this interpreter or another, started by its command line."""

from __future__ import annotations

import sys
from pathlib import Path

import clients
from members import MEMBERS
from server import Server, free_ports


def compiled() -> str:
    """What of ours is machine code."""
    from logkernel.record import columns, loops

    parts = {"record codec": loops.COMPILED, "columns": columns.COMPILED}
    return ", ".join(f"{name} {'compiled' if is_so else 'plain Python'}" for name, is_so in parts.items())


class LogkernelServer(Server):
    name = "logkernel"

    def __init__(
        self, folder: Path, settings: dict[str, str] | None = None, *, python: Path = Path(sys.executable)
    ) -> None:
        super().__init__(folder, settings)
        self.python = python

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def command(self) -> list[str]:
        options = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        listen = [] if "listeners" in self.settings else ["--listen", self.bootstrap]
        return [str(self.python), "-m", "logkernel", "serve", "--data", str(self.data), *listen, *options]


class LogkernelMember(LogkernelServer):
    """A broker of a cluster on ZooKeeper (HOST:PORT/CHROOT)."""

    def __init__(self, folder: Path, node_id: int, zookeeper: str, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        self._member = ["--coordination", f"zookeeper://{zookeeper}", "--node-id", str(node_id)]

    def command(self) -> list[str]:
        return [*super().command(), *self._member]


def logkernel_members(folder: Path, zookeeper: str, settings: dict[str, str] | None = None) -> list[Server]:
    return [LogkernelMember(folder / f"broker-{node_id}", node_id, zookeeper, settings) for node_id in MEMBERS]


class LogkernelCluster:
    """Brokers of one process, `logkernel serve --brokers 3`, or with a process each, `--processes`."""

    def __init__(self, folder: Path, brokers: int = 3, *options: str) -> None:
        self._brokers = brokers
        self._server = _ServedCluster(folder, brokers, options)

    @property
    def bootstrap(self) -> str:
        return self._server.bootstrap

    @property
    def pids(self) -> list[int]:
        """The first process of each tree."""
        return [self._server.pid]

    def start(self) -> None:
        self._server.prepare()
        self._server.start()
        clients.wait_for_brokers(self.bootstrap, self._brokers)

    def stop(self) -> None:
        self._server.stop()


class _ServedCluster(LogkernelServer):
    name = "logkernel"

    def __init__(self, folder: Path, brokers: int, options: tuple[str, ...]) -> None:
        super().__init__(folder)
        self._options = options
        self.port = free_ports(brokers)
        self._brokers = brokers

    def command(self) -> list[str]:
        return [*super().command(), "--brokers", str(self._brokers), *self._options]
