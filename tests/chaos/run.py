"""One run: a ZooKeeper ensemble, three brokers, clients of other people, faults; and the judge when all is healed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import zookeepers
from chaos import faults
from chaos.field import Field, Plain
from chaos.figures import Figures, Struck, figures_of
from chaos.librdkafka_clients import TOPICS
from chaos.recorder import Recorder, lines_of, merged
from chaos.servers import ROOT, Broker, Kafkas, Ours
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logkernel.testing.history import History, check

BROKERS = (1, 2, 3)
KEEPERS = ("z1", "z2", "z3")
RECOVER_S = 300.0
CLIENTS = {"rd-once", "rd-txn", "rd-committed", "rd-group", "java-once", "java-mover", "java-group"}
PARTITION_EOF, ALREADY_EXISTS = -191, 36
"""librdkafka's codes."""
HERE = Path(__file__).resolve().parent


class Failed(Exception):
    """What the cluster did not do in time."""


def until(ready: Callable[[], bool], what: str, limit_s: float = RECOVER_S) -> None:
    ends_s = time.monotonic() + limit_s
    while not ready():
        if time.monotonic() > ends_s:
            raise Failed(f"{what}: not so after {limit_s:.0f} s")
        time.sleep(0.05)


class Keepers:
    """The ZooKeepers, and the names of their machines."""

    names = KEEPERS

    def __init__(self, field: Field | Plain, folder: Path) -> None:
        self.machines = zookeepers.ensemble_on(
            folder, [(name, field.address[name], tuple(field.command(name))) for name in KEEPERS]
        )

    def start(self) -> None:
        for machine in self.machines:
            machine.start()
        for machine in self.machines:
            machine.wait()

    def strike(self, harm: Callable[[Any], None]) -> Any:
        """Harm the leader; returns it."""
        until(lambda: self._leader() is not None, "ZooKeeper has a leader")
        leader = self._leader()
        harm(leader)
        return leader

    def _leader(self) -> Any:
        return next((each for each in self.machines if "Mode: leader" in each.command("srvr")), None)

    def addresses(self) -> str:
        return ",".join(each.address for each in self.machines)


class Cluster:
    def __init__(self, field: Field | Plain, folder: Path, kind: type[Broker]) -> None:
        self.field = field
        self.keepers = Keepers(field, folder / "zookeeper")
        self.brokers = {node: kind(node, field, folder, self.keepers.addresses()) for node in BROKERS}
        self.bootstrap = ",".join(f"{host}:{port}" for host, port in (each.address for each in self.brokers.values()))

    def start(self) -> None:
        self.keepers.start()
        for broker in self.brokers.values():
            broker.start()
        until(lambda: self.tended() and all(each.told() for each in self.brokers.values()), "all brokers answer")
        self._create()
        until(self.well, "all replicas are in sync")

    def _create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        until(lambda: len(admin.list_topics(timeout=60).brokers) == len(BROKERS), "three brokers are known")
        wanted = [NewTopic(topic, size, len(BROKERS)) for topic, size in TOPICS.items()]

        def created() -> bool:
            """A ZooKeeper whose JVM is young may be too late."""
            for made in admin.create_topics(wanted).values():
                error = made.exception(60)
                if error is not None and error.args[0].code() != ALREADY_EXISTS:
                    return False
            return True

        until(created, "topics are created")

    def tended(self) -> bool:
        for broker in self.brokers.values():
            broker.look_after()
        return True

    def well(self) -> bool:
        """Every broker says the same: there are three, one is the controller, and all replicas are in sync."""
        self.tended()
        told = [broker.told() for broker in self.brokers.values()]
        known = [each for each in told if each is not None]
        if len(known) < len(BROKERS) or any(each["brokers"] != list(BROKERS) for each in known):
            return False
        if len({each["controller"] for each in known}) > 1 or known[0]["controller"] not in BROKERS:
            return False
        rows: Any = [each["partitions"] for each in known]
        synced = all(
            leader in BROKERS and sorted(isr) == list(BROKERS) for each in rows for leader, isr in each.values()
        )
        return synced and all(one.keys() == other.keys() for one, other in pairwise(rows)) and bool(rows[0])

    def end(self) -> None:
        for broker in self.brokers.values():
            if broker.process is not None:
                broker.kill()
        for machine in self.keepers.machines:
            machine.end()


