"""Brokers of a run, ours or Kafka's: started, killed, stopped in their tracks, and asked what they know."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path

from chaos.field import Field, Plain

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "zookeeper.connection.timeout.ms": "60000",
    "replica.lag.time.max.ms": "3000",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.bytes": str(1 << 20),
    "auto.create.topics.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "500",
}
"""The same for both: three replicas, two of which have to be in sync, and nothing that may be lost."""
METADATA_V1_OF_ALL = struct.pack(">hhihi", 3, 1, 7, -1, -1)
ASK_S = 2.0


class Broker(ABC):
    """One broker on a machine of the field. `ended` counts how often its process ended and nobody had asked it to."""

    def __init__(self, node: int, field: Field | Plain, folder: Path, zookeeper: str) -> None:
        self.node = node
        self.name = f"b{node}"
        self.field = field
        self.folder = folder / self.name
        self.disk = self.folder / "disk"
        self.zookeeper = zookeeper
        self.address = (field.address[self.name], field.port(self.name))
        self.ended = 0
        self.wanted = False
        """Whether it is to run."""
        self.process: subprocess.Popen[bytes] | None = None
        field.disk(self.disk)

    @abstractmethod
    def command(self) -> list[str]:
        """The words that start it."""

    def start(self) -> None:
        self.wanted = True
        with (self.folder / "log").open("ab") as log:
            words = [*self.field.command(self.name), *self.command()]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        self.wanted = False
        self.signal(signal.SIGKILL)
        self.wait()

    def terminate(self) -> None:
        self.wanted = False
        self.signal(signal.SIGTERM)

    def wait(self) -> int:
        assert self.process is not None
        return self.process.wait(180)

    def signal(self, number: int) -> None:
        assert self.process is not None
        if self.running:
            os.kill(self.process.pid, number)

    def look_after(self) -> None:
        """Start it again if it ended by itself, as a service manager does."""
        if self.wanted and not self.running:
            self.ended += 1
            self.start()

    def told(self) -> dict[str, object] | None:
        """What it knows of the cluster: brokers, controller, and partitions as (topic, partition) → (leader, in sync);
        None if it does not answer."""
        try:
            with socket.create_connection(self.address, ASK_S) as link:
                link.settimeout(ASK_S)
                link.sendall(struct.pack(">i", len(METADATA_V1_OF_ALL)) + METADATA_V1_OF_ALL)
                with link.makefile("rb") as stream:
                    (size,) = struct.unpack(">i", stream.read(4))
                    return metadata(stream.read(size))
        except (OSError, struct.error):
            return None


def metadata(answer: bytes) -> dict[str, object]:
    """A response of Metadata v1, behind its size."""
    at = 4

    def number(form: str) -> int:
        nonlocal at
        (found,) = struct.unpack_from(form, answer, at)
        at += struct.calcsize(form)
        return int(found)

    def text() -> str:
        nonlocal at
        size = max(number(">h"), 0)
        at += size
        return answer[at - size : at].decode()

    def numbers() -> list[int]:
        return [number(">i") for _ in range(number(">i"))]

    brokers = []
    for _ in range(number(">i")):
        brokers.append(number(">i"))
        text(), number(">i"), text()
    controller = number(">i")
    partitions: dict[tuple[str, int], tuple[int, list[int]]] = {}
    for _ in range(number(">i")):
        number(">h")
        topic = text()
        number(">b")
        for _ in range(number(">i")):
            number(">h")
            index, leader = number(">i"), number(">i")
            numbers()
            partitions[topic, index] = leader, numbers()
    return {"brokers": sorted(brokers), "controller": controller, "partitions": partitions}


class Ours(Broker):
    def command(self) -> list[str]:
        host, port = self.address
        words = [sys.executable, "-m", "logkernel", "serve", "--data", str(self.disk / "data")]
        words += ["--listen", f"{host}:{port}", "--coordination", f"zookeeper://{self.zookeeper}/chaos"]
        settings = [word for row in SETTINGS.items() for word in ("--set", "=".join(row))]
        return [*words, "--node-id", str(self.node), *settings]


class Kafkas(Broker):
    """Apache Kafka 3.9."""

    def command(self) -> list[str]:
        sys.path.insert(0, str(ROOT / "bench"))
        import apache_kafka
        import class_archive

        host, port = self.address
        listener = f"PLAINTEXT://{host}:{port}"
        lines = {
            "broker.id": str(self.node), "zookeeper.connect": f"{self.zookeeper}/chaos", "listeners": listener,
            "log.dirs": str(self.disk / "data"), **SETTINGS,
        }  # fmt: skip
        path = self.folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        jars = apache_kafka.jars_of(apache_kafka.OLDER)
        quick = [*class_archive.QUICK, *class_archive.options("kafka", apache_kafka.CACHE, jars)]
        logging = apache_kafka.logging_options("INFO")
        return ["java", "-Xmx512M", *quick, *logging, "-cp", f"{jars}/*", "kafka.Kafka", str(path)]
