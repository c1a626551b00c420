"""Orders of somebody who may command, and means ill: names that are paths, partitions that no topic has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from commanded import Commanded

from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.errors import InvalidTopicException, UnknownTopicOrPartition
from logkernel.requests.replication import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ID, OTHER = UUID(int=1), UUID(int=2)
NO_NAMES = {
    "outside": "../../outside",
    "path": "a/b",
    "above": "..",
    "empty": "",
    "long": "x" * 300,
    "nul": "nul\0",
    "line-end": "line\nend",
    "umlaut": "\u00fc",
}


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Commanded]:
    made = Commanded(str(tmp_path / "above" / "data"))
    yield made
    made.broker.abandon()


def lead(one: Commanded, topic: str, index: int, topic_id: UUID = ID) -> int:
    state = LeaderAndIsrPartitionState(index, 1, 1, 0, [1], 0, [1], is_new=True)
    answer = one.order(LeaderAndIsrRequest, LeaderAndIsrTopicState(topic, topic_id, [state]))
    one.broker.step()
    return int(answer.topics[0].partition_errors[0].error_code)


def tell(one: Commanded, topic: str, *indexes: int, topic_id: UUID = ID) -> None:
    states = [UpdateMetadataPartitionState(index, 1, 1, 0, [1], 0, [1]) for index in indexes]
    one.order(UpdateMetadataRequest, UpdateMetadataTopicState(topic, topic_id, states))


def folders(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*-0"))


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_a_name_that_no_topic_can_have_is_no_folder_and_no_topic(one: Commanded, tmp_path: Path, name: str) -> None:
    assert lead(one, name, 0) == InvalidTopicException.code
    tell(one, name, 0)
    assert name not in one.broker.metadata.image.topics
    assert not folders(tmp_path)
    assert lead(one, "sound", 0, OTHER) == 0, "its directory is online"
    assert folders(tmp_path) == ["above/data/sound-0"]


def test_an_order_to_delete_reaches_no_folder_elsewhere(one: Commanded, tmp_path: Path) -> None:
    outside = tmp_path / "outside-0"
    outside.mkdir()
    state = StopReplicaPartitionState(0, -2, delete_partition=True)
    answer = one.order(StopReplicaRequest, StopReplicaTopicState("../../outside", [state]))
    one.broker.step()
    assert [row.error_code for row in answer.partition_errors] == [InvalidTopicException.code]
    assert outside.is_dir()


@pytest.mark.parametrize("index", [-1, -(2**31)])
def test_a_negative_partition_is_not_led(one: Commanded, tmp_path: Path, index: int) -> None:
    assert lead(one, "t", index) == UnknownTopicOrPartition.code
    assert lead(one, "t", 0) == 0
    assert folders(tmp_path) == ["above/data/t-0"]


@pytest.mark.parametrize("index", [-1, 100_000, 2**31 - 1])
def test_metadata_of_a_partition_that_no_topic_has_costs_nothing(one: Commanded, index: int) -> None:
    tell(one, "t", 0, index)
    tell(one, "other", 0, 1, topic_id=OTHER)
    topics = one.broker.metadata.image.topics
    assert {name: len(topic.partitions) for name, topic in topics.items()} == {"other": 2}


def test_a_setting_that_no_topic_takes_keeps_no_partition_from_being_led(
    one: Commanded, caplog: pytest.LogCaptureFixture
) -> None:
    """Another program may have written it into ZooKeeper; a cluster that starts again would stand still for it."""
    wrong = {"segment.bytes": "x", "retention.ms": "5", "max.message.bytes": "-1"}
    changes = [MetadataChange("config", f"topic:{name}", wrong) for name in ("a", "b")]
    one.broker.governance.commit(ControllerResult(changes, None, Effects()))
    one.broker.step()
    assert lead(one, "a", 0) == 0
    assert lead(one, "b", 0, OTHER) == 0
    one.broker.replicas.configure(None, one.broker.metadata.topic_settings)
    settings = one.broker.metadata.topic_settings("a")
    sound = one.broker.metadata.topic_settings("c")
    assert (settings.retention_ms, settings.segment_bytes) == (5, sound.segment_bytes)
    assert settings.max_message_bytes == sound.max_message_bytes
    told = [record.getMessage() for record in caplog.records if "topic=a" in record.getMessage()]
    assert len(told) == 2, "once for each"
    assert "Invalid value x for configuration segment.bytes" in told[0]
