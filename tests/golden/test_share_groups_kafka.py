"""Share groups between Apache Kafka and us: its dump tool reads our records, and we go on from a folder of its own."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
if not hasattr(confluent_kafka, "ShareConsumer"):
    pytest.skip("this confluent-kafka has no share consumer", allow_module_level=True)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
GROUP, TOPIC = "jobs", "work"
WAIT_S = 180.0


def prepare(bootstrap: str) -> None:
    """A topic with ten records, and a group that begins at the first."""
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewTopic,
        ResourceType,
    )

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(WAIT_S)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(TOPIC, f"v{number}".encode(), partition=0)
    assert producer.flush(WAIT_S) == 0


def read(bootstrap: str, count: int, judge: Callable[[Any, Any], None]) -> list[int]:
    """Offsets of `count` records, each judged."""
    got: list[int] = []
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "share.acknowledgement.mode": "explicit"}
    with confluent_kafka.ShareConsumer(settings) as reader:
        reader.subscribe([TOPIC])
        deadline = time.monotonic() + WAIT_S
        while len(got) < count:
            assert time.monotonic() < deadline, got
            for message in reader.poll(0.5):
                assert message.error() is None, message.error()
                judge(reader, message)
                got.append(message.offset())
        assert all(error is None for error in reader.commit_sync(WAIT_S).values())
    return got


def odd_ones_are_released(reader: Any, message: Any) -> None:
    from confluent_kafka import AcknowledgeType

    odd = message.offset() % 2
    reader.acknowledge(message, AcknowledgeType.RELEASE if odd else AcknowledgeType.ACCEPT)


def all_are_accepted(reader: Any, message: Any) -> None:
    reader.acknowledge(message)


def test_the_dump_tool_reads_our_records(broker: Any, apache_kafka: ModuleType) -> None:
    prepare(broker.bootstrap)
    assert read(broker.bootstrap, 10, odd_ones_are_released)[:10] == list(range(10))
    assert broker.terminate() == 0

    def dump(decoder: str, topic: str) -> str:
        files = ",".join(str(path) for path in sorted(broker.data.glob(f"{topic}-*/*.log")) if path.stat().st_size)
        command = apache_kafka.java("org.apache.kafka.tools.DumpLogSegments", decoder, "--files", files)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    states = dump("--share-group-state-decoder", "__share_group_state")
    assert '"groupId":"jobs"' in states
    assert re.search(r'"startOffset":1\b', states), states
    assert re.search(r'"firstOffset":2,"lastOffset":2,"deliveryState":2,"deliveryCount":1', states), states
    members = dump("--offsets-decoder", "__consumer_offsets")
    for kind in range(10, 16):
        assert f'"type":"{kind}"' in members, members
    assert '"subscribedTopicNames":["work"]' in members


def test_we_go_on_from_a_folder_of_kafka(apache_kafka: ModuleType, start_broker: Any, tmp_path: Path) -> None:
    """What Kafka's group accepted is not delivered again, what it released is, for the second time."""
    kafka = apache_kafka.KafkaServer(tmp_path / "kafka")
    kafka.prepare()
    try:
        kafka.start()
        prepare(kafka.bootstrap)
        assert read(kafka.bootstrap, 10, odd_ones_are_released)[:10] == list(range(10))
    finally:
        kafka.stop()
    ours = start_broker(data=kafka.data)
    assert sorted(read(ours.bootstrap, 5, all_are_accepted)) == [1, 3, 5, 7, 9]