class Clients:
    """The programs of the clients, and what they wrote."""

    def __init__(self, folder: Path, bootstrap: str, seed: int) -> None:
        self._folder = folder
        folder.mkdir()
        self.files = {name: folder / f"{name}.jsonl" for name in ("librdkafka", "java")}
        path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        python = [sys.executable, "-m", "chaos.librdkafka_clients", bootstrap, str(self.files["librdkafka"]), str(seed)]
        self._programs = [
            self._begin(python, {**os.environ, "PYTHONPATH": path}),
            self._begin(java(folder, bootstrap, str(self.files["java"])), dict(os.environ)),
        ]

    def _begin(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)

    def check(self) -> None:
        for program in self._programs:
            if program.poll() is not None:
                raise Failed(f"clients ended: {(self._folder / 'log').read_text()[-2000:]}")

    def lines(self) -> list[list[dict[str, Any]]]:
        return [lines_of(path) for path in self.files.values() if path.exists()]

    def successful_since(self, at: int) -> set[str]:
        """Which of `CLIENTS` made calls after that, and got what they asked for."""
        found = set()
        for lines in self.lines():
            calls = {line["id"]: line for line in lines if "call" in line and line["at"] > at}
            counted = ("send", "poll", "end")
            ok = [calls[line["ok"]] for line in lines if line.get("ok") in calls]
            found |= {line["client"].partition(".")[0] for line in ok if line["call"] in counted}
        return found

    def stop(self) -> None:
        """Let them come to their end."""
        for program in self._programs:
            assert program.stdin is not None
            program.stdin.close()
        for program in self._programs:
            program.wait(180)

    def end(self) -> None:
        for program in self._programs:
            program.kill()
            program.wait()


def java(folder: Path, *arguments: str) -> list[str]:
    sys.path.insert(0, str(ROOT / "bench"))
    import apache_kafka

    jars = apache_kafka.fetch()
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", str(folder), str(HERE / "JavaClients.java")], check=True)
    return list(apache_kafka.java("JavaClients", *arguments, classpath=str(folder)))


