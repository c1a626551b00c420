"""Commands with `--data` on the folder of a cluster's broker: they read it, and change nothing."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

import logkernel
from logkernel.cli import main
from logkernel.errors import TopicAlreadyExists
from logkernel.storage.names import STATE_TOPIC

REFUSED = "topics, users and rules of this folder's broker are kept elsewhere, by its cluster or in another of its"
CHANGES = [
    "cluster users set zed --password-stdin",
    "cluster users delete zed",
    "cluster acls add User:zed read topic orders",
    "cluster acls remove --principal User:zed",
    "cluster acl --add --allow-principal User:zed --operation Read --topic orders",
    "cluster quotas set --user zed producer_byte_rate=1",
    "cluster token --create",
    "cluster features --set group.version=0",
    "config set topic orders retention.ms=1",
    "config unset topic orders retention.ms",
    "topic create payments",
    "topic alter orders --partitions 9",
    "topic trim orders --before end",
    "topic delete orders",
    "group delete readers",
    "produce orders",
    "consume orders --group readers --exit",
]


def cluster_folder(place: Path) -> Path:
    """Of broker 1 of a cluster that was closed."""
    with logkernel.open_cluster(1, place) as cluster:
        write(cluster)
    return place / "broker-1"


def moved_folder(place: Path) -> Path:
    """The same, without what tells of the cluster beside it, as a broker over ZooKeeper has it."""
    return cluster_folder(place).rename(place / "b2")


def once_alone(place: Path) -> Path:
    """The same, of a broker that served alone in between, and so has a metadata log which does not count."""
    with logkernel.open(cluster_folder(place), node_id=1) as log:
        log.create_topic("own")
    return moved_folder(place)


def metadata_logs(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.startswith(STATE_TOPIC)]


def write(cluster: logkernel.Cluster) -> None:
    with contextlib.suppress(TopicAlreadyExists):
        cluster.create_topic("orders", partitions=1, replication_factor=1)
    with cluster.producer() as producer:
        producer.send("orders", b"one").result(120)


@pytest.fixture(params=[cluster_folder, moved_folder, once_alone], ids=["of --brokers", "by itself", "once alone"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    make: Callable[[Path], Path] = request.param
    return make(tmp_path / "cluster")


def test_what_the_cluster_decides_is_not_changed_in_one_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`Set the … password` was said, and the cluster did not know the user."""
    for words in CHANGES:
        monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
        assert main([*words.split(), "--data", str(folder)]) == 2, words
        assert REFUSED in capsys.readouterr().err, words


def test_reading_leaves_no_metadata_behind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It did, so that the next command took the folder for that of a broker which decides alone."""
    before = metadata_logs(folder)
    for words in ("topic list", "cluster users list", "consume orders --count 1"):
        assert main([*words.split(), "--data", str(folder)]) == 0, words
    assert "orders" in capsys.readouterr().out
    assert metadata_logs(folder) == before
    assert main(["topic", "create", "payments", "--data", str(folder)]) == 2


def test_the_folder_of_a_broker_alone_is_changed(tmp_path: Path) -> None:
    with logkernel.open(tmp_path / "alone"):
        pass
    assert main(["topic", "create", "payments", "--data", str(tmp_path / "alone")]) == 0


def test_a_member_that_serves_alone_again_decides_by_itself(tmp_path: Path) -> None:
    folder = once_alone(tmp_path / "cluster")
    assert main(["topic", "create", "payments", "--data", str(folder)]) == 2
    with logkernel.open(folder, node_id=1):
        pass
    assert main(["topic", "create", "payments", "--data", str(folder)]) == 0
    assert main(["check", str(folder)]) == 0
