"""Copies a topic exactly once by the sink's tasks and driver, run as Spark runs them: for tests that kill them often.

The driver notes the offsets of a batch before its tasks begin, and its end behind the commit; a batch that has no end
is run again. Tasks, commit and abort are processes of their own; a task is tried four times, and a driver whose commit
fails gives the batch back and ends.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructField, StructType

from logkernel.plugins.spark import planning, writing
from logkernel.plugins.spark.options import parse
from logkernel.plugins.spark.planning import Range
from logkernel.table import open_source
from logkernel.vocabulary import TopicPartition

# pandas and pyarrow.compute are what every task would import anew: each is a fork of this process.
LINES = 620
ATTEMPTS, CORES = 4, 2
fork = multiprocessing.get_context("fork")

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", ArrayType(HEADER)),
        StructField("partition", IntegerType()),
    ]
)


class Driver:
    def __init__(self, given: argparse.Namespace) -> None:
        self.bootstrap: str = given.bootstrap
        self.original: str = given.source.removeprefix("topic:")
        self.tasks: int = given.tasks
        self.folder = Path(given.checkpoint)
        for name in ("offsets", "commits"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        options = parse({"kafka.bootstrap.servers": given.bootstrap, "topic": given.topic})
        self.plan = writing._plan(options, SCHEMA)

    def note(self, name: str, text: str) -> str:
        """What the file has, written whole where it is not there."""
        path = self.folder / name
        if not path.exists():
            made = path.with_name(f".{path.name}")
            made.write_text(text)
            made.rename(path)
        return path.read_text()

    def run(self) -> None:
        query = self.note("query", str(uuid.uuid4()))
        source = open_source(bootstrap=self.bootstrap)
        names = [TopicPartition(self.original, index) for index in range(source.topics()[self.original])]
        bounds = source.bounds_of(names)
        source.close()
        starts = {name.partition: bounds[name].start for name in names}
        number = 0
        while any(starts[name.partition] < bounds[name].end for name in names):
            ends = {
                name.partition: min(bounds[name].end, starts[name.partition] + LINES // len(names)) for name in names
            }
            told = json.loads(self.note(f"offsets/{number}", json.dumps(list(ends.items()))))
            ends = dict(told)
            if not (self.folder / f"commits/{number}").exists():
                self.batch(query, number, [Range(name, starts[name[1]], ends[name[1]]) for name in names])
                self.note(f"commits/{number}", "")
            starts = ends
            number += 1

    def batch(self, query: str, number: int, ranges: Sequence[Range]) -> None:
        """Slot 0 gets the first pieces of all partitions, and so on."""
        pieces = [planning.even(row, self.tasks) for row in ranges if row.size > 0]
        layout = [[row[slot] for row in pieces if slot < len(row)] for slot in range(self.tasks)]
        messages: list[Any] = [None] * len(layout)
        waiting = [(slot, 1) for slot in range(len(layout))]
        running: dict[Connection, tuple[int, int]] = {}
        failed = False
        while running or (waiting and not failed):
            while waiting and not failed and len(running) < CORES:
                slot, attempt = waiting.pop(0)
                running[started(lambda slot=slot: self.task(query, number, slot, layout[slot]))] = (slot, attempt)
            for done in wait(list(running)):
                slot, attempt = running.pop(done)
                messages[slot] = outcome(done)
                if messages[slot] is None and attempt < ATTEMPTS:
                    waiting.append((slot, attempt + 1))
                failed = failed or (messages[slot] is None and attempt == ATTEMPTS)
        if failed or outcome(started(lambda: writing.commit(self.plan, messages) or True)) is None:
            outcome(started(lambda: writing.abort(self.plan, messages)))
            sys.exit(f"batch {number} was given back")

    def task(self, query: str, number: int, slot: int, ranges: Sequence[Range]) -> Any:
        return writing.write_once(self.plan, self.rows(ranges), query, number, slot)

    def rows(self, ranges: Sequence[Range]) -> Iterator[Any]:
        source = open_source(bootstrap=self.bootstrap)
        for row in ranges:
            yield from source.scan(row.partition, row.start, row.end, columns=SCHEMA.names)
        source.close()


def started(work: Callable[[], Any]) -> Connection:
    """A process that does it, and sends what came of it; it ends without, where it fails or is killed."""
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: there.send(work()))
    process.start()
    there.close()
    return here


def outcome(end: Connection) -> Any:
    try:
        return end.recv()
    except EOFError:
        return None
    finally:
        end.close()


def main() -> None:
    known = argparse.ArgumentParser()
    known.add_argument("bootstrap")
    known.add_argument("topic")
    known.add_argument("source", help="topic:NAME")
    known.add_argument("checkpoint")
    known.add_argument("--tasks", type=int, default=3)
    Driver(known.parse_args()).run()


if __name__ == "__main__":
    main()
