"""`logkernel serve --processes`: a process a broker; its folder is that of a cluster in one process."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from click.testing import CliRunner
from recorded_writes import Recorded
from served_processes import ServedProcesses, alive, wait_for

from logkernel.broker.control_socket import ask
from logkernel.cli.app import app
from logkernel.cluster.processes.messages import SOCKET


def written(cluster: ServedProcesses, values: range) -> None:
    with cluster.connect() as remote, remote.producer(acks="all") as producer:
        for value in values:
            producer.send("orders", b"%d" % value, partition=value % 2).result(120)


def read(cluster: ServedProcesses, count: int) -> list[int]:
    found: list[int] = []
    with cluster.connect() as remote, remote.consumer("orders", auto_offset_reset="earliest") as consumer:
        for _ in range(300):
            found += [int(record.value or b"") for record in consumer.poll(0.1)]
            if len(found) >= count:
                break
    return sorted(found)


def test_a_cluster_goes_back_and_forth_between_one_process_and_many(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServedProcesses(data) as cluster:
        assert len({*cluster.pids(), cluster.process and cluster.process.pid}) == 4
        cluster.create("orders", 2, min_insync_replicas="2")
        written(cluster, range(10))
        status = CliRunner().invoke(app, ["cluster", "status", "-b", cluster.servers])
        assert status.exit_code == 0, status.output
        told = [ask(str(cluster.folder(node)), "status", {})["result"] for node in (1, 2, 3)]
        assert len({row["clusterId"] for row in told}) == 1
        assert [row["partitions"] for row in told] == [2, 2, 2]
        assert sum(row["led"] for row in told) == 2
        assert cluster.stop() == 0
    assert sorted(each.name for each in data.iterdir()) == ["broker-1", "broker-2", "broker-3", "coordination"]
    assert not (data / "coordination" / SOCKET).exists()
    with ServedProcesses(data, processes=False) as cluster:
        assert read(cluster, 10) == list(range(10))
        written(cluster, range(10, 20))
        assert cluster.stop() == 0
    with ServedProcesses(data) as cluster:
        assert read(cluster, 20) == list(range(20))
        assert cluster.stop(signal.SIGINT) == 0


def test_a_broker_that_is_killed_comes_back_and_nothing_is_lost(tmp_path: Path) -> None:
    with ServedProcesses(tmp_path / "data") as cluster:
        cluster.create("orders", 1, min_insync_replicas="2")
        with cluster.connect() as remote:
            with Recorded(remote, "orders") as writer:
                writer.wait_for_more()
                leader = cluster.leader("orders")
                cluster.signal(leader, signal.SIGKILL)
                writer.wait_for_more()
                cluster.wait_for_isr("orders", 3)
                writer.wait_for_more()
            writer.check(remote)
        assert f"broker died: node_id={leader} exit=-9" in cluster.log()
        assert cluster.stop() == 0


def test_no_broker_outlives_its_parent_and_the_cluster_starts_again(tmp_path: Path) -> None:
    with ServedProcesses(tmp_path / "data") as cluster:
        cluster.create("orders", 2, min_insync_replicas="2")
        written(cluster, range(10))
        brokers = cluster.pids()
        cluster.signal(1, signal.SIGSTOP)  # not even one that cannot hear of it
        cluster.kill()
        wait_for(lambda: not any(map(alive, brokers)), "brokers outlive their parent")
        cluster.start()
        assert read(cluster, 10) == list(range(10))
        assert cluster.stop() == 0


def test_a_second_parent_and_a_bad_setting_are_refused(tmp_path: Path) -> None:
    with ServedProcesses(tmp_path / "data", 1) as cluster:
        second = subprocess.run(cluster.command(), capture_output=True, text=True, timeout=300, check=False)
        assert second.returncode == 2
        assert "is in use" in second.stderr
    bad = ServedProcesses(tmp_path / "bad", 2, "num.partitions=none")
    refused = subprocess.run(bad.command(), capture_output=True, text=True, timeout=300, check=False)
    assert refused.returncode == 2
    assert "num.partitions" in refused.stderr


def test_processes_need_a_number_of_brokers(tmp_path: Path) -> None:
    result = subprocess.run(
        [*ServedProcesses(tmp_path).command()[:4], "--processes", "--data", str(tmp_path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert "--brokers N" in result.stderr
