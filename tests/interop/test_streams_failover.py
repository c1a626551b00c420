"""Kafka Streams by `group.protocol=streams`, exactly once, while the broker that coordinates the application dies.

Three brokers over ZooKeeper. None of them but one is the controller, so the coordinator asks it for internal topics.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from served_over_zookeeper import Served
from test_streams_groups import PARTITIONS, SETTINGS, Application, Instance

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
ALL = {
    **SETTINGS,
    "group.streams.session.timeout.ms": "20000",
    "transaction.state.log.num.partitions": "2",
    "default.replication.factor": "3",
}


@pytest.mark.longest
def test_an_application_outlives_its_coordinator(
    streams_classpath: str,
    patient_zookeeper: zookeepers.ZooKeeper,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
    topic: str,
    tmp_path: Path,
) -> None:
    served = Served(f"zookeeper://{patient_zookeeper.address}/{topic}", start_broker, eventually)
    for node in (1, 2, 3):
        served.start(node, *(f"--set={name}={value}" for name, value in ALL.items()))
    bootstrap = ",".join(broker.bootstrap for broker in served.brokers.values())

    def launch(number: int) -> Instance:
        java = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", streams_classpath, "StreamsCount"]
        words = [bootstrap, topic, f"{topic}-in", f"{topic}-out", str(tmp_path / f"state-{number}")]
        more = ["group.protocol=streams", "processing.guarantee=exactly_once_v2"]
        return Instance([*java, *words, *more], tmp_path / f"{number}.log")

    instances: list[Instance] = []
    with served.connect() as log, log.admin() as admin:
        admin.update_features({"streams.version": 1})  # a cluster over ZooKeeper has it off at first
        for end in ("in", "out"):
            served.create(log, f"{topic}-{end}", PARTITIONS, 3)

        def is_whole(members: int) -> bool:
            found = admin.describe_groups(topic)[topic]
            return found.state == "Stable" and len(found.members) == members

        try:
            app = Application(bootstrap, topic, launch)
            app.write(150)
            instances += [launch(1), launch(2)]
            app.catch_up(*instances)
            served.until(lambda: is_whole(2), "two members have their tasks")
            before = admin.describe_groups(topic)[topic]
            app.write(150)  # under way while the coordinator dies
            served.brokers[before.coordinator].kill()
            app.write(150)
            app.catch_up(*instances)
            served.until(lambda: is_whole(2), "another broker coordinates them")
            after = admin.describe_groups(topic)[topic]
            assert after.coordinator != before.coordinator
            assert {one.id for one in after.members} == {one.id for one in before.members}
            for instance in instances:
                instance.close()
            app.close()
        finally:
            for instance in instances:
                instance.kill()
    for word, rows in app.seen.items():
        assert rows == list(range(1, app.expected[word] + 1)), f"{word} is counted twice, or not at all"
