"""Records how Apache Kafka 4.3 and 3.9 answer the settings of `listener_cases.py`:

    python tests/golden/listeners/record.py

writes `kafka-4.3.1.tsv` and `kafka-3.9.2.tsv` beside this file: the name of a case, and `starts` or why Kafka refuses
to start. It asks `KafkaConfig`, which every start of a Kafka goes through first: 3.9 with ZooKeeper, 4.3 as the broker
of a KRaft cluster whose controllers are elsewhere.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE)]

import apache_kafka  # noqa: E402
from listener_cases import BASE, CASES  # noqa: E402

MAP = "listener.security.protocol.map"
OF_ZOOKEEPER = {"zookeeper.connect": "127.0.0.1:2181", "broker.id": "1"}
OF_KRAFT = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.voters": "9@127.0.0.1:9099",
    "controller.listener.names": "CONTROLLER",
}


def settings_of(case: dict[str, str], version: str) -> dict[str, str]:
    """Under KRaft, the map has to say what the controllers' listener speaks."""
    if version == apache_kafka.OLDER:
        return OF_ZOOKEEPER | BASE | case
    found = OF_KRAFT | BASE | case
    return found | {MAP: f"{found[MAP]},CONTROLLER:PLAINTEXT"} if found.get(MAP) else found


def ask(version: str) -> list[str]:
    jars = apache_kafka.fetch(apache_kafka.jars_of(version), apache_kafka.artifacts_of(version))
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, case in enumerate(CASES.values()):
            file = Path(folder, f"{number}.properties")
            file.write_text("".join(f"{name}={text}\n" for name, text in settings_of(case, version).items()))
            files.append(str(file))
        command = ["java", "-cp", f"{jars}/*", str(HERE / "ListenerAnswers.java"), *files]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    for version in (apache_kafka.VERSION, apache_kafka.OLDER):
        rows = "".join(f"{name}\t{answer}\n" for name, answer in zip(CASES, ask(version), strict=True))
        (HERE / f"kafka-{version}.tsv").write_text(rows)


if __name__ == "__main__":
    main()
