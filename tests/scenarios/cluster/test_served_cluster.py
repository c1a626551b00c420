"""`logkernel serve --brokers 3`: each broker has a port and a folder of its own, and all is there after a restart."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import logkernel
import logkernel.admin


@contextlib.contextmanager
def served(folder: Path, *arguments: str) -> Iterator[str]:
    """A cluster of three; gives its addresses, and expects a clean end."""
    command = [sys.executable, "-m", "logkernel", "serve", "--brokers", "3", "--data", str(folder)]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "--log-level", "WARNING", *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("logkernel listening on "), line
        yield line.split()[3]
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_three_brokers_hold_what_is_written_over_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as servers:
        assert len(servers.split(",")) == 3
        with logkernel.connect(servers) as remote:
            with remote.admin() as admin:
                admin.create_topics(logkernel.admin.NewTopic("orders", 2, 3))
                description = admin.describe_topics(["orders"])["orders"]
                assert description.replication_factor == 3
                assert len(admin.describe_cluster().brokers) == 3
            with remote.producer(acks="all") as producer:
                for number in range(10):
                    producer.send("orders", b"%d" % number, partition=number % 2).result(120)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["broker-1", "broker-2", "broker-3", "coordination"]
    with served(tmp_path) as servers, logkernel.connect(servers) as remote:
        found: list[int] = []
        with remote.consumer("orders", auto_offset_reset="earliest") as consumer:
            deadline_s = time.monotonic() + 120
            while len(found) < 10 and time.monotonic() < deadline_s:
                found += [int(record.value or b"") for record in consumer.poll(1)]
        assert sorted(found) == list(range(10))


@pytest.mark.parametrize("more", [(), ("--processes",)], ids=["one process", "processes"])
def test_served_brokers_are_in_racks_and_make_the_topics_of_their_file(tmp_path: Path, more: tuple[str, ...]) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("topics:\n  orders: {partitions: 4, replication.factor: 2}\n")
    with (
        served(tmp_path / "data", "--racks", "a,b", "--config", str(file), *more) as servers,
        logkernel.connect(servers) as remote,
        remote.admin() as admin,
    ):
        racks = {broker.id: broker.rack for broker in admin.describe_cluster().brokers}
        assert racks == {1: "a", 2: "b", 3: "a"}
        deadline_s = time.monotonic() + 120
        while "orders" not in admin.list_topics():
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        partitions = admin.describe_topics(["orders"])["orders"].partitions
        assert [len(row.replicas) for row in partitions] == [2] * 4, "of the first two brokers that came, in any racks"


def test_racks_are_for_brokers_of_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "logkernel", "serve", "--racks", "a", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "--brokers N" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "node.id=4"], "each broker has its own node.id"),
        (["--listen", "a:1,b:2"], "give one HOST:PORT"),
        (["--listen", "127.0.0.1:65535"], "give a port below 65535"),
        (["--coordination", "zookeeper://127.0.0.1:1"], "leave out --coordination"),
        (["--node-id", "3"], "leave out --node-id"),
        (["--set", "coordination=zookeeper"], "a coordination of their own"),
        (["--racks", "a,,b"], "a rack has no name"),
    ],
)
def test_what_each_broker_must_have_of_its_own_is_refused(tmp_path: Path, arguments: list[str], told: str) -> None:
    command = [sys.executable, "-m", "logkernel", "serve", "--brokers", "2", "--data", str(tmp_path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_folder_of_one_broker_and_one_of_more_are_refused(tmp_path: Path) -> None:
    with logkernel.open(tmp_path / "one"):
        pass
    (tmp_path / "many" / "broker-3").mkdir(parents=True)
    for folder, told in (("one", "the folder of a single broker"), ("many", "say --brokers 3")):
        command = [sys.executable, "-m", "logkernel", "serve", "--brokers", "2", "--data", str(tmp_path / folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert (done.returncode, told in done.stderr) == (2, True), done.stderr
