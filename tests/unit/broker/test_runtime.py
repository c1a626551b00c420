"""Time, chance, ids and threads enter a broker by its runtime alone, so that a simulation can own them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

import logkernel.broker
from logkernel.broker.runtime import Randomness

FOLDER = Path(logkernel.broker.__path__[0])
SOURCES = {"time", "random", "secrets", "threading", "os.urandom", "os.getrandom", "uuid.uuid1", "uuid.uuid4",
           "datetime.datetime", "concurrent.futures.ThreadPoolExecutor"}  # fmt: skip
"""Modules and names that give time, chance, ids or threads."""
ALLOWED = {
    "timers.py": {"time"},
    "runtime.py": {"os.urandom"},
    "workers.py": {"threading", "concurrent.futures.ThreadPoolExecutor"},
    "cleaner.py": {"threading"},  # a worker's throttle: a lock, and an event to end its wait
    "serve.py": {"concurrent.futures.ThreadPoolExecutor"},  # sets `run_flush`
}


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


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_nothing_else_asks_the_system_for_time_or_chance(path: Path) -> None:
    assert set(used(path.read_text())) <= ALLOWED.get(str(path.relative_to(FOLDER)), set())


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
