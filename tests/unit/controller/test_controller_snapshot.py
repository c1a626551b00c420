"""What administrators keep folds, survives a snapshot, and goes; and when a snapshot is due."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.contracts import MetadataChange
from logkernel.controller.compaction import due
from logkernel.controller.image import ClusterImage, Scram, acl_key, quota_key, rack_change, scram_change
from logkernel.vocabulary import Acl

ACL = Acl(2, 3, 'odd "name": ä', "User:x:y", "*", 3, 3)
SCRAM = Scram(4096, "c2FsdA==", "a2V5", "a2V5Mg==")
ENTITY = (("client-id", None), ("user", 'a"b'))
CHANGES = [
    MetadataChange("acl", acl_key(ACL), {}),
    scram_change("ann:with:colons", 2, SCRAM),
    MetadataChange("quota", quota_key(ENTITY), {"producer_byte_rate": 1.5}),
    MetadataChange("config", "group:g", {"share.isolation.level": "read_committed"}),
    MetadataChange("config", "client-metrics:m", {"interval.ms": "100"}),
    MetadataChange("topic", "t", {"id": str(UUID(int=7)), "internal": False, "partitions": []}),
    MetadataChange("topic", "t", None),
    rack_change(1, "a"),
    rack_change(2, "b"),
    rack_change(2, None),
    MetadataChange("feature", "f", {"level": 1}),
    MetadataChange("feature", "f", {"level": 2}),
]


def test_it_folds() -> None:
    image = ClusterImage.of(CHANGES)
    assert list(image.acls) == [ACL]
    assert image.scram == {("ann:with:colons", 2): SCRAM}
    assert image.quotas == {ENTITY: {"producer_byte_rate": 1.5}}
    assert list(image.gone) == [UUID(int=7)]
    assert image.racks == {1: "a"}
    assert (image.features, image.features_epoch) == ({"f": 2}, 2)


def test_a_snapshot_folds_to_the_same() -> None:
    image = ClusterImage.of(CHANGES)
    snapshot = list(image.snapshot())
    assert ClusterImage.of(snapshot) == image
    assert len(snapshot) <= image.size
    assert len(snapshot) < len(CHANGES)


def test_it_goes() -> None:
    image = ClusterImage.of(CHANGES)
    image.apply_all(MetadataChange(change.kind, change.key, None) for change in CHANGES)
    image.apply(MetadataChange("gone", str(UUID(int=7)), None))
    assert (image.acls, image.scram, image.quotas, image.configs, image.gone) == ({}, {}, {}, {}, {})
    assert image.racks == {}


@pytest.mark.parametrize(
    ("kept", "needed", "answer"),
    [(999, 1, False), (1000, 1, True), (1000, 249, True), (1000, 250, False), (100_000, 30_000, False)],
)
def test_when_a_snapshot_is_due(kept: int, needed: int, answer: bool) -> None:
    assert due(kept, needed) is answer
