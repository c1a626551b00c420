"""Time, chance, ids and threads enter a broker by its runtime alone, so that a simulation can own them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import logkernel
from logkernel.broker.runtime import Randomness

CORE = Path(logkernel.__path__[0])
ROOMS = [
    *(CORE / room for room in ("broker", "controller", "partition", "storage", "peer", "requests", "kernel", "guards")),
    *(CORE / "plugins" / room for room in ("services", "cleanup", "election", "assignors", "compression")),
]
"""What runs in a broker, but for the transport: sockets are its work."""
MODULES = [CORE / "plugin_faults.py"]
SOURCES = {"time", "random", "secrets", "threading", "_thread", "multiprocessing", "os.urandom", "os.getrandom",
           "uuid.uuid1", "uuid.uuid4", "datetime.datetime", "concurrent.futures.ThreadPoolExecutor"}  # fmt: skip
"""Modules and names that give time, chance, ids or threads."""
LOCK = {"threading"}
ALLOWED = {
    "broker/timers.py": {"time"},
    "broker/runtime.py": {"os.urandom"},
    "broker/workers.py": {"threading", "concurrent.futures.ThreadPoolExecutor"},
    "broker/hang_watch.py": {"threading"},  # looks at calls that do not return; nothing in a broker depends on it
    "broker/cleaner.py": LOCK,  # of the throttle that workers share
    "broker/loop_calls.py": LOCK,  # asks on which thread it is called
    "broker/serve.py": {"concurrent.futures.ThreadPoolExecutor"},  # sets `run_flush`
    "storage/epochs.py": LOCK,
    "storage/directory.py": {*LOCK, "uuid.uuid4"},  # where no broker opens it
    "storage/directories.py": {"uuid.uuid4", "concurrent.futures.ThreadPoolExecutor"},  # as many as settings say
    "kernel/hooks.py": {"time", *LOCK},  # how long a plugin's code took, and on which thread it runs, for the log
    "guards/guard.py": {"time"},  # likewise
    "guards/authorizer.py": {"time"},  # likewise
    "plugin_faults.py": LOCK,  # likewise
    "storage/compaction/rewriting.py": LOCK,
    "storage/reader.py": {"time"},  # reads beside a broker, in another process
    "storage/simdisk.py": {"random"},  # from its seed
}
"""File → what it may use: a lock waits for no time and starts no thread."""


def used(source: str) -> Iterator[str]:
    """Which of `SOURCES` a module imports or calls."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in SOURCES)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
            yield from (name for name in names if name in SOURCES)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in SOURCES:
                yield name


def files() -> Iterator[Path]:
    yield from MODULES
    for room in ROOMS:
        yield from room.rglob("*.py")


def name_of(path: Path) -> str:
    return str(path.relative_to(CORE))


def test_nothing_else_asks_the_system_for_time_or_chance() -> None:
    found = {name_of(path): set(used(path.read_text())) for path in files()}
    assert {name: uses for name, uses in found.items() if uses} == ALLOWED, "ask the runtime, or take it as an argument"
    assert {"broker/broker.py", "plugins/services/groups/machine.py", "storage/log.py"} <= found.keys()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", ["time"]),
        ("from uuid import UUID, uuid4", ["uuid.uuid4"]),
        ("import os\nos.urandom(4)", ["os.urandom"]),
    ],
)
def test_the_look_finds_what_it_looks_for(source: str, found: list[str]) -> None:
    assert list(used(source)) == found


def test_a_simulation_overrides_bytes_alone() -> None:
    class Counting(Randomness):
        def bytes(self, count: int) -> bytes:
            return bytes(range(count))

    chance = Counting()
    assert chance.uuid() == UUID("00010203-0405-4607-8809-0a0b0c0d0e0f")
    assert chance.fraction() == 0x00010203 / (1 << 32)
