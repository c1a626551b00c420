"""What `log.table()` reads: records a CPU-second of one core, without Spark and without a broker.

    python bench/tables.py [--records 2000000] [--repeat 5]

Segments are written once per codec, by our own encoder in batches of 16 KB (a producer's batch.size), and read from
the page cache in this process. A figure is records by the CPU seconds, user and system, that the read took: the best
of some runs, as other work on the machine can only add to them.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from logkernel.kernel import Kernel
from logkernel.record.batch import stamp
from logkernel.record.encode import encode_batch
from logkernel.table import COLUMNS, open_source
from logkernel.vocabulary import Record, TopicPartition

BATCH_BYTES = 16_384
WORDS = (b"carrier", b"origin", b"dest", b"delay", b"distance", b"tailnum", b"2013", b"JFK", b"LGA", b"EWR")

# (row, codec, value bytes, columns, options, aim in millions of records a CPU-second or None)
ROWS: tuple[tuple[str, str, int, Sequence[str], dict[str, object], float | None], ...] = (
    ("100 B, all columns", "none", 100, COLUMNS, {}, 8.0),
    ("100 B, values", "none", 100, ("value",), {}, None),
    ("100 B, offsets", "none", 100, ("offset",), {}, None),
    ("100 B, count", "none", 100, (), {}, None),
    ("100 B, lz4, all columns", "lz4", 100, COLUMNS, {}, 5.0),
    ("100 B, zstd, all columns", "zstd", 100, COLUMNS, {}, None),
    ("1 KB, all columns", "none", 1000, COLUMNS, {}, None),
    ("100 B, the last 2 % by offset", "none", 100, COLUMNS, {"part": 0.02}, None),
)


def value(number: int, size: int) -> bytes:
    """Text that compresses about as rows of CSV or JSON do."""
    parts, used = [], 0
    while used < size:
        part = WORDS[(number * 7 + len(parts) * 3) % len(WORDS)] + b"=%d," % (number * 31 + len(parts))
        parts.append(part)
        used += len(part)
    return b"".join(parts)[:size]


def write(folder: Path, records: int, size: int, codec: str) -> None:
    """One segment of a partition, as a broker would have it."""
    compressor = None if codec == "none" else Kernel().codec(codec)
    log = folder / "bench-0"
    log.mkdir(parents=True)
    each = max(1, BATCH_BYTES // (size + 12))
    shapes = []
    for number in range(64):  # the same batches come again, with other offsets
        rows = [Record(None, value(number * each + at, size), (), 1_700_000_000_000 + at) for at in range(each)]
        shapes.append(bytearray(encode_batch(rows, codec=compressor)))
    with (log / f"{0:020d}.log").open("wb") as file, (log / f"{0:020d}.index").open("wb") as index:
        for number, offset in enumerate(range(0, records, each)):
            batch = shapes[number % len(shapes)]
            stamp(batch, 0, offset, 0)
            if number:
                index.write(struct.pack(">ii", offset + each - 1, file.tell()))
            file.write(batch)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(read: Callable[[], int], repeat: int) -> tuple[int, float, float]:
    """(rows, least CPU seconds, least seconds) of some runs, and one to warm up."""
    rows, cpu, wall = read(), 1e9, 1e9
    for _ in range(repeat):
        began, clock = cpu_s(), time.perf_counter()
        rows = read()
        cpu, wall = min(cpu, cpu_s() - began), min(wall, time.perf_counter() - clock)
    return rows, cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="logkernel-tables-"))
    name = TopicPartition("bench", 0)
    print(f"{'measure':32}{'M records / CPU-s':>20}{'M records / s':>16}  aim")
    try:
        for row, codec, size, columns, more, aim in ROWS:
            place = folder / f"{codec}-{size}"
            if not place.exists():
                write(place, options.records * 100 // size, size, codec)
            source = open_source(path=str(place))
            bounds = source.bounds(name)
            start = bounds.end - int((bounds.end - bounds.start) * float(str(more.get("part", 1))))

            def read(start: int = start, columns: Sequence[str] = columns, end: int = bounds.end) -> int:
                return sum(batch.num_rows for batch in source.scan(name, start, end, columns=columns))  # noqa: B023

            rows, cpu, wall = measure(read, options.repeat)
            rate = rows / cpu / 1e6 if cpu else float("inf")
            verdict = "" if aim is None else f">= {aim:g}: {'yes' if rate >= aim else 'NO'}"
            print(f"{row:32}{rate:20.2f}{rows / wall / 1e6:16.2f}  {verdict}".rstrip())
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
