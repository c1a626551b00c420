"""The folder of a cluster and that of a single broker: neither is taken for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import logkernel
from logkernel.cli.app import run
from logkernel.errors import ConfigError


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


def test_a_single_broker_leaves_the_folder_of_a_cluster_as_it_is(tmp_path: Path) -> None:
    """It wrote its own files there, and the cluster did not start again."""
    with logkernel.open_cluster(2, tmp_path) as cluster:
        cluster.create_topic("orders", replication_factor=2)
    before = files(tmp_path)
    with pytest.raises(ConfigError, match=r"is the folder of a cluster; give .*broker-\d"):
        logkernel.open(tmp_path)
    assert files(tmp_path) == before
    with logkernel.open_cluster(2, tmp_path) as cluster:
        assert cluster.wait_for_leader("orders", 0) in (1, 2)
    logkernel.open(tmp_path / "broker-1").close()


def test_check_refuses_the_folder_of_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logkernel.open_cluster(1, tmp_path).close()
    assert run(["check", str(tmp_path)]) != 0
    assert "is the folder of a cluster" in capsys.readouterr().err


def test_a_cluster_refuses_the_folder_of_a_single_broker(tmp_path: Path) -> None:
    logkernel.open(tmp_path).close()
    before = files(tmp_path)
    with pytest.raises(ConfigError, match="is the folder of a single broker"):
        logkernel.open_cluster(2, tmp_path)
    assert files(tmp_path) == before


def test_a_topic_named_broker_is_no_cluster(tmp_path: Path) -> None:
    for found in range(2):
        with logkernel.open(tmp_path) as log:
            if not found:
                log.create_topic("broker", partitions=2)
            assert log.append("broker", b"a record", partition=1).offset == found
