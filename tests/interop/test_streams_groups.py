"""Kafka Streams by `group.protocol=streams`: a word count with state, a repartition topic and standbys.

Instances come, are killed and go, the broker is killed, and the counts are those of a classic group.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import kafka_tools
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

import logkernel

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WORDS = ("offset", "segment", "index", "epoch", "leader", "marker", "batch")
PARTITIONS = 3
WAIT_S = 180.0
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "2000",
    "group.streams.session.timeout.ms": "4000",
    "group.initial.rebalance.delay.ms": "0",
}
ALL_TASKS = {f"{subtopology}_{number}" for subtopology in (0, 1) for number in range(PARTITIONS)}


class Instance:
    """One life of the application in a JVM."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True)

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def tasks(self) -> tuple[set[str], set[str]]:
        """(active, standby), as the instance tells them."""
        before = self.log.read_text().count("\ntasks ")
        self.say("tasks")
        deadline = time.monotonic() + WAIT_S
        while self.log.read_text().count("\ntasks ") == before:
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            assert self.process.poll() is None
            time.sleep(0.02)
        last = self.log.read_text().rsplit("\ntasks ", 1)[1].splitlines()[0]
        active, standby = (set(re.findall(r"\d+_\d+", part)) for part in last.split("standby="))
        return active, standby

    def close(self) -> None:
        """It leaves the group by itself."""
        self.say("close")
        assert self.process.wait(WAIT_S) == 0, self.log.read_text()[-3000:]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Application:
    """An application with its topics: what was sent to it, and what it counted."""

    def __init__(self, bootstrap: str, name: str, launch: Callable[[int], Instance]) -> None:
        self.name = name
        self.launch = launch
        settings = {"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200}
        self._settings = settings
        self._sent = 0
        self._read = dict.fromkeys(range(PARTITIONS), 0)
        """The next offset of each partition."""
        self.open()
        self.expected: Counter[str] = Counter()
        self.seen: dict[str, list[int]] = defaultdict(list)

    def open(self) -> None:
        """Write and read by new clients, from where the last ones were."""
        self._source = Producer({**self._settings, "enable.idempotence": True})
        self._reader = Consumer({**self._settings, "group.id": "reader", "isolation.level": "read_committed"})
        self._reader.assign([TopicPartition(f"{self.name}-out", *place) for place in self._read.items()])

    def write(self, count: int) -> None:
        """Sentences of three known words."""
        for number in range(self._sent, self._sent + count):
            words = [WORDS[number * step % len(WORDS)] for step in (1, 2, 3)]
            self._source.produce(f"{self.name}-in", " ".join(words), partition=number % PARTITIONS)
            self.expected.update(words)
        self._sent += count
        assert self._source.flush(WAIT_S) == 0

    def catch_up(self, *instances: Instance) -> None:
        """Read until every word has its count."""
        deadline = time.monotonic() + WAIT_S
        while {word: rows[-1] for word, rows in self.seen.items()} != dict(self.expected):
            logs = "\n".join(instance.log.read_text()[-3000:] for instance in instances)
            assert time.monotonic() < deadline, f"{dict(self.seen)}\n{dict(self.expected)}\n{logs}"
            for message in self._reader.consume(500, 0.2):
                if message.error() is None:
                    self._read[message.partition()] = message.offset() + 1
                    self.seen[message.key().decode()].append(int(message.value()))

    def close(self) -> None:
        self._reader.close()


@pytest.fixture
def application(
    streams_classpath: str, start_broker: Any, make_topic: Any, topic: str, tmp_path: Path
) -> Callable[..., Any]:
    """Starts a broker at the first call; makes an application by a protocol and a guarantee."""
    broker: list[Any] = []

    def make(protocol: str, guarantee: str) -> tuple[Any, Application]:
        if not broker:
            broker.append(start_broker(*(f"--set={name}={value}" for name, value in SETTINGS.items())))
        bootstrap, name = broker[0].bootstrap, f"{topic}-{protocol}"
        for end in ("in", "out"):
            make_topic(bootstrap, f"{name}-{end}", PARTITIONS)

        def launch(number: int) -> Instance:
            arguments = [bootstrap, name, f"{name}-in", f"{name}-out", str(tmp_path / f"state-{protocol}-{number}")]
            more = [f"group.protocol={protocol}", f"processing.guarantee={guarantee}"]
            java = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", streams_classpath, "StreamsCount"]
            return Instance([*java, *arguments, *more], tmp_path / f"{protocol}-{number}.log")

        return broker[0], Application(bootstrap, name, launch)

    return make


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_counts_survive_kills(application: Callable[..., Any], guarantee: str) -> None:
    broker, app = application("streams", guarantee)
    set_standbys(broker, app.name, 1)
    instances = [app.launch(1)]
    try:
        app.write(300)
        app.catch_up(*instances)
        instances.append(app.launch(2))
        wait_for_tasks(instances)
        app.write(300)  # under way while an instance dies
        instances.pop(0).kill()
        app.catch_up(*instances)
        broker.kill()
        broker.restart()
        app.write(300)
        instances.append(app.launch(1))  # back, with the stores that it left
        app.catch_up(*instances)
        wait_for_tasks(instances)
        for instance in instances:
            instance.close()
        app.write(300)
        instances = [app.launch(3)]
        app.catch_up(*instances)
    finally:
        for instance in instances:
            instance.kill()
        app.close()
    for word, rows in app.seen.items():
        assert rows[-1] == app.expected[word]
        if guarantee == "exactly_once_v2":
            assert rows == list(range(1, app.expected[word] + 1)), f"{word} is counted twice, or not at all"


def set_standbys(broker: Any, name: str, count: int) -> None:
    with logkernel.connect(broker.bootstrap) as log, log.admin() as admin:
        admin.alter_configs({("group", name): {"streams.num.standby.replicas": count}})


def wait_for_tasks(instances: list[Instance]) -> None:
    """Until the instances have each task active once, and each with state standby at another."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = [instance.tasks() for instance in instances]
        active = [name for mine, _ in found for name in mine]
        standby = [name for _, mine in found for name in mine]
        if sorted(active) == sorted(ALL_TASKS) and sorted(standby) == ["1_0", "1_1", "1_2"]:
            assert all(not mine & copies for mine, copies in found)
            return
        assert time.monotonic() < deadline, found


def test_a_classic_group_counts_the_same_and_kafkas_tools_know_both(
    application: Callable[..., Any], apache_kafka: ModuleType, tmp_path: Path
) -> None:
    broker, app = application("streams", "at_least_once")
    _, classic = application("classic", "at_least_once")
    for one in (app, classic):
        one.write(300)
    running = [app.launch(1), classic.launch(1)]
    try:
        app.catch_up(*running)
        classic.catch_up(*running)
        with kafka_tools.KafkaTools(kafka_tools.command(apache_kafka, tmp_path, apache_kafka.VERSION)) as tools:
            tool = "org.apache.kafka.tools.streams.StreamsGroupCommand"

            def command(*words: str) -> str:
                printed = tools.run(tool, "--bootstrap-server", broker.bootstrap, *words)
                assert printed.code == 0, printed.text
                return printed.text

            assert command("--list").split() == [app.name]
            assert "Stable" in command("--describe", "--state", "--group", app.name)
            members = command("--describe", "--members", "--verbose", "--group", app.name)
            assert "ACTIVE: 0:[0,1,2]; 1:[0,1,2];" in members.replace("\t", " "), members
            offsets = command("--describe", "--offsets", "--group", app.name)
            assert f"{app.name}-by-word-repartition" in offsets
            running[0].close()
            assert "Empty" in command("--describe", "--state", "--group", app.name)
            source = ("--input-topic", f"{app.name}-in")
            assert f"{app.name}-in" in command(
                "--reset-offsets", "--group", app.name, *source, "--to-earliest", "--execute"
            )
            command("--delete", "--group", app.name)
            assert command("--list").split() == []
    finally:
        for instance in running:
            instance.kill()
        app.close()
        classic.close()
    counts = [{word: rows[-1] for word, rows in one.seen.items()} for one in (app, classic)]
    assert counts[0] == counts[1]
