"""A Kafka Streams application goes on while its broker is replaced: Apache Kafka, ours, Apache Kafka again, ours again.

All serve one folder at one address. Each reads what the one before it wrote of the group, with the members alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_adoption import complaints
from test_streams_groups import PARTITIONS, SETTINGS, WAIT_S, Application, Instance

import logkernel
from logkernel.admin import GroupDescription

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
LONG = {"group.streams.session.timeout.ms": "45000", "group.streams.num.standby.replicas": "1"}
"""Members outlive a change of brokers."""
ALL = {**SETTINGS, **LONG, "offsets.topic.num.partitions": "1"}


class Turns:
    """One folder at one address, which Kafka and brokers of ours serve in turns, and an application that goes on."""

    def __init__(self, kafka: Any, start_broker: Any, topic: str, classpath: str, scratch: Path) -> None:
        self.kafka = kafka
        self.instances: list[Instance] = []
        self._start_broker = start_broker
        self._topic, self._classpath, self._scratch = topic, classpath, scratch
        self.app = Application(kafka.bootstrap, topic, self._launch)
        self.app.close()  # each turn has clients of its own

    def _launch(self, number: int) -> Instance:
        java = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", self._classpath, "StreamsCount"]
        topics = [self._topic, f"{self._topic}-in", f"{self._topic}-out"]
        words = [self.kafka.bootstrap, *topics, str(self._scratch / f"state-{number}"), "group.protocol=streams"]
        return Instance([*java, *words], self._scratch / f"{number}.log")

    @contextmanager
    def at_kafka(self) -> Iterator[None]:
        self.kafka.start()
        try:
            self.app.open()
            yield
            assert complaints(self.kafka.log_path) == []
            self.app.close()
        finally:
            self.kafka.stop()

    @contextmanager
    def here(self) -> Iterator[None]:
        words = [f"--set={name}={value}" for name, value in ALL.items()]
        broker = self._start_broker(*words, data=self.kafka.data, listen=self.kafka.bootstrap)
        self.app.open()
        yield
        self.app.close()
        assert broker.terminate() == 0
        assert "level=error" not in broker.log()

    # ------------------------------------------------------------ what happens in a turn

    def begin_one(self) -> None:
        """Another instance of the application."""
        self.instances.append(self.app.launch(len(self.instances) + 1))

    def end_one(self) -> None:
        """The oldest instance leaves."""
        self.instances.pop(0).close()

    def count_more(self) -> None:
        """The instances count what is new."""
        self.app.write(150)
        self.app.catch_up(*self.instances)

    def described(self) -> GroupDescription:
        """The group as soon as it is Stable, with all instances as members."""
        deadline = time.monotonic() + WAIT_S
        with logkernel.connect(self.kafka.bootstrap) as log, log.admin() as admin:
            while True:
                found = admin.describe_groups(self._topic)[self._topic]
                if found.state == "Stable" and len(found.members) == len(self.instances):
                    return found
                assert time.monotonic() < deadline, found
                time.sleep(0.1)

    def kill(self) -> None:
        for instance in self.instances:
            instance.kill()


def facts(found: GroupDescription) -> Any:
    """What must be the same at the next broker: the epoch, as both have one hash of the topics."""
    names = {member.id: (member.streams and member.streams.process_id, member.host) for member in found.members}
    subtopologies = found.topology.subtopologies if found.topology is not None else ()
    return found.epoch, names, [(one.id, one.sources, one.repartition_sink_topics) for one in subtopologies]


def tasks(found: GroupDescription) -> Any:
    return {member.id: member.streams and member.streams.tasks for member in found.members}


@pytest.fixture
def turns(
    apache_kafka: ModuleType, streams_classpath: str, start_broker: Any, topic: str, tmp_path: Path
) -> Iterator[Turns]:
    kafka = apache_kafka.KafkaServer(tmp_path / "kafka", ALL)
    kafka.prepare()
    made = Turns(kafka, start_broker, topic, streams_classpath, tmp_path)
    yield made
    made.kill()


@pytest.mark.longest
def test_an_application_goes_on_at_kafka_and_here_in_turns(
    turns: Turns, topic: str, make_topic: Callable[..., None]
) -> None:
    with turns.at_kafka():
        for end in ("in", "out"):
            make_topic(turns.kafka.bootstrap, f"{topic}-{end}", PARTITIONS)
        turns.begin_one()
        turns.count_more()
        first = turns.described()
    with turns.here():
        here = turns.described()
        assert (facts(here), tasks(here)) == (facts(first), tasks(first))
        turns.begin_one()
        turns.count_more()
        here = turns.described()
    with turns.at_kafka():
        back = turns.described()
        assert facts(back) == facts(here)
        turns.count_more()
        turns.end_one()
        turns.count_more()
        back = turns.described()
    with turns.here():
        last = turns.described()
        assert (facts(last), tasks(last)) == (facts(back), tasks(back))
        turns.count_more()
        turns.end_one()
    for word, rows in turns.app.seen.items():
        assert rows[-1] == turns.app.expected[word]
