"""`logkernel test-server --brokers`: leaders move and die at the word of a test in another language."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from control_port import Server

import logkernel

CLIENT = {"retry.backoff.ms": 5, "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20, "log_level": 0}


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    server = Server("--brokers", "3", "--topic", "orders=2", "--seed", "7")
    yield server
    server.end()


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """With all brokers in sync, before and behind a test."""
    yield shared
    shared.call("DELETE", "/faults")
    shared.call("POST", "/network/heal")
    for node, state in shared.call("GET", "/brokers").items():
        if state != "running":
            shared.call("POST", f"/brokers/{node}/start")
    for partition in (0, 1):
        in_sync(shared, partition)


def in_sync(server: Server, partition: int = 0) -> Any:
    return server.call("POST", "/wait/isr", {"topic": "orders", "partition": partition, "count": 3, "within_s": 60})


def produced(server: Server, value: str, partition: int = 0) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "acks": "all", **CLIENT})
    producer.produce("orders", value, partition=partition)
    assert producer.flush(30) == 0


def values(server: Server, partition: int = 0) -> list[str]:
    return [row["value"] for row in server.call("GET", f"/topics/orders/records?partition={partition}")["records"]]


def test_it_says_where_its_brokers_are(server: Server) -> None:
    addresses = server.ready["bootstrap_servers"].split(",")
    assert len(set(addresses)) == 3
    assert server.ready.keys() == {"bootstrap_servers", "control", "listen", "pid", "version"}
    health = server.call("GET", "/health")
    assert (health["status"], health["bootstrap_servers"]) == ("running", server.bootstrap)
    assert health["brokers"] == server.call("GET", "/brokers") == {"1": "running", "2": "running", "3": "running"}
    assert server.call("GET", "/controller")["controller"] in (1, 2, 3)
    admin = AdminClient({"bootstrap.servers": server.bootstrap, **CLIENT})
    assert sorted(admin.list_topics(timeout=60).brokers) == [1, 2, 3]


def test_a_killed_leader_is_replaced_and_comes_back_on_its_port(server: Server) -> None:
    leader = in_sync(server)["leader"]
    produced(server, "before")
    assert server.call("POST", f"/brokers/{leader}/kill")[str(leader)] == "killed"
    found = server.call("POST", "/wait/leader", {"topic": "orders", "other_than": leader})
    assert found["leader"] != leader
    produced(server, "without")
    assert server.call("POST", f"/brokers/{leader}/start")[str(leader)] == "running"
    row = in_sync(server)
    assert (row["leader"], sorted(row["isr"]), sorted(row["replicas"])) == (found["leader"], [1, 2, 3], [1, 2, 3])
    assert values(server)[-2:] == ["before", "without"]
    assert sorted(server.call("GET", "/health")["bootstrap_servers"].split(",")) == sorted(server.bootstrap.split(","))


def test_leaders_move_and_brokers_stop_and_pause(server: Server) -> None:
    in_sync(server)
    for to in (1, 2, 3):
        assert server.call("POST", "/topics/orders/partitions/0/leader", {"to": to}) == {"leader": to}
        assert server.call("GET", "/topics/orders/partitions")["0"]["leader"] == to
    assert server.call("POST", "/topics/orders/partitions/0/leader")["leader"] != 3
    assert server.call("POST", "/brokers/3/stop")["3"] == "stopped"
    assert server.call("POST", "/brokers/3/start")["3"] == "running"
    assert server.call("POST", "/brokers/3/restart")["3"] == "running"
    assert server.call("POST", "/brokers/2/pause")["2"] == "paused"
    assert server.answer("PUT", "/snapshots/paused")[1]["message"] == "broker 2 is paused; resume it, then save"
    assert server.call("POST", "/brokers/2/resume")["2"] == "running"


def test_brokers_are_cut_off_until_the_network_is_healed(server: Server) -> None:
    in_sync(server)
    server.call("POST", "/topics/orders/partitions/0/leader", {"to": 1})
    end = server.call("GET", "/topics/orders/offsets/0")["end"]
    server.call("POST", "/network/cut", {"one": [1], "other": [2, 3]})
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap, "acks": 1, **CLIENT})
    producer.produce("orders", "alone", partition=0)
    assert producer.flush(30) == 0
    late = {"topic": "orders", "offset": end + 1, "within_s": 0}
    assert server.answer("POST", "/wait/offset", late)[0] == 409, "no follower has it"
    server.call("POST", "/network/heal")
    server.call("POST", "/wait/offset", {**late, "within_s": 60})


def test_faults_of_a_cluster_and_requests_of_one_broker(server: Server) -> None:
    in_sync(server)
    server.call("POST", "/topics/orders/partitions/0/leader", {"to": 1})
    server.call("DELETE", "/requests")
    fault = server.call("POST", "/faults", {"move_leader": 2, "api": "Produce"})
    produced(server, "moved")
    assert (fault["fault"], server.call("GET", "/faults")[0]["struck"]) == (
        "move_leader 2 api=Produce times=1: struck 0 of 0",
        1,
    )
    assert server.call("GET", "/topics/orders/partitions/0")["leader"] == 2
    for broker in (1, 2):
        asked = server.call("GET", f"/requests?api=Produce&broker={broker}")["requests"]
        assert {row["broker"] for row in asked} == {broker}
    assert server.call("GET", "/requests?api=Produce&broker=3")["requests"] == []


def test_snapshots_and_time_are_those_of_all_brokers(server: Server) -> None:
    in_sync(server)
    server.call("PUT", "/snapshots/first")
    before = values(server)
    server.call("POST", "/topics/orders/records", {"value": "later", "partition": 0})
    server.call("POST", "/clock/advance", {"days": 30})
    assert values(server) == []
    server.call("POST", "/snapshots/first/restore")
    assert (values(server), server.call("GET", "/clock")["ahead_ms"]) == (before, 0)


def test_the_disk_of_a_broker_is_full(server: Server) -> None:
    in_sync(server)
    server.call("POST", "/topics/orders/partitions/0/leader", {"to": 1})
    assert server.call("PUT", "/brokers/1/disk", {"full": True}) == {"full": True}
    assert [server.call("GET", f"/brokers/{node}/disk")["full"] for node in (1, 2)] == [True, False]
    conf = {"bootstrap.servers": server.bootstrap, "message.timeout.ms": 300, **CLIENT}
    producer, found = confluent_kafka.Producer(conf), []
    producer.produce("orders", "no room", partition=0, on_delivery=lambda error, _: found.append(error))
    producer.flush(30)
    assert found[0] is not None
    server.call("PUT", "/brokers/1/disk", {"full": False})
    server.call("POST", "/brokers/1/restart")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("POST", "/brokers/9/kill", None, 404, "there is no broker 9; there are 1, 2, 3"),
        ("PUT", "/brokers/9/disk", {"full": True}, 404, "there is no broker 9; there are 1, 2, 3"),
        ("POST", "/brokers/1/start", None, 400, "broker 1 is running; kill or stop it first"),
        ("POST", "/brokers/1/resume", None, 400, "broker 1 is running, not paused"),
        ("POST", "/broker/kill", None, 404, "there is no /broker/kill; there are several brokers here: name one, as"),
        ("PUT", "/disk", {"full": True}, 404, "there is no /disk; there are several brokers here: name one, as"),
        ("POST", "/network/cut", {"one": 1, "other": [2]}, 400, "one is 1; write a list of brokers, e.g. [1, 2]"),
        ("POST", "/network/cut", {"one": [1], "other": [9]}, 400, "there is no broker 9; there are 1, 2, 3"),
        ("GET", "/topics/none/partitions", None, 404, "there is no topic 'none'; create it first"),
        ("GET", "/topics/orders/partitions/7", None, 404, "there is no partition orders-7"),
        ("POST", "/topics/orders/partitions/0/leader", {"to": 9}, 400, "broker 9 has no replica of orders-0"),
        ("POST", "/wait/isr", {"topic": "orders"}, 400, "count is missing"),
        ("POST", "/wait/leader", {"topic": "ordres", "within_s": 0}, 409, "did you mean 'orders'?"),
        ("POST", "/faults", {"kill": True, "broker": 1, "tims": 1}, 400, "did you mean 'times'?"),
        ("GET", "/requests?broker=x", None, 400, "broker is 'x'; write a whole number"),
    ],
)
def test_what_is_wrong_is_told(server: Server, method: str, path: str, body: Any, status: int, text: str) -> None:
    found, said = server.answer(method, path, body)
    assert (found, text in said["message"]) == (status, True), said


def test_without_a_broker_it_says_how_to_start_one() -> None:
    server = Server("--brokers", "1", "--topic", "orders")
    try:
        assert server.call("POST", "/brokers/1/kill") == {"1": "killed"}
        health = server.call("GET", "/health")
        assert (health["status"], health["bootstrap_servers"]) == ("stopped", "")
        status, said = server.answer("POST", "/brokers/1/pause")
        assert (status, said["message"]) == (503, "no broker runs; POST /brokers/1/start")
        assert server.call("POST", "/brokers/1/start") == {"1": "running"}
        server.call("POST", "/wait/leader", {"topic": "orders"})
        produced(server, "again")
    finally:
        server.end()


def test_brokers_in_a_folder_are_found_again(tmp_path: Path) -> None:
    for turn in range(2):
        server = Server("--brokers", "2", "--data", str(tmp_path))
        try:
            if turn == 0:
                server.call("POST", "/topics", {"orders": {"partitions": 1, "min.insync.replicas": 2}})
                produced(server, "kept")
                status, said = server.answer("PUT", "/snapshots/first")
                assert (status, said["message"]) == (400, "only a cluster in memory can be saved; leave out path")
                server.process.terminate()
                assert server.process.wait(120) == 0
            else:
                server.call("POST", "/wait/leader", {"topic": "orders", "within_s": 60})
                assert values(server) == ["kept"]
        finally:
            server.end()


def test_one_broker_has_no_others_to_name() -> None:
    server = Server()
    try:
        status, said = server.answer("POST", "/brokers/1/kill")
        assert (status, said["message"].partition("; ")[2]) == (
            404,
            "there is one broker here: POST /broker/kill and the like, or start the server with --brokers",
        )
        assert server.answer("POST", "/faults", {"kill": True})[0] == 400
    finally:
        server.end()


def test_several_brokers_listen_and_are_told_as_they_are_asked_to() -> None:
    server = Server("--brokers", "3", "--listen", "0.0.0.0:0", "--advertised", "127.0.0.1:0")
    try:
        assert [each.rpartition(":")[0] for each in server.ready["listen"].split(",")] == ["0.0.0.0"] * 3
        told = server.ready["bootstrap_servers"].split(",")
        assert [each.rpartition(":")[0] for each in told] == ["127.0.0.1"] * 3
        with logkernel.connect(told[0]) as log, log.admin() as admin:
            assert [f"{each.host}:{each.port}" for each in admin.describe_cluster().brokers] == told
    finally:
        server.end()


def test_ports_of_several_brokers_follow_one_another() -> None:
    command = [sys.executable, "-m", "logkernel", "test-server", "--brokers", "3", "--listen", "127.0.0.1:65534"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)  # it sets signals for its process
    assert ended.returncode != 0
    assert "3 brokers would take ports up to 65536; give a port below 65534" in ended.stderr