class Run:
    """`tell` is told what happens."""

    def __init__(
        self, folder: Path, seed: int, seconds: float, kafka: bool, tell: Callable[[str], None], inside: bool
    ) -> None:
        self.folder = folder
        self.seed = seed
        self.seconds = seconds
        self.kafka = kafka
        self.tell = tell
        self.inside = inside
        self.struck: list[Struck] = []

    @contextmanager
    def _started(self) -> Iterator[tuple[Cluster, Clients]]:
        names = [*KEEPERS, *(f"b{node}" for node in BROKERS)]
        field = Field(names) if self.inside else Plain(names)
        cluster = Cluster(field, self.folder, Kafkas if self.kafka else Ours)
        with ExitStack() as stack:
            stack.callback(cluster.end)
            cluster.start()
            clients = Clients(self.folder / "clients", cluster.bootstrap, self.seed)
            stack.callback(clients.end)
            yield cluster, clients

    def judged(self) -> Figures:
        """Raises `Failed` where the cluster does not recover, or a client does not go on."""
        with self._started() as (cluster, clients):
            until(lambda: clients.successful_since(0) == CLIENTS, "all clients begin")
            until(cluster.well, "state topics are in sync")
            self._harm(cluster, clients)
            until(cluster.well, "all replicas are in sync when all is healed")
            healed = time.monotonic_ns()
            self.tell("healed")
            until(lambda: clients.successful_since(healed) == CLIENTS, "all clients go on when all is healed")
            clients.stop()
            until(cluster.well, "all replicas are in sync at the end")
            read(self.folder / "read.jsonl", cluster.bootstrap)
            ended = sum(each.ended for each in cluster.brokers.values())
        lines = merged([*clients.lines(), lines_of(self.folder / "read.jsonl")])
        anomalies = self._anomalies(lines)
        found = {(each.kind, each.operations[0].number if each.operations else each.what) for each in anomalies}
        return figures_of(lines, self.struck, [kind for kind, _ in found], ended)  # both readers miss a lost record

    def _harm(self, cluster: Cluster, clients: Clients) -> None:
        ends_s = time.monotonic() + self.seconds
        for fault in faults.schedule(self.seed, faults.kinds_on(cluster.field), BROKERS):
            if time.monotonic() > ends_s:
                return
            self.tell(str(fault))
            begun_ns = time.monotonic_ns()
            with faults.struck(fault, cluster):
                until_s = time.monotonic() + fault.hold_s
                while time.monotonic() < until_s:
                    clients.check()
                    cluster.tended()
                    time.sleep(0.05)
            ended_ns, recovered_ns = time.monotonic_ns(), None
            if fault.recovers:
                until(cluster.well, f"all replicas are in sync after {fault}")
                recovered_ns = time.monotonic_ns()
                self.tell(f"in sync after {(recovered_ns - ended_ns) / 1e9:.1f} s")
            self.struck.append(Struck(fault.kind, begun_ns, ended_ns, recovered_ns))

    def _anomalies(self, lines: list[dict[str, Any]]) -> list[Any]:
        with (self.folder / "history.jsonl").open("w") as sink:
            history = History(sink)
            for line in lines:
                history.add({key: value for key, value in line.items() if key != "at"})
        found = check(history)
        for each in found[:20]:
            self.tell(str(each)[:400])
        return found


def read(path: Path, bootstrap: str) -> None:
    """Every partition from its start to its end, as readers of both kinds see it; waits for open transactions."""
    with path.open("w") as sink, ExitStack() as stack:
        recorder = Recorder(sink)
        consumers = {}
        for isolation in ("read_uncommitted", "read_committed"):
            settings = {"enable.partition.eof": True, "enable.auto.commit": False, "isolation.level": isolation}
            made = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", **settings})
            stack.callback(made.close)
            consumers[isolation] = made
        for topic, size in TOPICS.items():
            for partition in range(size):
                place = TopicPartition(topic, partition)
                until(partial(_is_at_rest, [*consumers.values()], place), f"all of {place} is committed or aborted")
                for isolation, consumer in consumers.items():
                    _read(recorder, consumer, place, isolation)


def _is_at_rest(consumers: list[Any], place: TopicPartition) -> bool:
    """Whether these consumers, of both isolations, may read up to the same offset; False where one gets no answer."""
    try:
        ends = {int(consumer.get_watermark_offsets(place, timeout=20)[1]) for consumer in consumers}
    except KafkaException:
        return False
    return len(ends) == 1


def _read(recorder: Recorder, consumer: Any, place: TopicPartition, isolation: str) -> None:
    start, end = consumer.get_watermark_offsets(place, timeout=60)
    number = recorder.call("read", "judge", topic=place.topic, partition=place.partition, isolation=isolation)
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    rows: list[list[Any]] = []
    ends_s = time.monotonic() + 240
    while True:
        message = consumer.poll(1.0)
        if time.monotonic() > ends_s:
            raise Failed(f"{place} can't be read to its end")
        if message is None:
            continue
        if message.error() is None:
            rows.append([place.topic, place.partition, message.offset(), message.value().decode()])
        elif message.error().code() == PARTITION_EOF and message.offset() >= end:
            break
    recorder.ok(number, start=start, end=end, records=rows)
