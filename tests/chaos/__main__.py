"""Chaos on real processes: `python tests/chaos --minutes 30`, with `--kafka` the same on Apache Kafka 3.9.2.

Prints what happens, and writes the history, the logs and `figures.json` into `--folder`. Exit code 1: something that
was acknowledged is lost, doubled or out of order, or the cluster did not recover. `logkernel history check
history.jsonl` judges the history once more.

    python tests/chaos --tables ours.json kafka.json       both tables in Markdown
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main() -> int:
    from chaos import field

    parser = argparse.ArgumentParser(prog="chaos", description="Harm a cluster of real processes, and judge it.")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long faults are begun")
    parser.add_argument("--seed", type=int, default=None, help="draws the faults; random if not given")
    parser.add_argument("--kafka", action="store_true", help="three brokers of Apache Kafka 3.9.2 in place of ours")
    parser.add_argument("--folder", type=Path, default=None, help="a new folder; a temporary one if not given")
    parser.add_argument("--tables", type=Path, nargs="+", help="figures.json of ours, then those of Kafka (--kafka)")
    given = parser.parse_args()
    if given.tables:
        print(tables(given.tables))
        return 0
    seed = SystemRandom().randrange(1 << 31) if given.seed is None else given.seed
    folder = given.folder or Path(tempfile.mkdtemp(prefix="chaos-"))
    inside = field.MARK in os.environ
    words = None if inside else field.inside()
    if words is not None:
        get_jars(given.kafka)
        os.environ[field.MARK] = "1"
        again = [sys.executable, str(Path(__file__).parent), "--minutes", str(given.minutes), "--seed", str(seed)]
        again += ["--folder", str(folder), *(["--kafka"] if given.kafka else [])]
        os.execvp(words[0], [*words, *again])
    return harm(folder, seed, given.minutes, given.kafka, inside)


def get_jars(kafka: bool) -> None:
    """Those of Java's clients, and of the brokers: a namespace reaches no registry."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
    import apache_kafka

    apache_kafka.fetch()
    if kafka:
        apache_kafka.fetch(apache_kafka.jars_of(apache_kafka.OLDER), apache_kafka.artifacts_of(apache_kafka.OLDER))


def harm(folder: Path, seed: int, minutes: float, kafka: bool, inside: bool) -> int:
    from attrs import asdict
    from chaos.figures import ANOMALIES
    from chaos.run import Failed, Run

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and end what was started
    begun_s = time.monotonic()

    def tell(what: str) -> None:
        print(f"{time.monotonic() - begun_s:7.1f}  {what}", flush=True)

    folder.mkdir(parents=True, exist_ok=True)
    tell(f"seed {seed}, {'Apache Kafka 3.9.2' if kafka else 'logkernel'}, files in {folder}")
    if not inside:
        tell("this machine forbids namespaces: all is on 127.0.0.1, without faults of networks and disks")
    try:
        found = Run(folder, seed, 60 * minutes, kafka, tell, inside).judged()
    except Failed as error:
        tell(f"FAILED {error}")
        return 1
    (folder / "figures.json").write_text(json.dumps({"seed": seed, "kafka": kafka, "inside": inside, **asdict(found)}))
    told = {name: sum(found.anomalies.get(kind, 0) for kind in kinds) for name, kinds in ANOMALIES.items()}
    tell(f"{sum(found.faults.values())} faults, {found.acknowledged} records acknowledged, {told}")
    return int(bool(found.anomalies))


def tables(paths: list[Path]) -> str:
    from chaos import figures

    sums = {False: figures.Figures(), True: figures.Figures()}
    for path in paths:
        row = json.loads(path.read_text())
        kafka = row.pop("kafka")
        del row["seed"], row["inside"]
        sums[kafka] = sums[kafka].plus(figures.Figures(**row))
    return figures.tables(sums[False], sums[True])


if __name__ == "__main__":
    sys.exit(main())
