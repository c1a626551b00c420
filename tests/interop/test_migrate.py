"""docs/migrate.md, walked: three brokers of Kafka 3.9 become ours and Kafka's again, one by one, under traffic."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import kafka_with_zookeeper as kafkas
import pytest
from kafka_with_zookeeper import apache_kafka
from outside_tools import missing
from traffic import PARTITIONS, Traffic

import logkernel
from logkernel.admin import NewTopic

pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.interop
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "migrate.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^ *<!-- (\w+) -->\n *```sh\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINES = {name: dedent(code) for name, code in BLOCK.findall(PAGE)}
FILE = "/etc/kafka/server.properties"
DATA = "/var/lib/kafka"
SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "zookeeper.connection.timeout.ms": "120000",
    "replica.lag.time.max.ms": "10000",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.initial.rebalance.delay.ms": "0",
    "controlled.shutdown.retry.backoff.ms": "200",
}


class Machine:
    """One broker's place: a server.properties, a folder, a port; Kafka or ours runs there."""

    def __init__(self, folder: Path, node: int, zookeeper: str) -> None:
        self.kafka = apache_kafka.KafkaMember(folder / f"broker-{node}", node, zookeeper, SETTINGS)
        self.kafka.prepare()
        self.kafka.command()  # writes the file
        self.file = self.kafka.folder / "server.properties"
        self.data = self.kafka.folder / "data"
        self.ours: subprocess.Popen[str] | None = None

    def line(self, name: str) -> str:
        """A command of the page, as it is here."""
        program = f"{sys.executable} -m logkernel"
        text = LINES[name].replace(FILE, str(self.file)).replace(DATA, str(self.data))
        text = text.replace("127.0.0.1:9092", self.kafka.bootstrap)
        return re.sub(r"\blogkernel\b(?= (?:serve|cluster))", program, text)

    def run(self, name: str) -> None:
        subprocess.run(["bash", "-euc", self.line(name)], check=True, stdout=subprocess.DEVNULL, timeout=300)

    def start_ours(self) -> None:
        with (self.kafka.folder / "ours.log").open("ab") as log:
            self.ours = subprocess.Popen(
                ["bash", "-c", f"exec {self.line('serve')}"], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.ours.stdout is not None
        assert self.ours.stdout.readline().startswith("logkernel listening on "), self.log()

    def stop_ours(self) -> None:
        assert self.ours is not None
        self.ours.send_signal(signal.SIGTERM)
        assert self.ours.wait(300) == 0, self.log()
        self.ours = None

    def log(self) -> str:
        return (self.kafka.folder / "ours.log").read_text()[-4000:]

    def end(self) -> None:
        if self.ours is not None:
            self.ours.kill()
            self.ours.wait()
        self.kafka.stop()


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Machine]]:
    """Three machines that run Kafka, small and quick to start."""
    monkeypatch.setattr(apache_kafka, "SERVER_JVM", ("-Xmx384M", *apache_kafka.class_archive.QUICK))
    made: list[Machine] = []
    try:
        with kafkas.zookeeper(tmp_path) as (keeper, _):
            try:
                for node in (1, 2, 3):
                    made.append(Machine(tmp_path, node, keeper.bootstrap))
                    made[-1].kafka.start()
                yield made
            finally:
                for machine in made:
                    machine.end()
    except subprocess.CalledProcessError as error:
        missing(f"the jars of Kafka 3.9 cannot be fetched: {error}")


@pytest.mark.longest
def test_three_brokers_move_to_ours_and_back(
    machines: list[Machine], eventually: Callable[..., None], record_property: Callable[..., None]
) -> None:
    bootstrap = ",".join(machine.kafka.bootstrap for machine in machines)
    with logkernel.connect(bootstrap) as log, log.admin() as admin:
        eventually(lambda: len(admin.describe_cluster().brokers) == 3, 180, "three brokers")
        admin.create_topics(NewTopic("orders", PARTITIONS, 3))
        with Traffic(bootstrap, "orders") as traffic:
            eventually(lambda: traffic.read[0] != [], 180, "records are read")
            for machine in machines:
                machine.run("check")
                machine.kafka.stop()
                if machine is machines[2]:
                    shutil.rmtree(machine.data)  # a new disk
                machine.start_ours()
                machine.run("wait")
            assert admin.describe_cluster().controller > 0
            machines[0].run("elect")
            eventually(
                lambda: {row.leader for row in admin.describe_topics("orders")["orders"].partitions} == {1, 2, 3}, 120,
                "preferred leaders lead",
            )  # fmt: skip
            for machine in machines:
                machine.run("check")
                machine.stop_ours()
                if machine is machines[2]:
                    machine.run("forget")
                machine.kafka.start()
                machine.run("wait")
        assert machines[0].ours is None
        print(
            f"slowest ack {traffic.slowest_ack_s:.2f} s, longest time without a record {traffic.slowest_poll_s:.2f} s"
        )
        record_property("slowest_ack_s", traffic.slowest_ack_s)
        traffic.check()


def test_every_line_of_the_page_is_known() -> None:
    assert set(LINES) == {"check", "serve", "wait", "elect", "forget"}
