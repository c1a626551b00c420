"""`partition.metadata` is written without a sync of its own: what a crash leaves of it must not cost the partition."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.storage.checkpoints import CorruptCheckpoint
from logkernel.storage.ledger import NoProducers
from logkernel.storage.log import Log
from logkernel.storage.simdisk import SimulatedDisk

PATH = "/data/t-0/partition.metadata"


@pytest.fixture
def disk():
    disk = SimulatedDisk()
    disk.mkdir("/data")
    Log.open(disk, "/data", "t", 0, TopicSettings(), producers=NoProducers(), topic_id=UUID(int=7)).close()
    return disk


@pytest.mark.parametrize("left", [b"", b"version: 0\ntopic_id: AAA", bytes(43)])
def test_after_a_crash_the_log_opens_without_its_id(disk, left):
    disk.write(PATH, left)
    assert Log.open(disk, "/data", "t", 0, TopicSettings(), producers=NoProducers()).topic_id is None
    assert not disk.exists(PATH)


def test_after_a_clean_end_it_is_rot_and_said(disk):
    disk.write(PATH, b"version: 0\ntopic_id: AAA")
    with pytest.raises(CorruptCheckpoint, match="topic_id"):
        Log.open(disk, "/data", "t", 0, TopicSettings(), producers=NoProducers(), clean=True)
