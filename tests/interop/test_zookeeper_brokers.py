"""Brokers in processes of their own over one ZooKeeper: `logkernel serve --coordination zookeeper://…`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pytest
import zookeepers
from kazoo.client import KazooClient
from served_over_zookeeper import TIMEOUT_MS, Served

import logkernel
from logkernel.admin import NewTopic
from logkernel.cli import main
from logkernel.errors import KafkaError
from logkernel.remote import RemoteLog

pytestmark = pytest.mark.interop


@pytest.fixture
def served(
    patient_zookeeper: zookeepers.ZooKeeper,
    start_broker: Callable[..., Any],
    eventually: Callable[..., None],
    request: pytest.FixtureRequest,
) -> Served:
    return Served(f"zookeeper://{patient_zookeeper.address}/{request.node.name}", start_broker, eventually)


def test_a_killed_broker_is_replaced_and_comes_back_when_its_session_is_over(served: Served) -> None:
    for node in (1, 2, 3):
        served.start(node)
    with served.connect() as log:
        served.create(log, "orders", 3, 3)
        with log.producer(acks="all") as producer:
            for number in range(30):
                producer.send("orders", b"%d" % number).result()
            controller = next(node for node in served.brokers if is_controller(log, node))
            served.brokers[controller].kill()
            for number in range(30, 60):
                producer.send("orders", b"%d" % number).result()
        served.brokers[controller].restart()
        served.in_sync(log, "orders", 3)
        found: set[bytes | None] = set()
        with log.consumer("orders", auto_offset_reset="earliest") as consumer:
            served.until(
                lambda: not found.update(record.value for record in consumer.poll(1)) and len(found) == 60, "60 records"
            )


def created(admin: Any, name: str) -> bool:
    admin.create_topics(NewTopic(name, 1, 2))
    return True


def is_controller(log: RemoteLog, node: int) -> bool:
    with log.admin() as admin:
        return admin.describe_cluster().controller == node


def refused(served: Served, *words: str, node: int = 1, data: Path) -> str:
    """What a broker says that is not to be a member."""
    command = served.brokers[min(served.brokers)].command()[:4]
    command += ["--listen", "127.0.0.1:0", "--data", str(data), "--node-id", str(node), *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_a_second_broker_with_the_same_id_is_refused_and_the_first_goes_on(served: Served, tmp_path: Path) -> None:
    served.start(1)
    words = ("--coordination", served.url, "--set", "zookeeper.session.timeout.ms=1000")
    told = refused(served, *words, data=tmp_path / "second")
    assert "broker 1 is registered in ZooKeeper by another session; give this one another node.id" in told
    with served.connect() as log:
        served.create(log, "orders", 1, 1)


def test_a_folder_of_another_cluster_is_refused(served: Served, tmp_path: Path) -> None:
    first = served.start(1)
    first.terminate()
    told = refused(served, "--coordination", f"{served.url}/other", data=first.data)
    assert f"{first.data}/meta.properties says that the directory belongs to cluster" in told


def test_users_of_the_cluster_are_not_set_in_the_folder_of_one_broker(served: Served) -> None:
    """`cluster users set` said that it had, and ZooKeeper did not have the user."""
    first = served.start(1)
    first.terminate()
    command = [sys.executable, "-m", "logkernel", "cluster", "users", "set", "zed", "--password-stdin"]
    ended = subprocess.run(
        [*command, "--data", str(first.data)], input="secret\n", capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, "are kept elsewhere, by its cluster" in ended.stderr) == (2, True), ended.stderr


def test_a_zookeeper_that_is_not_there_is_named(served: Served, tmp_path: Path) -> None:
    served.start(1)
    port = zookeepers.free_ports(1)[0]
    words = ("--coordination", f"zookeeper://127.0.0.1:{port}", "--set", "zookeeper.connection.timeout.ms=500")
    told = refused(served, *words, data=tmp_path / "second")
    assert f"ZooKeeper at 127.0.0.1:{port} gave no session in 500 ms; start it, or correct zookeeper.connect" in told


def test_a_server_properties_of_kafka_makes_a_member(
    served: Served, tmp_path: Path, patient_zookeeper: zookeepers.ZooKeeper
) -> None:
    served.start(1)
    connect = served.url.removeprefix("zookeeper://")
    (tmp_path / "server.properties").write_text(
        f"broker.id=2\nzookeeper.connect={connect}\nzookeeper.session.timeout.ms={TIMEOUT_MS}\n"
    )
    served.start_with(2, "--config", str(tmp_path / "server.properties"))
    with served.connect() as log:
        served.create(log, "orders", 2, 2)


def test_leaders_go_on_while_zookeeper_is_away(
    tmp_path: Path, start_broker: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    why = zookeepers.absent()
    if why is not None:
        pytest.skip(why)
    with zookeepers.zookeeper(tmp_path / "zk") as server:
        served = Served(f"zookeeper://{server.address}/kafka", start_broker, eventually)
        served.start(1)
        served.start(2)
        with served.connect() as log:
            served.create(log, "orders", 2, 2)
            server.pause()
            with log.producer(acks="all") as producer:
                ends_s = time.monotonic() + 2 * TIMEOUT_MS / 1000
                while time.monotonic() < ends_s:
                    producer.send("orders", b"on").result()
            server.resume()
            with log.admin() as admin:
                served.until(lambda: created(admin, "later"), "a topic is created")
            served.in_sync(log, "later", 2)
            served.in_sync(log, "orders", 2)


def test_a_kafkas_tools_find_what_a_broker_registered(served: Served, patient_zookeeper: zookeepers.ZooKeeper) -> None:
    broker = served.start(1)
    client = KazooClient(served.url.removeprefix("zookeeper://"), zookeepers.SESSION_S)
    client.start(zookeepers.START_S)
    try:
        found = json.loads(client.get("/brokers/ids/1")[0])
        assert found["endpoints"] == [f"PLAINTEXT://{broker.bootstrap}"]
        assert json.loads(client.get("/controller")[0])["brokerid"] == 1
        broker.terminate()
        assert client.get_children("/brokers/ids") == []
        assert client.exists("/controller") is None
    finally:
        client.stop()


def test_a_topic_deleted_while_a_broker_is_away_goes_when_it_is_back_and_its_name_is_free_at_once(
    served: Served, patient_zookeeper: zookeepers.ZooKeeper
) -> None:
    one, two = served.start(1), served.start(2)
    client = KazooClient(served.url.removeprefix("zookeeper://"), zookeepers.SESSION_S)
    client.start(zookeepers.START_S)

    def kept() -> tuple[list[str], list[str], int]:
        """(the queue, topics, deleted topics whose name was taken again)"""
        facts = client.get_children("/logkernel/facts/gone") if client.exists("/logkernel/facts/gone") else []
        return client.get_children("/admin/delete_topics"), sorted(client.get_children("/brokers/topics")), len(facts)

    try:
        with logkernel.connect(one.bootstrap) as log, log.admin() as admin:
            served.create(log, "again", 2, 2)
            served.create(log, "gone", 1, 2)
            two.terminate()
            admin.delete_topics(["again", "gone"])
            assert set(admin.list_topics()) == set()
            admin.create_topics(NewTopic("again", 1, 1))
            served.until(lambda: kept() == (["gone"], ["again", "gone"], 1), "one waits in the queue, one beside it")
            made = admin.list_topics()["again"].id
            one.kill()
            one.restart()  # another controller, which reads all that
            two.restart()
            served.until(lambda: kept() == ([], ["again"], 0), "nothing is left of them")
            served.until(lambda: not list(two.data.glob("*-0")), "no log is left of them")
            assert admin.list_topics()["again"].id == made
    finally:
        client.stop()


def test_cluster_check_compares_brokers_with_zookeeper(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = served.start(1), served.start(2)
    client = KazooClient(served.url.removeprefix("zookeeper://"), zookeepers.SESSION_S)
    client.start(zookeepers.START_S)

    def check() -> tuple[int, set[tuple[str, str]], dict[str, Any]]:
        """By ZooKeeper alone: it names the brokers."""
        capsys.readouterr()
        code = main(["cluster", "check", "--json", "--coordination", served.url])
        *rows, summary = map(json.loads, capsys.readouterr().out.splitlines())
        return code, {(row["kind"], row["about"]) for row in rows}, summary

    try:
        with served.connect() as log, log.admin() as admin:
            served.create(log, "orders", 2, 2)
            code, found, summary = check()
            assert (code, found) == (0, set())
            assert (summary["controller"], summary["controllerEpoch"]) == (1, 1)
            assert [row["epoch"] for row in summary["brokers"]] == [
                client.get(f"/brokers/ids/{node}")[1].czxid for node in (1, 2)
            ]
            epochs = [row["epoch"] for row in summary["brokers"]]
            assert main(["cluster", "status", "--json", "--coordination", served.url]) == 0
            status = json.loads(capsys.readouterr().out)
            assert (status["controller"], status["controllerEpoch"]) == (1, 1)
            assert [(row["id"], row["epoch"]) for row in status["brokers"]] == list(enumerate(epochs, 1))
            assert main(["cluster", "status", "--coordination", served.url]) == 0
            assert "controller epoch 1, 2 partitions" in capsys.readouterr().out
            fact = json.loads(client.get("/brokers/ids/2")[0])
            client.create("/brokers/ids/9", json.dumps({**fact, "endpoints": ["PLAINTEXT://127.0.0.1:1"]}).encode())
            served.until(lambda: len(admin.describe_cluster().brokers) == 3, "broker 9 is known")
            assert check()[:2] == (1, {("broker-unreachable", "broker 9")})
            client.delete("/brokers/ids/9")
            two.terminate()
            admin.delete_topics(["orders"])
            admin.create_topics(NewTopic("later", 1, 1))
            assert check()[:2] == (0, {("deleting", "orders")})
        path = "/brokers/topics/later/partitions/0/state"
        state = json.loads(client.get(path)[0])
        client.set(path, json.dumps({**state, "leader_epoch": 7}).encode())  # what no order told the broker
        code, found, _ = check()
        assert (code, found) == (1, {("metadata-behind", "broker 1"), ("deleting", "orders")})
        one.terminate()
        assert main(["cluster", "check", "--coordination", served.url]) == 2
        assert "no broker is registered there" in capsys.readouterr().err
        nowhere = served.url + "-mistyped"
        assert main(["cluster", "check", "--coordination", nowhere]) == 2
        assert "keeps no cluster there" in capsys.readouterr().err
        outside = KazooClient(served.url.removeprefix("zookeeper://").partition("/")[0], zookeepers.SESSION_S)
        outside.start(zookeepers.START_S)
        assert outside.exists("/" + nowhere.removeprefix("zookeeper://").partition("/")[2]) is None
        outside.stop()
    finally:
        client.stop()


class Chaos:
    """Kills, stops and cuts off, from a seed, while a producer writes."""

    def __init__(self, seed: int, served: Served, server: zookeepers.ZooKeeper, stack: ExitStack) -> None:
        self.random = Random(seed)
        self.served = served
        self.server = server
        self.proxies = {node: zookeepers.Proxy(server.port) for node in (1, 2, 3)}
        for node, proxy in self.proxies.items():
            stack.callback(proxy.close)
            served.url = f"zookeeper://{proxy.address}/kafka"
            served.start(node)

    def strike(self) -> None:
        node = self.random.choice((1, 2, 3))
        broker, proxy = self.served.brokers[node], self.proxies[node]
        what = self.random.choice(("kill", "pause", "cut", "swallow", "kill zookeeper", "pause zookeeper"))
        print(what, node)  # of a failure: what led to it
        if what == "kill":
            broker.kill()
            self.rest(3)
            broker.restart()
        elif what == "pause":
            broker.process.send_signal(signal.SIGSTOP)
            self.rest(4)
            broker.process.send_signal(signal.SIGCONT)
        elif what in ("cut", "swallow"):
            getattr(proxy, what)()
            self.rest(4)
            proxy.heal()
        elif what == "kill zookeeper":
            self.server.kill()
            self.rest(3)
            self.server.start().wait()
        else:
            self.server.pause()
            self.rest(3)
            self.server.resume()

    def rest(self, most_s: float) -> None:
        ends_s = time.monotonic() + self.random.uniform(0.1, most_s)
        while time.monotonic() < ends_s:
            time.sleep(0.01)


@pytest.mark.longest
@pytest.mark.parametrize("seed", range(int(os.environ.get("LOGKERNEL_ZOOKEEPER_SEEDS", "1"))))
@pytest.mark.usefixtures("patient_zookeeper")  # skips where there is none
def test_nothing_acknowledged_is_lost_whatever_is_lost_of_brokers_and_zookeeper(
    seed: int, tmp_path: Path, start_broker: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    acknowledged: list[int] = []
    with zookeepers.zookeeper(tmp_path / "zk") as server, ExitStack() as stack:
        served = Served("", start_broker, eventually)
        chaos = Chaos(seed, served, server, stack)
        with served.connect() as log:
            served.create(log, "orders", 4, 3)
            with log.admin() as admin:
                admin.alter_configs({("topic", "orders"): {"min.insync.replicas": "2"}})
            ended = Event()
            writing = Thread(target=write, args=(log, ended, acknowledged))
            writing.start()
            try:
                for _ in range(10):
                    chaos.strike()
                    chaos.rest(1)
            finally:
                ended.set()
                writing.join()
            served.in_sync(log, "orders", 3)
            found: set[int] = set()
            with log.consumer("orders", auto_offset_reset="earliest") as consumer:
                served.until(
                    lambda: (
                        not found.update(int(each.value or b"") for each in consumer.poll(1))
                        and found.issuperset(acknowledged)
                    ),
                    "all that was acknowledged is read",
                )
    assert len(acknowledged) > 100


def write(log: RemoteLog, ended: Event, acknowledged: list[int]) -> None:
    number = 0
    with log.producer(acks="all", delivery_timeout_ms=60_000) as producer:
        while not ended.is_set():
            numbers = range(number, number + 20)
            number = numbers.stop
            sent = [(each, producer.send("orders", b"%d" % each)) for each in numbers]
            for each, result in sent:
                with suppress(KafkaError):
                    result.result()
                    acknowledged.append(each)
