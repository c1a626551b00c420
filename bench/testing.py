"""Fifty typical tests (`typical_tests`) with the fixture `kafka`, beside the same with Apache Kafka: a JVM broker
started once for the session, and a topic made for each test. Seconds of the whole `pytest` run, from exec to exit.

python bench/testing.py            both, three runs in turn, medians
python bench/testing.py --runs 5
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from table import Table

TESTS = Path(__file__).resolve().parent / "typical_tests"
NAMES = {"ours": "logkernel", "kafka": "kafka"}


def seconds(broker: str) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    begun = time.perf_counter()
    done = subprocess.run(command, env={**os.environ, "BENCH_BROKER": broker}, capture_output=True, text=True)
    spent = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"the tests failed with {broker}:\n{done.stdout[-3000:]}")
    return spent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each; the median counts (default 3)")
    options = parser.parse_args()
    table = Table(list(NAMES.values()))
    for _ in range(options.runs):
        for broker, name in NAMES.items():
            table.add(name, {"50 typical tests": seconds(broker)})
    print(f"median of {options.runs}; {os.cpu_count()} cores; ratio = logkernel / kafka\n\n{table.text()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
