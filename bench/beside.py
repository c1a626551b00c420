"""Clients beside one another: each in a process of its own, one table of what a CPU-second of it does, with aims."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import process
from apache_kafka import KafkaServer
from ours import LogkernelServer, compiled


def common_options(doc: str | None, records: int) -> argparse.ArgumentParser:
    """The options of every such table."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=records)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--kafka", action="store_true")
    return parser


@contextmanager
def serving(kafka: bool) -> Iterator[tuple[Any, Path]]:
    """Our broker, or Apache Kafka, that serves; and the folder that its own lies in."""
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder:
        server = (KafkaServer if kafka else LogkernelServer)(Path(folder) / "broker", {})
        server.prepare()
        server.start()
        try:
            yield server, Path(folder)
        finally:
            server.stop()


@dataclass
class Spent:
    """What one run took: of the client alone, and of client and broker together."""

    records: int
    client_s: float
    broker_s: float
    wall_s: float

    @property
    def figures(self) -> tuple[float, float, float]:
        """Records a CPU-second of the client, a CPU-second of both, a second."""
        return (
            self.records / max(self.client_s, 1e-9),
            self.records / max(self.client_s + self.broker_s, 1e-9),
            self.records / max(self.wall_s, 1e-9),
        )


def measured(work: Callable[[], int]) -> None:
    """In the client's process: do it, and print what it cost."""
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    records = work()
    spent = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"records": records, "cpu_s": cpu_s, "wall_s": time.perf_counter() - begun}), flush=True)


def run_child(script: str, broker: int | None, *arguments: object) -> Spent:
    """Run `script --child ...`, which ends with a line of `measured`; `broker` is the pid of who serves it."""
    before = process.cpu_s(broker) if broker is not None else 0.0
    command = [sys.executable, script, "--child", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{arguments[0]} failed:\n{done.stderr[-3000:]}")
    broker_s = process.cpu_s(broker) - before if broker is not None else 0.0
    told = json.loads(done.stdout.splitlines()[-1])
    return Spent(told["records"], told["cpu_s"], broker_s, told["wall_s"])


@dataclass
class Beside:
    """Runs by client and size. `aims`: peer → how many times the peer our client should do."""

    aims: Mapping[str, float]
    ours: str = "ours"
    runs: dict[tuple[str, int], list[Spent]] = field(default_factory=dict)

    def add(self, name: str, size: int, spent: Spent) -> None:
        self.runs.setdefault((name, size), []).append(spent)

    def figures(self, name: str, size: int) -> tuple[float, ...] | None:
        """Medians of (a CPU-second of the client, of client and broker, a second)."""
        rows = self.runs.get((name, size))
        if not rows:
            return None
        return tuple(statistics.median(column) for column in zip(*(row.figures for row in rows), strict=True))

    def text(self) -> str:
        head = ("client", "bytes", "client CPU-s", "with broker's", "second", "ours / it", "aim")
        rows: list[Sequence[Any]] = [head]
        for name, size in self.runs:
            found, mine = self.figures(name, size), self.figures(self.ours, size)
            assert found is not None
            ratio = mine[0] / found[0] if mine is not None and name in self.aims else None
            cells = [f"{value / 1000:.1f}" for value in found]
            rows.append((name, size, *cells, "-" if ratio is None else f"{ratio:.2f}", self._verdict(name, ratio)))
        widths = [max(len(str(row[index])) for row in rows) for index in range(len(head))]
        lines = []
        for row in rows:
            cells = [str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join([str(row[0]).ljust(widths[0]), *cells[1:-1], str(row[-1])]).rstrip())
        return "\n".join(lines)

    def _verdict(self, name: str, ratio: float | None) -> str:
        aim = self.aims.get(name)
        if aim is None or ratio is None:
            return ""
        return f">= {aim:g}x: {'yes' if round(ratio, 2) >= aim else 'NO'}"


def head(server: Any, what: str, runs: int) -> str:
    import os
    import platform
    from importlib.metadata import version

    peers = ", ".join(f"{name} {version(name)}" for name in ("kafka-python", "aiokafka", "confluent-kafka"))
    return (
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}; {peers}\n"
        f"broker {server.name}; {compiled()}\n"
        f"{what}, medians of {runs}; thousand records a CPU-second of the client, of client and broker, and a second\n"
    )
