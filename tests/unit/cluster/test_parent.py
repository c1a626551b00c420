"""The process above the brokers, over programs that only say that they are ready."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from logkernel.cluster.folder import coordination_folder, open_store
from logkernel.cluster.processes.parent import Parent

SERVES = """
import os, select, signal, sys
node, address, known, folder = sys.argv[1:]

def stop(*_):
    if select.select([0], [], [], 0)[0]:
        print(node, "is alone", flush=True)
    sys.exit(0)

signal.signal(signal.SIGTERM, stop)
with open(os.path.join(folder, node), "a") as lives:
    print(address, known, os.getpid(), file=lives)
print("a plugin says", node, flush=True)
listeners = "PLAINTEXT://" + address.replace(":0", f":{node}000") + ",BROKERS://b:1"
print("logkernel listening on", listeners, "protocols=PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT data=x", flush=True)
while True:
    signal.pause()
"""
SOON_S = 30.0


class Watched:
    """A parent of two brokers, and what happened to it."""

    def __init__(self, folder: Path, scripts: dict[int, str], program: str) -> None:
        self._program = program
        (folder / "lives").mkdir()
        self._lives = folder / "lives"
        self._scripts = scripts
        self.store = open_store(folder)
        self.parent = Parent(str(folder), self.store, dict.fromkeys(scripts, "h:0"), self._command)
        self.ready = asyncio.Event()

    def _command(self, node: int, address: str, known: int) -> list[str]:
        return [self._program, "-c", self._scripts[node], str(node), address, str(known), str(self._lives)]

    def lives(self, node: int) -> list[tuple[str, int]]:
        """Where the broker was started each time, and how many it had to know."""
        return [(address, int(known)) for address, known, _ in self._noted(node)]

    def kill(self, node: int) -> None:
        os.kill(int(self._noted(node)[-1][2]), signal.SIGKILL)

    def _noted(self, node: int) -> list[list[str]]:
        found = self._lives / str(node)
        return [line.split() for line in found.read_text().splitlines()] if found.exists() else []

    async def run(self) -> int:
        return await self.parent.run(self.ready.set, [signal.SIGUSR1])

    async def wait_for(self, ready: Callable[[], bool]) -> None:
        for _ in range(int(SOON_S / 0.01)):
            if ready():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it did not happen")


def watched(
    folder: Path,
    scripts: dict[int, str],
    body: Callable[[Watched], Coroutine[Any, Any, None]],
    program: str = sys.executable,
) -> int:
    """Run the parent beside `body`; its exit code."""

    async def both() -> int:
        over = Watched(folder, scripts, program)
        running = asyncio.create_task(over.run())
        try:
            await body(over)
            return await asyncio.wait_for(running, SOON_S)
        finally:
            running.cancel()
            over.store.close()

    return asyncio.run(both())


def stop() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def test_a_signal_stops_all_and_what_brokers_print_is_passed_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def body(over: Watched) -> None:
        await asyncio.wait_for(over.ready.wait(), SOON_S)
        assert over.parent.addresses == {1: "h:1000", 2: "h:2000"}
        assert over.lives(1) == over.lives(2) == [("h:0", 2)], "each has to know both"
        stop()

    assert watched(tmp_path, {1: SERVES, 2: SERVES}, body) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == ["2 is alone", "a plugin says 1", "a plugin says 2"]
    assert list(Path(coordination_folder(tmp_path)).glob("*.sock")) == []


def test_a_broker_that_dies_is_started_again_where_it_was(tmp_path: Path) -> None:
    async def body(over: Watched) -> None:
        await asyncio.wait_for(over.ready.wait(), SOON_S)
        over.kill(2)
        await over.wait_for(lambda: len(over.lives(2)) == 2)
        assert over.lives(2) == [("h:0", 2), ("h:2000", 1)], "the others may be away meanwhile"
        assert len(over.lives(1)) == 1
        stop()

    assert watched(tmp_path, {1: SERVES, 2: SERVES}, body) == 0


@pytest.mark.parametrize(("code", "told"), [(2, 2), (7, 1)])
def test_a_broker_that_does_not_start_ends_the_others(tmp_path: Path, code: int, told: int) -> None:
    async def body(over: Watched) -> None:
        """It ends by itself."""

    assert watched(tmp_path, {1: SERVES, 2: f"import sys; sys.exit({code})"}, body) == told


def test_a_program_that_is_not_there_ends_the_start(tmp_path: Path) -> None:
    async def body(over: Watched) -> None:
        """It ends by itself."""

    assert watched(tmp_path, {1: SERVES}, body, str(tmp_path / "nothing")) == 1
