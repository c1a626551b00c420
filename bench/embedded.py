"""Measure our client over an embedded log beside the same client over TCP: produce, consume, one record at a time.

python bench/embedded.py                       100 and 1,000 bytes, medians of three
python bench/embedded.py --runs 5 --records 500000

`tcp` is a client and a broker in processes of their own, on this machine; its CPU is that of both. Two rows tell how
much is the size of batches: by default an embedded producer makes batches of 128 KiB and one over TCP of 16 KiB, as
Kafka's does; `embedded, 16K` has those of TCP. Produce + consume is the time, or the CPU, of the one and the other.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import process
from clients import payloads
from ours import LogkernelServer

WAYS = ("tcp", "embedded", "embedded, 16K")
AIM = 3.0
ROUND_TRIPS = 1000


def cpu_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def child(way: str, place: str, topic: str, size: int, count: int, broker: int) -> None:
    """In a process of its own: prints seconds and CPU-seconds of each part."""
    import logkernel

    def cpu() -> float:
        return cpu_s() + (process.cpu_s(broker) if broker else 0.0)

    values = payloads(size)
    log: Any = logkernel.connect(place) if way == "tcp" else logkernel.open(place)
    log.create_topic(topic, partitions=1)
    settings = {"batch_size": 16_384} if way.endswith("16K") else {}
    found: dict[str, tuple[float, float]] = {}
    producer = log.producer(**settings)
    producer.send(topic, b"warm").result(60)

    begun_s, before_s = time.perf_counter(), cpu()
    for number in range(count):
        producer.send(topic, values[number % len(values)])
    producer.flush(120)
    found["produce"] = time.perf_counter() - begun_s, cpu() - before_s

    with log.consumer(topic, auto_offset_reset="earliest") as consumer:
        next(consumer)
        read = 0
        begun_s, before_s = time.perf_counter(), cpu()
        for record in consumer:
            read += len(record.value) == size
            if read == count:
                break
        found["consume"] = time.perf_counter() - begun_s, cpu() - before_s

        quick = log.producer(linger_ms=0)
        begun_s, before_s = time.perf_counter(), cpu()
        for number in range(ROUND_TRIPS):
            quick.send(topic, values[number % len(values)]).result(60)
            assert next(consumer).value
        found["round trips"] = time.perf_counter() - begun_s, cpu() - before_s
    log.close()
    print(json.dumps(found), flush=True)


def measure(way: str, folder: Path, server: Any, topic: str, size: int, count: int) -> dict[str, tuple[float, float]]:
    """Records a second and a CPU-second, of each part and of produce and consume together."""
    place = server.bootstrap if way == "tcp" else str(folder / f"{way}-{topic}".replace(", ", "-"))
    broker = server.pid if way == "tcp" else 0
    command = [sys.executable, __file__, "--child", way, place, topic, str(size), str(count), str(broker)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"{way} failed:\n{done.stderr[-3000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    both = [told["produce"][index] + told["consume"][index] for index in (0, 1)]
    rows = {"produce": told["produce"], "consume": told["consume"], "produce + consume": both}
    found = {name: (count / wall_s, count / max(spent_s, 1e-9)) for name, (wall_s, spent_s) in rows.items()}
    wall_s, spent_s = told["round trips"]
    found["one at a time"] = ROUND_TRIPS / wall_s, ROUND_TRIPS / max(spent_s, 1e-9)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--child", nargs=6)
    options = parser.parse_args()
    if options.child:
        way, place, topic, *numbers = options.child
        child(way, place, topic, *map(int, numbers))
        return 0
    samples: dict[tuple[int, str, str], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder:
        server = LogkernelServer(Path(folder) / "broker", {})
        server.prepare()
        server.start()
        try:
            for turn in range(options.runs):
                for size in map(int, options.sizes.split(",")):
                    for way in WAYS[:: 1 if turn % 2 == 0 else -1]:
                        topic = f"e{turn}-{size}"
                        for part, row in measure(way, Path(folder), server, topic, size, options.records).items():
                            samples.setdefault((size, part, way), []).append(row)
        finally:
            server.stop()
    show(samples, options.runs)
    return 0


def show(samples: dict[tuple[int, str, str], list[tuple[float, float]]], runs: int) -> None:
    what = "thousand records a second, and a CPU-second of client and broker"
    print(f"our client, 1 partition, medians of {runs}; {what}")
    print(f"{'bytes':>5}  {'what':18}{'way':16}{'second':>10}{'x tcp':>8}{'CPU-s':>10}{'x tcp':>8}  aim")
    for size, part, _ in (key for key in samples if key[2] == "tcp"):
        base: tuple[float, ...] = ()
        for way in WAYS:
            found = tuple(statistics.median(column) for column in zip(*samples[size, part, way], strict=True))
            base = base or found
            times = [value / peer for value, peer in zip(found, base, strict=True)]
            aim = ""
            if part == "produce + consume" and way == "embedded":
                aim = f">= {AIM:g}x: {'yes' if round(times[0], 2) >= AIM else 'NO'}"
            figures = "".join(f"{value / 1000:>10.1f}{ratio:>8.2f}" for value, ratio in zip(found, times, strict=True))
            print(f"{size:>5}  {part:18}{way:16}{figures}  {aim}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
