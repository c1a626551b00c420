"""Lines of several programs, put into one history by the clock that they share.

Each program writes a file of its own: the lines of `logkernel.testing.history`, with `at`, nanoseconds of the machine's
monotonic clock (Java's `nanoTime` is the same clock). A call has the time before it, an outcome the time after it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any


class Recorder:
    """What the threads of one program write."""

    def __init__(self, sink: IO[str]) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._count = 0

    def call(self, name: str, client: str, *, at: int | None = None, **fields: Any) -> int:
        """`at`: when it began; now if it is not given."""
        with self._lock:
            self._count += 1
            number = self._count
            self._write({"at": at or time.monotonic_ns(), "call": name, "id": number, "client": client, **fields})
        return number

    def ok(self, number: int, **result: Any) -> None:
        with self._lock:
            self._write({"at": time.monotonic_ns(), "ok": number, **result})

    def unknown(self, number: int, error: object = "") -> None:
        with self._lock:
            self._write({"at": time.monotonic_ns(), "unknown": number, "error": str(error)})

    def _write(self, line: dict[str, Any]) -> None:
        self._sink.write(json.dumps(line) + "\n")
        self._sink.flush()


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a file; the last one may be half written."""
    found = []
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            found.append(json.loads(line))
    return found


def merged(files: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All lines in the order of their times, with calls numbered anew; times stay in the lines."""
    rows = [(line["at"], source, index, line) for source, lines in enumerate(files) for index, line in enumerate(lines)]
    rows.sort(key=lambda row: row[:3])
    numbers: dict[tuple[int, int], int] = {}
    for _, source, _, line in rows:
        if "call" in line:
            numbers[source, line["id"]] = len(numbers)
    names = ("id", "ok", "fail", "unknown", "txn")
    return [
        {key: numbers[source, value] if key in names and value is not None else value for key, value in line.items()}
        for _, source, _, line in rows
    ]
