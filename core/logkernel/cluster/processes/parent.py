"""The process above the brokers: keeps their coordination, starts them, and restarts brokers that die.

    signal ─▶ stop ───────────┐
    SIGCHLD ─▶ exit codes ────┼─▶ supervision ─▶ start, SIGTERM, SIGKILL
    a line of a broker: ready ┘
    sessions.sock ◀─▶ coordination ─▶ the durable log

A broker lives no longer than this process: it holds the other end of the broker's standard input (see `child`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import IO, Final

from logkernel.cluster.folder import coordination_folder
from logkernel.cluster.processes.child import ALONE
from logkernel.cluster.processes.coordination import CoordinationServer
from logkernel.cluster.processes.supervision import FAILED, Action, State, Supervision, ToDo
from logkernel.cluster.store import SharedStore

READY: Final = "logkernel listening on "
"""How the line begins by which a broker says that it is ready; its listeners follow, `config.listeners.listening`."""
MAX_LINE_BYTES: Final = 1 << 16

log = logging.getLogger("logkernel.processes")

Command = Callable[[int, str, int], list[str]]
"""(node id, address to listen on, how many brokers it has to know before it is ready) → the program that is the
broker."""


class Parent:
    """See the module. `run` does it all, on the running loop."""

    def __init__(self, path: str, store: SharedStore, addresses: dict[int, str], command: Command) -> None:
        """`addresses` is node id → "host:port"; a broker keeps a port that it was given for its 0."""
        self.addresses = dict(addresses)
        self._store = store
        self._command = command
        self._coordination = CoordinationServer(store, coordination_folder(path))
        self._supervision = Supervision(addresses)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lines: dict[int, bytearray] = {}
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, ready: Callable[[], None], signals: Sequence[int]) -> int:
        """Serve until one of `signals` arrives; returns the exit code. `ready` is called when all brokers serve.

        Raises `OSError` where the coordination's socket cannot be made.
        """
        self._ready = ready
        await self._coordination.start()
        for number in signals:
            self._loop.add_signal_handler(number, self._stop)
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        try:
            self._on_time()
            await self._ended.wait()
        finally:
            self._kill_all()
            await self._coordination.close()
        return self._supervision.exit_code or 0

    # ------------------------------------------------------------ events

    def _on_time(self) -> None:
        self._carry_out(self._supervision.on_time(_now_ms()))

    def _stop(self) -> None:
        log.info("stopping")
        controller = self._store.controller_id
        self._carry_out(self._supervision.stop(_now_ms(), () if controller is None else (controller,)))

    def _reap(self) -> None:
        for node, process in list(self._processes.items()):
            code = process.poll()
            if code is not None:
                self._exited(node, process, code)

    def _exited(self, node: int, process: subprocess.Popen[bytes], code: int) -> None:
        del self._processes[node]
        self._read(node, process.stdout)  # what it said last
        self._let_go(process)
        self._died(node, code)

    def _died(self, node: int, code: int) -> None:
        actions = self._supervision.on_exit(node, code, _now_ms())
        if self._supervision.state(node) is State.WAITING:
            wait_ms = self._supervision.back_off_ms(node)
            log.error("broker died: node_id=%d exit=%d restart_in_ms=%d", node, code, wait_ms)
        self._carry_out(actions)

    def _says(self, node: int, line: str) -> None:
        if not line.startswith(READY):
            print(line, flush=True)
            return
        self.addresses[node] = line.split()[3].partition(",")[0].rpartition("://")[2]
        was_formed = self._supervision.is_formed
        self._carry_out(self._supervision.on_ready(node, _now_ms()))
        if was_formed:
            log.info("broker is back: node_id=%d address=%s", node, self.addresses[node])
        elif self._supervision.is_formed:
            self._ready()

    def _carry_out(self, actions: Sequence[Action]) -> None:
        for to_do, node in actions:
            if to_do is ToDo.START:
                self._start(node)
            elif node in self._processes:
                self._signal(node, to_do)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._supervision.next_deadline()
        if deadline_ms is not None:
            self._timer = self._loop.call_later(max(0, deadline_ms - _now_ms()) / 1000, self._on_time)
        if self._supervision.exit_code is not None:
            self._ended.set()

    # ------------------------------------------------------------ processes

    def _start(self, node: int) -> None:
        known = 1 if self._supervision.is_formed else len(self.addresses)
        command = self._command(node, self.addresses[node], known)
        try:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:  # no memory, or too many processes or open files: as if it had died at once
            log.error("broker not started: node_id=%d error=%s", node, error)
            self._loop.call_soon(self._died, node, FAILED)
            return
        self._processes[node] = process
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._lines[node] = bytearray()
        self._loop.add_reader(process.stdout.fileno(), self._read, node, process.stdout)

    def _signal(self, node: int, to_do: ToDo) -> None:
        process = self._processes[node]
        if to_do is ToDo.KILL:
            log.error("broker does not stop, and is killed: node_id=%d", node)
            process.kill()
            return
        if to_do is ToDo.FINISH:
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                os.write(process.stdin.fileno(), ALONE)
        process.terminate()
        process.send_signal(signal.SIGCONT)  # one that was stopped hears of it

    def _read(self, node: int, pipe: IO[bytes] | None) -> None:
        """What a broker says: lines, of which one says that it is ready."""
        assert pipe is not None
        lines = self._lines[node]
        while not pipe.closed:
            try:
                data = os.read(pipe.fileno(), MAX_LINE_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._loop.remove_reader(pipe.fileno())
                return
            lines += data
            while b"\n" in lines or len(lines) > MAX_LINE_BYTES:
                line, _, rest = lines.partition(b"\n")
                lines[:] = rest
                self._says(node, line.decode(errors="replace"))

    def _let_go(self, process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            if pipe is process.stdout:
                self._loop.remove_reader(pipe.fileno())
            with contextlib.suppress(OSError):
                pipe.close()

    def _kill_all(self) -> None:
        """Nothing runs when this process has failed."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop.remove_signal_handler(signal.SIGCHLD)
        for process in self._processes.values():
            process.kill()
            process.wait()
            self._let_go(process)


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


def program() -> list[str]:
    """The beginning of a command that runs this program again."""
    return [sys.executable, "-m", "logkernel"]
