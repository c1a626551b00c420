"""Measure logkernel beside Apache Kafka with one client, interleaved, and print one table.

python bench/run.py                        everything, three runs, medians
python bench/run.py --only produce,latency --runs 5
python bench/run.py --no-kafka --mb 100    ours alone, quickly
python bench/run.py --before old/bin/python  another installation of logkernel beside this one and Kafka
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import clients
import process
from apache_kafka import KafkaServer
from measures import MEASURES
from ours import LogkernelServer, compiled
from rig import Rig
from server import Server
from table import Table

NO_SENDFILE = {"logkernel.sendfile": "false"}
OURS, BEFORE, PREAD, KAFKA = "logkernel", "before", "no sendfile", "kafka"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help=f"comma list of {', '.join(MEASURES)}")
    parser.add_argument("--runs", type=int, default=3, help="runs of each measure; the median counts (default 3)")
    parser.add_argument("--mb", type=int, default=500, help="megabytes of record values a throughput run (default 500)")
    parser.add_argument("--restart-gb", type=float, default=2.0, help="data of the restart measure (default 2)")
    parser.add_argument("--no-kafka", action="store_true", help="leave Kafka out: no Java, no Maven, no ratios")
    parser.add_argument(
        "--before", type=Path, metavar="PYTHON", help="the interpreter of another installation, which is measured, too"
    )
    parser.add_argument("--folder", type=Path, help="where the data goes (default: a temporary folder)")
    return parser.parse_args()


def describe() -> str:
    """What a reader must know to believe the figures."""
    from importlib.metadata import version
    from importlib.util import find_spec

    from logkernel.record import crc

    crc_name = getattr(crc, "IMPLEMENTATION", "see logkernel.record.crc")
    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    lines = [
        f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        f"client confluent-kafka {version('confluent-kafka')}, default settings; broker and client share the machine",
        f"{compiled()}, CRC-32C by {crc_name}, event loop {loop}",
        "flush: both brokers leave it to the operating system (flush.messages and flush.ms at Kafka's defaults)",
        "validation: ours as configured by default; every produce request is acknowledged by the leader (acks=all)",
        "CPU: user and system seconds of the broker's whole process tree, a GB of record values",
    ]
    return "\n".join(lines)


def makers(before: Path | None, *, with_kafka: bool) -> dict[str, Callable[[Path, dict[str, str]], Server]]:
    found: dict[str, Callable[[Path, dict[str, str]], Server]] = {OURS: LogkernelServer}
    if before is not None:
        found[BEFORE] = functools.partial(LogkernelServer, python=before)
    found[PREAD] = lambda folder, settings: LogkernelServer(folder, {**settings, **NO_SENDFILE})
    if with_kafka:
        found[KAFKA] = KafkaServer
    return found


WARM_ROUNDS = 12
LOADED = {"produce", "consume", "latency", "sessions"}
"""Measures of the shared brokers under load, which are warmed for them."""
WARMED = {"rebalance", "commits", "transactions", "isolation"}
"""Measures of the shared brokers that warm up by themselves."""


def warm(rig: Rig) -> None:
    """Load it until a round costs no less CPU than the one before: a JVM compiles what is hot, and the first
    touch of memory costs, and neither belongs into a figure of the steady state."""
    topic, count = "bench-warm-up", rig.megabytes * 1000 // 3
    server = rig.shared
    clients.create_topic(server.bootstrap, topic, 1)
    last = math.inf
    for _ in range(WARM_ROUNDS):
        before = process.cpu_s(server.pid)
        for size in (1000, 100):
            clients.produce(server.bootstrap, topic, 1, size, count)
        clients.consume(server.bootstrap, topic, 1, count)
        spent = process.cpu_s(server.pid) - before
        if spent > 0.95 * last:
            return
        last = spent


def main() -> int:
    options = arguments()
    chosen = options.only.split(",") if options.only else list(MEASURES)
    unknown = [name for name in chosen if name not in MEASURES]
    if unknown:
        print(f"no such measure: {', '.join(unknown)} (known: {', '.join(MEASURES)})", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-", dir=options.folder) as folder:
        measure_all(Path(folder), chosen, options)
    return 0


def measure_all(folder: Path, chosen: list[str], options: argparse.Namespace) -> None:
    """Run the chosen measures round by round, each round over every broker, and print the table."""
    rigs: dict[str, Rig] = {}
    found = makers(options.before, with_kafka=not options.no_kafka)
    table = Table(list(found))
    loaded = LOADED & set(chosen)
    steady = loaded | WARMED & set(chosen)
    try:
        for name, make in found.items():
            shared = make(folder / name.replace(" ", "-"), {})
            rigs[name] = Rig(make, folder, shared, options.mb, options.restart_gb)
            if steady:
                shared.prepare()
                shared.start()
            if loaded:
                warm(rigs[name])
        for measure in sorted(chosen, key=lambda name: name not in steady):
            if measure not in steady:
                for rig in rigs.values():
                    rig.shared.stop()  # an idle JVM is not quite idle
            for run in range(options.runs):
                for name, rig in list(rigs.items())[:: 1 if run % 2 == 0 else -1]:  # none is always the first
                    if name == PREAD and measure != "consume":
                        continue
                    samples = MEASURES[measure](rig)
                    table.add(name, samples)
                    print(f"# {measure} {run + 1}/{options.runs} {name}: {samples}", file=sys.stderr, flush=True)
    finally:
        for rig in rigs.values():
            rig.shared.stop()
    print(describe())
    print(f"\nmedian of {options.runs}; ratio = {OURS} / {KAFKA}\n")
    print(table.text())


if __name__ == "__main__":
    sys.exit(main())
