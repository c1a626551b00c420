"""A Kafka Streams application goes on while its broker is replaced: Apache Kafka, ours, Apache Kafka again, ours again.

All serve one folder at one address. Each reads what the one before it wrote of the group, with the members alive.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from test_adoption import complaints
from test_streams_groups import PARTITIONS, SETTINGS, WAIT_S, Application, Instance

import logkernel
from logkernel.admin import GroupDescription

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
LONG = {"group.streams.session.timeout.ms": "45000", "group.streams.num.standby.replicas": "1"}
"""Members outlive a change of brokers."""
ALL = {**SETTINGS, **LONG, "offsets.topic.num.partitions": "1"}


def described(bootstrap: str, group: str, members: int) -> GroupDescription:
    """The group as soon as it is Stable, with so many members."""
    deadline = time.monotonic() + WAIT_S
    with logkernel.connect(bootstrap) as log, log.admin() as admin:
        while True:
            found = admin.describe_groups(group)[group]
            if found.state == "Stable" and len(found.members) == members:
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.1)


def facts(found: GroupDescription) -> Any:
    """What must be the same at the next broker."""
    names = {member.id: (member.streams and member.streams.process_id, member.host) for member in found.members}
    subtopologies = found.topology.subtopologies if found.topology is not None else ()
    return names, [(one.id, one.sources, one.repartition_sink_topics) for one in subtopologies]


def tasks(found: GroupDescription) -> Any:
    return {member.id: member.streams and member.streams.tasks for member in found.members}


@pytest.mark.longest
def test_an_application_goes_on_at_kafka_and_here_in_turns(
    apache_kafka: ModuleType,
    streams_classpath: str,
    start_broker: Any,
    topic: str,
    make_topic: Callable[..., None],
    tmp_path: Path,
) -> None:
    def launch(number: int) -> Instance:
        java = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", streams_classpath, "StreamsCount"]
        words = [kafka.bootstrap, topic, f"{topic}-in", f"{topic}-out", str(tmp_path / f"state-{number}")]
        return Instance([*java, *words, "group.protocol=streams"], tmp_path / f"{number}.log")

    def serve() -> Any:
        words = [f"--set={name}={value}" for name, value in ALL.items()]
        return start_broker(*words, data=kafka.data, listen=kafka.bootstrap)

    kafka = apache_kafka.KafkaServer(tmp_path / "kafka", ALL)
    kafka.prepare()
    instances: list[Instance] = []
    try:
        kafka.start()
        for end in ("in", "out"):
            make_topic(kafka.bootstrap, f"{topic}-{end}", PARTITIONS)
        app = Application(kafka.bootstrap, topic, launch)
        app.write(150)
        instances.append(launch(1))
        app.catch_up(*instances)
        first = described(kafka.bootstrap, topic, 1)
        app.close()
        kafka.stop()

        broker = serve()
        app.open()
        here = described(kafka.bootstrap, topic, 1)
        assert (facts(here), tasks(here)) == (facts(first), tasks(first))
        assert here.epoch == first.epoch, "the hash of its topics is Kafka's"
        instances.append(launch(2))
        app.write(150)
        app.catch_up(*instances)
        here = described(kafka.bootstrap, topic, 2)
        app.close()
        assert broker.terminate() == 0
        assert "level=error" not in broker.log()

        kafka.start()
        app.open()
        back = described(kafka.bootstrap, topic, 2)
        assert facts(back) == facts(here)
        assert back.epoch == here.epoch
        app.write(150)
        app.catch_up(*instances)
        instances.pop(0).close()
        app.write(150)
        app.catch_up(*instances)
        back = described(kafka.bootstrap, topic, 1)
        assert complaints(kafka.log_path) == []
        app.close()
        kafka.stop()

        broker = serve()
        app.open()
        last = described(kafka.bootstrap, topic, 1)
        assert (facts(last), tasks(last)) == (facts(back), tasks(back))
        app.write(150)
        app.catch_up(*instances)
        instances.pop().close()
        app.close()
    finally:
        for instance in instances:
            instance.kill()
        kafka.stop()
    for word, rows in app.seen.items():
        assert rows[-1] == app.expected[word]
