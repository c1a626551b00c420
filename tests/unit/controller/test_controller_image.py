"""Folding changes."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from logkernel.contracts import MetadataChange
from logkernel.controller.image import (
    BrokerRegistration,
    ClusterImage,
    Partition,
    Topic,
    partition_change,
    registration_change,
)

ID = UUID(int=5)


def topic(name: str, partitions: int, topic_id: UUID = ID) -> Topic:
    return Topic(name, topic_id, [Partition((1, 2), (1, 2), 1) for _ in range(partitions)])


def through_json(change: MetadataChange) -> MetadataChange:
    return MetadataChange(change.kind, change.key, json.loads(json.dumps(change.value)))


def test_a_whole_image_survives_its_snapshot() -> None:
    changes = [
        MetadataChange("cluster", "", {"id": "c1"}),
        registration_change(BrokerRegistration(1, {"PLAINTEXT": ("a", 9), "OUT": ("b", 8)}, "r1")),
        registration_change(BrokerRegistration(2, {"PLAINTEXT": ("c", 7)}, protocols={"PLAINTEXT": "SSL"})),
        registration_change(BrokerRegistration(3, {})),
        topic("orders", 3).change(),
        partition_change("orders", 1, Partition((2, 1), (2,), 2, 4, 6)),
        MetadataChange("config", "topic:orders", {"retention.ms": "1"}),
        MetadataChange("config", "broker:", {"log.retention.ms": "2"}),
        MetadataChange("producer_ids", "", {"next": 1000}),
        MetadataChange("broker", "3", None),
        MetadataChange("of tomorrow", "x", {"a": 1}),
    ]
    image = ClusterImage.of(map(through_json, changes))
    assert image == ClusterImage.of(map(through_json, image.snapshot()))
    assert image.topics["orders"].partitions[1] == Partition((2, 1), (2,), 2, 4, 6)
    assert image.topics["orders"].partitions[0].leader_epoch == 0
    assert image.nodes[2].protocols == {"PLAINTEXT": "SSL"}
    assert image.brokers("PLAINTEXT") == [(1, "a", 9, "r1"), (2, "c", 7, None)]
    assert image.brokers("OUT") == [(1, "b", 8, "r1")]
    assert (image.topic_name(ID), image.topic_id("orders"), image.partition_count("orders")) == ("orders", ID, 3)
    assert image.topic_config("orders") == {"retention.ms": "1"}
    assert image.broker_config("") == {"log.retention.ms": "2"}
    assert image.broker_config(1) == image.topic_config("none") == {}
    assert (image.cluster_id, image.next_producer_id) == ("c1", 1000)


def test_deleting_and_making_anew() -> None:
    image = ClusterImage.of([topic("a", 1).change(), MetadataChange("config", "topic:a", {"x": "1"})])
    image.apply_all([MetadataChange("topic", "a", None), MetadataChange("config", "topic:a", None)])
    assert image == ClusterImage(gone={ID: topic("a", 1)})
    image.apply_all([topic("a", 1).change(), topic("a", 2, UUID(int=9)).change()])
    assert image.names == {UUID(int=9): "a"}
    assert [image.partition_count("gone"), image.topic_id("gone"), image.topic_name(ID)] == [None] * 3


def test_a_partition_of_no_topic_is_a_fault() -> None:
    with pytest.raises(KeyError):
        ClusterImage().apply(partition_change("none", 0, Partition((1,), (1,), 1)))


def test_a_large_topic_is_compact() -> None:
    assert len(json.dumps(topic("a", 1000).change().value, separators=(",", ":"))) < 25_000


def test_producer_ids_never_go_back() -> None:
    image = ClusterImage.of([MetadataChange("producer_ids", "", {"next": n}) for n in (2000, 1000)])
    assert image.next_producer_id == 2000
