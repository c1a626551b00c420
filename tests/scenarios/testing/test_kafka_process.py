"""What differs where a tested broker has a process of its own. Tests beside this one run with both kinds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka
import pytest

from logkernel.errors import ConfigError, KafkaStorageError, LogkernelError, UnknownTopicOrPartition
from logkernel.testing import Kafka

PROGRAM = """
import sys
from logkernel.testing import Kafka
kafka = Kafka(process=True)
print(kafka.bootstrap_servers, kafka.pid, flush=True)
sys.stdin.read()
"""
PLUGIN = """
from logkernel.hookspecs import hookimpl
@hookimpl
def logkernel_topic_created(topic):
    open({path!r}, "a").write(topic)
"""


DIED = r"^the broker's process \d+ was killed by SIGKILL: start\(\) it"


def until_it_fails(call: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 180
    while time.monotonic() < deadline_s:
        call()


def test_a_kill_kills_the_process() -> None:
    with Kafka(process=True, topics=["orders"]) as kafka:
        first = kafka.pid
        assert first != os.getpid()
        kafka.produce("orders", "1")
        kafka.kill()
        assert (kafka.pid, kafka.running) == (-1, False)
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        with pytest.raises(LogkernelError, match=r"the broker does not run: start\(\) it"):
            kafka.produce("orders", "2")
        kafka.start()
        assert kafka.pid not in (first, -1)
        assert [record.text for record in kafka.records("orders")] == ["1"]


def test_a_process_that_dies_is_told_and_replaced() -> None:
    with Kafka(process=True, topics=["orders"]) as kafka:
        os.kill(kafka.pid, signal.SIGKILL)
        with pytest.raises(LogkernelError, match=DIED):
            until_it_fails(lambda: kafka.topics)
        assert (kafka.running, kafka.pid) == (False, -1)
        kafka.kill()
        kafka.start()
        assert kafka.topics == {"orders": 1}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_a_test_has_killed_is_started_without_more_ado(number: signal.Signals) -> None:
    """It said that the broker runs."""
    with Kafka(process=True, topics=["orders"]) as kafka:
        kafka.produce("orders", "1")
        first = kafka.pid
        os.kill(first, number)
        kafka.start()
        assert kafka.pid not in (first, -1)
        assert [record.text for record in kafka.records("orders")] == ["1"]
        with pytest.raises(LogkernelError, match="this broker runs; stop or kill it first"):
            kafka.start()


def test_calls_of_a_process_that_has_died_say_how_until_it_is_started() -> None:
    """Time was moved silently, though the broker had not answered."""
    with Kafka(process=True, topics=["orders"]) as kafka:
        saved = kafka.save()
        os.kill(kafka.pid, signal.SIGKILL)
        for call in (kafka.save, lambda: kafka.clock.advance(days=1), lambda: kafka.requests, lambda: kafka.topics):
            with pytest.raises(LogkernelError, match=DIED):
                until_it_fails(call)
        assert kafka.clock.ahead_ms < 20 * 86_400_000
        kafka.restore(saved)
        assert (kafka.topics, kafka.clock.ahead_ms) == ({"orders": 1}, 0)


def test_a_process_that_is_stopped_by_a_signal_is_killed_all_the_same() -> None:
    with Kafka(process=True, topics=["orders"]) as kafka:
        os.kill(kafka.pid, signal.SIGSTOP)
        kafka.kill()
        kafka.start()
        assert kafka.topics == {"orders": 1}
        os.kill(kafka.pid, signal.SIGSTOP)


def test_large_records_go_through() -> None:
    value = os.urandom(5_000_000)
    with Kafka(process=True, settings={"message.max.bytes": 10_000_000}) as kafka:
        kafka.produce("orders", value)
        assert kafka.records("orders")[0].value == value


def test_it_ends_with_the_tests_process() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        host, port = program.stdout.readline().split()[0].decode().split(":")
        program.kill()
    with pytest.raises(ConnectionRefusedError):
        until_it_fails(lambda: socket.create_connection((host, int(port))).close())


def test_clients_that_are_made_here_use_sockets() -> None:
    with Kafka(process=True) as kafka:
        with kafka.producer(client_id="ours") as producer:
            producer.send("orders", b"1").result(60)
        assert len(kafka.requests.of("Produce", client_id="ours")) == 1
        with kafka.consumer("orders", auto_offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll(10)] == [b"1"]
        with kafka.admin() as admin:
            assert "orders" in admin.list_topics()


def test_what_the_test_does_itself_is_not_among_the_requests() -> None:
    with Kafka(process=True) as kafka, kafka.faults.close():
        kafka.produce("orders", "1")
        kafka.assert_produced("orders", value=re.compile("^1"))
        kafka.assert_produced("orders", value=lambda data: data == b"1")
        assert kafka.requests == ()


def test_what_another_process_cannot_do_is_told() -> None:
    with Kafka(process=True) as kafka:
        with pytest.raises(LogkernelError, match=r"log\.table is not there: the log is in another process"):
            kafka.log.table("orders")
        with pytest.raises(UnknownTopicOrPartition):
            kafka.delete_topic("none")
        with Kafka() as other, pytest.raises(ConfigError, match="another kind"):
            kafka.restore(other.save())
    with pytest.raises(ConfigError, match="pass a module"):
        Kafka(process=True, plugins=[object()])
    with pytest.raises(ConfigError, match="by sockets"):
        Kafka(process=True, sockets=False)
    with pytest.raises(ConfigError, match=r"no\.such"):
        Kafka(process=True, settings={"no.such": 1})


def test_a_disk_is_full_and_has_room_again_while_the_broker_is_away() -> None:
    """The end of `full_disk` raised where the broker had been killed within."""
    with Kafka(process=True, topics=["orders"]) as kafka:
        with kafka.full_disk():
            kafka.kill()
        kafka.start()
        kafka.produce("orders", "1")
        kafka.stop()
        kafka.fill_disk()
        kafka.start()
        with pytest.raises(KafkaStorageError):
            kafka.produce("orders", "2")


def test_a_plugin_is_imported_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    (tmp_path / "told_of_topics.py").write_text(PLUGIN.format(path=str(told)))
    monkeypatch.syspath_prepend(tmp_path)
    import told_of_topics  # type: ignore[import-not-found]

    with Kafka(process=True, plugins=[told_of_topics], topics=["orders"]):
        assert told.read_text() == "orders"


def test_a_broker_in_a_folder_is_found_again(tmp_path: Path) -> None:
    with Kafka(process=True, path=tmp_path, topics=["orders"]) as kafka:
        kafka.produce("orders", "kept")
    with Kafka(path=tmp_path) as kafka:
        assert [record.text for record in kafka.records("orders")] == ["kept"]


def test_it_listens_where_it_did_and_has_what_was_asked_of_it() -> None:
    with Kafka(process=True, listen="0.0.0.0:0", ahead_ms=3_600_000) as kafka:
        assert kafka.bootstrap_servers == f"localhost:{kafka.listens.rpartition(':')[2]}"
        before = kafka.bootstrap_servers
        fault = kafka.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", client_id=re.compile("^SH", re.I), times=1)
        producer = confluent_kafka.Producer({"bootstrap.servers": before, "client.id": "shop"})
        producer.produce("orders", b"1")
        assert producer.flush(10) == 0
        asked = len(kafka.requests.of("Produce"))
        kafka.restart()
        assert (fault.struck, kafka.bootstrap_servers) == (1, before)
        assert len(kafka.requests.of("Produce")) == asked == 2
        assert kafka.clock.ahead_ms == 3_600_000
        stamp_ms = kafka.records("orders")[0].timestamp_ms
        kafka.produce("orders", "2")
        assert kafka.records("orders")[-1].timestamp_ms - stamp_ms >= 3_000_000
        with contextlib.suppress(AssertionError):
            kafka.assert_produced("orders", value="3", within=0.05)
        assert "topic created: topic=orders" in kafka.process_log
