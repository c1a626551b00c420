"""`logkernel cluster check` against three brokers: one dies, one has not heard of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import logkernel
from logkernel.cli import cluster_check, main
from logkernel.cluster.cluster import Cluster

Check = Callable[..., tuple[int, set[tuple[str, str]], dict[str, Any]]]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Broker 2 leads `orders`, of which two replicas must be in sync."""
    monkeypatch.setattr(cluster_check, "AGAIN_S", 0.05)
    with logkernel.open_cluster(brokers=3, listen=True, replica_lag_time_max_ms=600_000) as made:
        made.create_topic("orders", assignment={0: [2, 1, 3]}, min_insync_replicas=2)
        made.wait_for_isr("orders", 0, 3)
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", made.bootstrap_servers)
        yield made


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """(exit code, (kind, about) of each finding, the summary)"""

    def ask(*words: str) -> tuple[int, set[tuple[str, str]], dict[str, Any]]:
        capsys.readouterr()
        code = main(["cluster", "check", "--json", *words])
        *rows, summary = map(json.loads, capsys.readouterr().out.splitlines())
        return code, {(row["kind"], row["about"]) for row in rows}, summary

    return ask


def test_a_cluster_that_is_whole(cluster: Cluster, check: Check) -> None:
    code, found, summary = check()
    assert (code, found) == (0, set())
    assert summary["controller"] == cluster.controller()
    assert (summary["partitions"], summary["errors"], summary["warnings"], summary["notes"]) == (1, 0, 0, 0)
    assert [row["answers"] for row in summary["brokers"]] == [True] * 3


def test_a_broker_is_down(cluster: Cluster, check: Check) -> None:
    cluster.stop(3)
    code, found, _ = check()
    assert code == 1
    assert found == {("broker-down", "broker 3"), ("under-replicated", "orders-0")}
    cluster.kill(1)
    assert ("under-min-isr", "orders-0") in check()[1]


def test_a_move_is_noted_and_is_no_fault(cluster: Cluster, check: Check) -> None:
    cluster.create_topic("moving", assignment={0: [1]})
    cluster.cut({2}, {1})
    with cluster.admin() as admin:
        admin.alter_partition_reassignments({("moving", 0): [2]})
    assert ("reassigning", "moving-0") in check()[1]


def test_people_read_it(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.stop(3)
    assert main(["cluster", "check"]) == 1
    said = capsys.readouterr().out
    assert "error: broker 3 is not registered, and holds replicas\n    remedy: start it;" in said
    assert "1 partitions: 1 errors, 1 warnings, 0 notes" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--coordination", "local"], "is none that brokers share"),
        (["--coordination", "zookeper://h"], "zookeper"),
    ],
)
def test_a_coordination_that_nobody_shares(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "check", *words]) == 2
    assert said in capsys.readouterr().err
