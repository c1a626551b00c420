"""A cluster that `logkernel serve --processes` runs, as a test starts, harms and ends it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import logkernel
from logkernel.admin import NewTopic
from logkernel.broker.control_socket import ask
from logkernel.errors import KafkaError
from logkernel.remote import RemoteLog

READY = "logkernel listening on "
SOON_S = 180.0


class ServedProcesses:
    """Use as a context manager: nothing of it runs afterwards."""

    def __init__(self, data: Path, brokers: int = 3, *settings: str, processes: bool = True) -> None:
        self.data = data
        self.brokers = brokers
        self.servers = ""
        self._settings = settings
        self._processes = processes
        self._log = data.with_suffix(".log")
        self._pids: set[int] = set()
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ServedProcesses:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        if self.process is not None:
            self.process.kill()
            self._forget()
        wait_for(lambda: not any(map(alive, self._pids)), "brokers outlive their parent")

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "logkernel", "serve", "--brokers", str(self.brokers), "--data", str(self.data)]
        command += ["--listen", "127.0.0.1:0", *(["--processes"] if self._processes else [])]
        return command + [word for setting in self._settings for word in ("--set", setting)]

    def start(self) -> ServedProcesses:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], SOON_S)
        line = self.process.stdout.readline() if ready else ""
        assert line.startswith(READY), f"{line!r}\n{self.log()[-4000:]}"
        self.servers = line.split()[3]
        self._pids |= {self.pid(node) for node in range(1, self.brokers + 1)}
        return self

    def _forget(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.wait(SOON_S)
        self.process.stdout.close()
        self.process = None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it politely; returns its exit code."""
        assert self.process is not None
        process = self.process
        process.send_signal(number)
        code = process.wait(SOON_S)
        self._forget()
        return code

    def kill(self) -> None:
        """End the parent as by kill -9."""
        assert self.process is not None
        self.process.kill()
        self._forget()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    # ------------------------------------------------------------ brokers

    def folder(self, node: int) -> Path:
        return self.data / f"broker-{node}"

    def pid(self, node: int) -> int:
        """Of the process that is broker `node`. Raises `OSError` while there is none."""
        return int(ask(str(self.folder(node)), "status", {})["result"]["pid"])

    def pids(self) -> list[int]:
        return [self.pid(node) for node in range(1, self.brokers + 1)]

    def signal(self, node: int, number: int) -> None:
        """Once it runs."""
        wait_for(lambda: self.pid(node) > 0, f"broker {node} does not come back", self.log)
        os.kill(self.pid(node), number)

    def resume(self, pid: int) -> None:
        """Let a broker go on that was stopped, and does not say its own process id."""
        os.kill(pid, signal.SIGCONT)

    # ------------------------------------------------------------ what clients see

    def connect(self) -> RemoteLog:
        return logkernel.connect(self.servers)

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        with self.connect() as remote, remote.admin() as admin:
            config = {name.replace("_", "."): value for name, value in settings.items()}
            admin.create_topics(NewTopic(topic, partitions, self.brokers, config))
        self.wait_for_isr(topic, self.brokers)

    def rows(self, topic: str) -> list[Any]:
        with self.connect() as remote, remote.admin() as admin:
            return list(admin.describe_topics([topic])[topic].partitions)

    def wait_for_isr(self, topic: str, count: int) -> None:
        def ready() -> bool:
            rows = self.rows(topic)
            return all(len(row.isr) >= count and row.leader is not None for row in rows)

        wait_for(ready, f"{topic} has not {count} replicas in sync", self.log)

    def leader(self, topic: str) -> int:
        return int(self.rows(topic)[0].leader)

    def wait_for_leader(self, topic: str, other_than: int) -> None:
        wait_for(lambda: self.leader(topic) not in (other_than, -1), f"{topic} has no other leader", self.log)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(ready: Callable[[], bool], problem: str, log: Callable[[], str] = str) -> None:
    deadline_s = time.monotonic() + SOON_S
    while True:
        try:
            if ready():
                return
        except (KafkaError, OSError, TypeError):  # while brokers come and go
            pass
        assert time.monotonic() < deadline_s, f"{problem}\n{log()[-4000:]}"
        time.sleep(0.02)
