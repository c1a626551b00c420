"""A broker of a cluster starts without a disk that cannot be read: what is decided is not on its disks."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from commanded import Commanded

from logkernel.broker.build import build
from logkernel.errors import KafkaStorageError


@pytest.fixture
def folders(tmp_path: Path) -> str:
    """Two folders of log.dirs, of which one is none."""
    (tmp_path / "b").write_bytes(b"")
    return f"{tmp_path / 'a'},{tmp_path / 'b'}"


def test_it_serves_from_its_other_disks(folders: str, tmp_path: Path) -> None:
    one = Commanded(folders)
    try:
        assert one.lead(UUID(int=1)) == 0
        assert (tmp_path / "a" / "t-0").is_dir()
        assert [directory.path for directory in one.broker.logs.directories.offline()] == [str(tmp_path / "b")]
    finally:
        one.broker.abandon()


def test_a_broker_that_decides_alone_does_not_start(folders: str) -> None:
    """What it decided may be on the other one."""
    broker = build(None, [f"log.dirs={folders}"])
    with pytest.raises(KafkaStorageError, match="no metadata log is here, and it may lie where nothing can be read"):
        broker.start()
    broker.abandon()
