"""Spark, two brokers, and samples of what they did; `table` prints them with what is aimed at."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import process
from ours import LogkernelServer
from server import Server

PARTITIONS = 6
PATH, NETWORK, CONNECTOR = "path", "network", "connector"
"""Ours from the segment files, ours from the broker, and Spark's own on Apache Kafka."""


@dataclass(frozen=True)
class Aim:
    """`figure` is times the connector's, or (`alone`) what the row itself is to be."""

    figure: float
    most: bool = False
    alone: bool = False

    def verdict(self, mine: float, peer: float | None) -> str:
        text = f"{'<=' if self.most else '>='} {self.figure:g}{'' if self.alone else 'x'}"
        if not self.alone:
            if not peer:
                return text
            mine = mine / peer
        reached = round(mine, 2) <= self.figure if self.most else round(mine, 2) >= self.figure
        return f"{text}: {'yes' if reached else 'NO'}"


@dataclass(frozen=True)
class Sample:
    rows: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True)
class Line:
    name: str
    unit: str
    cells: dict[str, float]
    aim: Aim | None


RATES = {
    "read, 100 B": Aim(3.0),
    "read, 1 KB": Aim(2.0),
    "read, 100 B, lz4": Aim(3.0),
    "read, 100 B, zstd": Aim(3.0),
    "read value, 100 B": Aim(5.0),
    "read value, 1 KB": Aim(3.0),
    "stream, 100 B": Aim(2.0),
    "write, 100 B": Aim(2.0),
    "write, 1 KB": Aim(2.0),
}
"""Rows a second."""
COSTS = {"read, 100 B": Aim(0.55, most=True), "read, 1 KB": Aim(0.55, most=True)}
"""CPU seconds of Spark, Python and broker."""
LATENCY = "produce to foreachBatch, p50"
SHARES = (
    ("one partition, two cores' time by one core's", "one partition, 2 tasks", "one partition, 1 core", 0.625),
    ("one partition, two tasks' time by one's", "one partition, 2 tasks", "one partition, 1 task", None),
    ("offsets of 2 %, time by the whole scan's", "offsets of 2 %", "read, 100 B", 0.2),
    ("times of 2 %, time by the whole scan's", "times of 2 %", "read, 100 B", 0.2),
    ("exactly once, 100 B, time by at least once's", "write once, 100 B", "write, 100 B", 1.25),
    ("exactly once, 1 KB, time by at least once's", "write once, 1 KB", "write, 1 KB", 1.25),
)
"""(name, a row, another, what its seconds are to be of the other's): 1/0.625 is 1.6 times the rate, 1/1.25 is 0.8."""


@dataclass
class Found:
    """Samples by row and column."""

    samples: dict[str, dict[str, list[Sample]]] = field(default_factory=dict)

    def add(self, row: str, column: str, sample: Sample) -> None:
        self.samples.setdefault(row, {}).setdefault(column, []).append(sample)

    def _medians(self, row: str, figure: Callable[[Sample], float]) -> dict[str, float]:
        rows = self.samples[row].items()
        return {column: statistics.median(figure(sample) for sample in found) for column, found in rows}

    def lines(self) -> Iterator[Line]:
        for row in self.samples:
            if row == LATENCY:
                yield Line(row, "ms", self._medians(row, lambda found: found.seconds * 1000), Aim(1.0, most=True))
                continue
            rates = self._medians(row, lambda found: found.rows / found.seconds / 1e6)
            costs = self._medians(row, lambda found: found.cpu_s / found.rows * 1e6)
            yield Line(row, "M rows/s", rates, RATES.get(row))
            yield Line(f"{row}, CPU", "CPU-s/M rows", costs, COSTS.get(row))
        for name, one, other, figure in SHARES:
            if one in self.samples and other in self.samples:
                times, whole = (self._medians(row, lambda found: found.seconds) for row in (one, other))
                cells = {column: times[column] / whole[column] for column in times if column in whole}
                yield Line(name, "", cells, None if figure is None else Aim(figure, most=True, alone=True))

    def table(self) -> str:
        head = ["measure", "unit", PATH, NETWORK, CONNECTOR, f"{PATH} / it", f"{NETWORK} / it", "aim"]
        rows = [head, *map(_cells, self.lines())]
        widths = [max(len(row[index]) for row in rows) for index in range(len(head))]
        lines = []
        for row in rows:
            left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
            right = [cell.rjust(width) for cell, width in zip(row[2:-1], widths[2:], strict=False)]
            lines.append("  ".join([*left, *right, row[-1]]).rstrip())
        return "\n".join(lines)


