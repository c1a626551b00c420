"""`logkernel cluster status` against three brokers that die and come back."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

import logkernel
from logkernel.cli import cluster_facts, main
from logkernel.cli.cluster_status import look, shown
from logkernel.cli.partition_health import FollowerStatus, followers, state_of
from logkernel.client.admin.topics import PartitionDescription
from logkernel.cluster.cluster import Cluster
from logkernel.vocabulary import TopicPartition

Status = Callable[[dict[str, str], int], dict[str, Any]]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Broker 2 leads `orders`, of which two replicas must be in sync; `alone` is on broker 3 only."""
    with logkernel.open_cluster(brokers=3, listen=True) as made:
        made.create_topic("orders", assignment={0: [2, 1, 3]}, min_insync_replicas=2)
        made.create_topic("alone", assignment={0: [3]})
        made.wait_for_isr("orders", 0, 3)
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", made.bootstrap_servers)
        yield made


@pytest.fixture
def status(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Status:
    """The status as JSON, as soon as it says these states of partitions; it has to come with this exit code."""

    def ask(states: dict[str, str], code: int) -> dict[str, Any]:
        told: dict[str, str] = {}
        for _ in range(100):
            capsys.readouterr()
            found = main(["cluster", "status", "--json"])
            (line,) = capsys.readouterr().out.splitlines()
            document: dict[str, Any] = json.loads(line)
            told = {f"{row['topic']}-{row['partition']}": row["state"] for row in document["lacking"]}
            if told == states:
                assert found == code
                return document
        raise AssertionError(f"{told}, not {states}")

    return ask


def test_a_cluster_that_is_whole(cluster: Cluster, status: Status) -> None:
    found = status({}, 0)
    assert (found["partitions"], found["offline"], found["underMinIsr"], found["underReplicated"]) == (2, 0, 0, 0)
    assert found["controller"] == cluster.controller()
    assert [row["id"] for row in found["brokers"] if row["controller"]] == [cluster.controller()]
    assert [(row["id"], row["leads"], row["replicas"]) for row in found["brokers"]] == [(1, 0, 1), (2, 1, 1), (3, 1, 2)]
    assert ",".join(row["address"] for row in found["brokers"]) == cluster.bootstrap_servers


def test_brokers_die_one_after_the_other(cluster: Cluster, status: Status) -> None:
    cluster.stop(1)
    found = status({"orders-0": "under-replicated"}, 0)
    (row,) = found["lacking"]
    assert (row["leader"], row["replicas"], row["isr"], row["minIsr"]) == (2, [2, 1, 3], [2, 3], 2)
    gone, follower = row["followers"]
    assert gone == {"id": 1, "lag": None}
    assert follower == {"id": 3, "lag": 0}
    assert [row["address"] is None for row in found["brokers"]] == [True, False, False]
    cluster.kill(3)
    alone, orders = status({"alone-0": "offline", "orders-0": "under-min-isr"}, 1)["lacking"]
    assert (alone["leader"], alone["isr"]) == (-1, [3])
    with cluster.admin() as admin:
        assert orders["leaderEpoch"] == admin.describe_topics("orders")["orders"].partitions[0].leader_epoch
    for node in (1, 3):
        cluster.start(node)
    status({}, 0)


def test_a_follower_is_behind_by_records() -> None:
    name = TopicPartition("orders", 0)
    part = PartitionDescription(0, 2, 5, (2, 1, 3, 4), (2, 4))
    found = followers(name, part, {(2, name): 50, (1, name): 43, (4, name): 51})
    assert found == (FollowerStatus(1, 7), FollowerStatus(3, None), FollowerStatus(4, 0))
    leaderless = PartitionDescription(0, -1, 5, (1,), (1,))
    assert followers(name, leaderless, {(1, name): 100}) == (FollowerStatus(1, None),)


@pytest.mark.parametrize(
    ("leader", "isr", "min_isr", "state"),
    [
        (-1, (1,), 1, "offline"),
        (1, (1,), 2, "under-min-isr"),
        (1, (1, 2), 2, "under-replicated"),
        (1, (1, 2), 4, "under-min-isr"),
        (1, (1, 2, 3), 4, None),
    ],
)
def test_the_worst_is_said_of_a_partition(leader: int, isr: tuple[int, ...], min_isr: int, state: str | None) -> None:
    """A partition with fewer replicas than min.insync.replicas needs all of them, and no more."""
    assert state_of(PartitionDescription(0, leader, 5, (1, 2, 3), isr), min_isr) == state


def write(cluster: Cluster, count: int, acks: str) -> None:
    with cluster.producer(acks=acks, enable_idempotence=False) as producer:
        for number in range(count):
            producer.send("orders", b"%d" % number, partition=0)


def test_a_lag_is_told_in_records_though_nothing_of_it_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    with logkernel.open_cluster(brokers=4, listen=True) as cluster:
        leader, follower, cut = (node for node in cluster.brokers if node != cluster.controller())
        cluster.create_topic("orders", assignment={0: [leader, follower, cut]}, min_insync_replicas=3)
        write(cluster, 3, "all")
        cluster.cut({leader}, {cut})
        write(cluster, 5, "1")
        cluster.kill(follower)
        at = ["-b", cluster.bootstrap_servers]
        capsys.readouterr()
        deadline_s, line = time.monotonic() + 180, ""
        while "State: under-min-isr" not in line:
            assert time.monotonic() < deadline_s, line
            assert main(["topic", "describe", "orders", *at]) == 0
            line = capsys.readouterr().out.splitlines()[1]
        assert f"\tLag: {follower}:-,{cut}:5\tState: under-min-isr" in line
        assert main(["topic", "describe", "orders", *at, "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)["partitions"]
        assert (row["state"], row["followers"]) == (
            "under-min-isr", [{"id": follower, "lag": None}, {"id": cut, "lag": 5}]
        )  # fmt: skip
        assert main(["cluster", "status", *at, "--json"]) == 1
        (row,) = json.loads(capsys.readouterr().out)["lacking"]
        assert row["followers"] == [{"id": follower, "lag": None}, {"id": cut, "lag": 5}]


def test_a_broker_that_hangs_is_asked_no_longer(capsys: pytest.CaptureFixture[str]) -> None:
    """It is announced, and its replicas count, but nothing comes from it."""
    with logkernel.open_cluster(brokers=3, listen=True, session_timeout_ms=600_000) as cluster:
        cluster.create_topic("orders", assignment={0: [2, 1, 3]})
        cluster.wait_for_isr("orders", 0, 3)
        cluster.stop(3)
        cluster.pause(next(node for node in (1, 2) if node != cluster.controller()))
        capsys.readouterr()
        assert main(["cluster", "status", "-b", cluster.bootstrap_servers, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
    assert [row["address"] is None for row in document["brokers"]] == [False, False, True]
    assert {one["lag"] for one in document["lacking"][0]["followers"]} == {None}


def test_the_text(cluster: Cluster, status: Status, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.kill(3)
    status({"alone-0": "offline", "orders-0": "under-replicated"}, 1)
    assert main(["cluster", "status"]) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["BROKER", "ADDRESS", "LEADS", "REPLICAS"]
    assert lines[3][:2] == ["3", "down"]
    assert " ".join(lines[4]) == "2 partitions: 1 offline, 0 under-min-isr, 1 under-replicated"
    assert lines[6] == ["alone-0", "offline", "-", "1", "3", "3", "3:-"]
    assert lines[7][:2] + lines[7][4:] == ["orders-0", "under-replicated", "2,1,3", "2,1", "1:0,3:-"]


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (("cluster", "status"), b"0 under-replicated", b"1 under-replicated"),
        (("topic", "describe", "orders"), b"Lag: 1:0,3:0", b"State: under-replicated"),
    ],
    ids=["cluster status", "topic describe"],
)
def test_watching_redraws_until_ctrl_c(cluster: Cluster, words: tuple[str, ...], before: bytes, after: bytes) -> None:
    """On a terminal of its own. The second status is drawn over the first."""
    command = [sys.executable, "-m", "logkernel", *words, "--watch", "0.1"]
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "250"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as watching:
        os.close(theirs)
        try:
            seen = b""
            while before not in seen:
                seen += os.read(ours, 65536)
            cluster.kill(1)
            while after not in seen:
                seen += os.read(ours, 65536)
            watching.send_signal(signal.SIGINT)
            assert watching.wait(300) == 0
        finally:
            watching.kill()
    os.close(ours)
    assert b"\x1b[1A" in seen
    assert b"Traceback" not in seen


def test_without_a_terminal_a_watch_prints_one_status_after_the_other(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "logkernel", "cluster", "status", "--watch", "0.1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            first, second = (json.loads(watching.stdout.readline()) for _ in range(2))
            watching.send_signal(signal.SIGINT)
            assert watching.wait(300) == 0
        finally:
            watching.kill()
    assert first == second


def test_a_narrow_terminal_shows_it_all(cluster: Cluster) -> None:
    with cluster.admin() as admin:
        text = io.StringIO()
        Console(file=text, width=60).print(shown(look(admin, admin)))
    assert "2 partitions" in text.getvalue()


@pytest.mark.parametrize(
    ("leader", "isr", "state"),
    [(-1, (1,), "offline"), (1, (1,), "under-min-isr"), (1, (1, 2), "under-replicated"), (1, (1, 2, 3), None)],
)
def test_the_worst_is_said(leader: int, isr: tuple[int, ...], state: str | None) -> None:
    assert state_of(PartitionDescription(0, leader, 5, (1, 2, 3), isr), 2) == state


@pytest.mark.parametrize("command", ["status", "check"])
def test_a_coordination_that_is_away_is_waited_for_no_longer_than_told(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was waited for the session timeout of 18 s, without a word."""
    monkeypatch.setattr(cluster_facts, "SILENT_S", 0.01)
    words = ["--coordination", "zookeeper://127.0.0.1:1/x", "--timeout", "0.2"]
    assert main(["cluster", command, *words]) == 1
    said = capsys.readouterr().err
    assert "waiting for zookeeper://127.0.0.1:1/x for up to 0.2 s …" in said
    assert "ZooKeeper at 127.0.0.1:1 gave no session in 200 ms; start it" in said