def _cells(line: Line) -> list[str]:
    """The aim is held against the first of ours that was measured."""
    cells, peer = line.cells, line.cells.get(CONNECTOR)
    figures = [f"{cells[column]:.3g}" if column in cells else "-" for column in (PATH, NETWORK, CONNECTOR)]
    ours = [cells.get(column) for column in (PATH, NETWORK)]
    ratios = ["-" if mine is None or not peer else f"{mine / peer:.2f}" for mine in ours]
    judged = next((mine for mine in ours if mine is not None), None)
    verdict = "" if line.aim is None or judged is None else line.aim.verdict(judged, peer)
    return [line.name, line.unit, *figures, *ratios, verdict]


class Rig:
    """Brokers that run, a session, and the samples."""

    def __init__(self, arguments: argparse.Namespace, ours: LogkernelServer, kafka: Server | None, spark: Any) -> None:
        self.arguments = arguments
        self.ours = ours
        self.kafka = kafka
        self.spark = spark
        self.found = Found()
        self.turn = 0

    def columns(self, *names: str) -> list[str]:
        """Those of `names` that are there; every other round goes the other way round."""
        found = [name for name in names if name != CONNECTOR or self.kafka is not None]
        return found[::-1] if self.turn % 2 else found

    def server(self, column: str) -> Server:
        found = self.kafka if column == CONNECTOR else self.ours
        assert found is not None
        return found

    def cpu_s(self, column: str) -> float:
        """Of Spark, its Python workers and the broker: all our descendants but the other broker."""
        other = self.ours if column == CONNECTOR else self.kafka
        return process.cpu_s(os.getpid()) - (process.cpu_s(other.pid) if other is not None else 0.0)

    def measure(self, row: str, column: str, rows: int, work: Callable[[], float | None], keep: bool = True) -> None:
        """`work` may tell the seconds that count."""
        before, begun = self.cpu_s(column), time.perf_counter()
        told = work()
        seconds = time.perf_counter() - begun if told is None else told
        used = self.cpu_s(column) - before
        if keep:
            self.found.add(row, column, Sample(rows, seconds, used))
        print(f"  {row}, {column}: {rows} rows, {seconds:.3f} s, {used:.2f} CPU-s", flush=True)

    @contextmanager
    def one_core(self) -> Iterator[None]:
        """Spark and its Python workers on one core; brokers keep theirs."""
        brokers = {pid for server in (self.ours, self.kafka) if server for pid in process.tree(server.pid)}
        every = os.sched_getaffinity(0)
        mine = [pid for pid in process.tree(os.getpid()) if pid not in brokers]
        _pin(mine, {min(every)})
        try:
            yield
        finally:
            _pin([pid for pid in process.tree(os.getpid()) if pid not in brokers], every)


def _pin(pids: list[int], cores: set[int]) -> None:
    """Every thread that there is; what these start is like them."""
    for pid in pids:
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError):
                    os.sched_setaffinity(int(thread), cores)


def session(arguments: argparse.Namespace, jars: list[Path], folder: Path) -> Any:
    from pyspark.sql import SparkSession

    from logkernel.plugins.spark import RECOMMENDED, python, register

    program = python(str(folder))

    builder = SparkSession.builder.master("local[2]").appName("bench")
    own = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.pyspark.python": program,
    }
    settings = {**RECOMMENDED, **own}
    if arguments.tcp_workers:
        settings["spark.python.unix.domain.socket.enabled"] = "false"
    if jars:
        settings["spark.jars"] = ",".join(map(str, jars))
    settings.update(text.split("=", 1) for text in arguments.conf)
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ["PYSPARK_PYTHON"] = program
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    register(found)
    return found
