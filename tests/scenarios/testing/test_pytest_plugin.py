"""The pytest plugin in suites of others, run by pytest itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from testing_plugin import suite

FIXTURES = """
import asyncio
import os
import pytest
from confluent_kafka import Producer

def send(bootstrap, topic, value):
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value)
    assert producer.flush(10) == 0

@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_a_broker(kafka, turn):
    assert "orders" not in kafka.topics
    send(kafka.bootstrap_servers, "orders", b"1")
    kafka.assert_produced("orders", value="1")
    assert kafka.topics == {"from.ini": 2, "made": 5, "orders": 1}

@pytest.mark.kafka(topics={"made": 3, "more": 1}, settings={"num.partitions": 7})
def test_the_marker_is_above_the_fixture_and_that_above_the_ini(kafka):
    kafka.create_topic("seven")
    assert kafka.topics == {"from.ini": 2, "made": 3, "more": 1, "seven": 7}
    with kafka.admin() as admin:
        assert "12345" in str(admin.describe_configs(("topic", "made")))

@pytest.mark.parametrize("turn", [1, 2])
@pytest.mark.kafka(topics={"orders": 2})
def test_a_namespace_is_the_tests_own(kafka_session, turn):
    assert set(kafka_session.topics) == {"from.ini", kafka_session.topic("orders")}
    send(kafka_session.bootstrap_servers, kafka_session.topic("orders"), b"1")
    assert len(kafka_session.records("orders")) == 1
    assert len(kafka_session.requests.of("Produce")) == 1

@pytest.mark.kafka(process=True)
def test_a_broker_has_its_own_process(kafka, kafka_memory):
    assert kafka.pid != kafka_memory.pid == os.getpid()

def test_our_own_clients_need_no_socket(kafka_memory):
    with kafka_memory.producer() as producer:
        producer.send("orders", b"1").result(60)
    kafka_memory.assert_produced("orders", value="1")

@pytest.mark.kafka(brokers=2, topics={"orders": {"partitions": 1, "min.insync.replicas": 1}})
def test_a_leader_dies(kafka_cluster):
    leader = kafka_cluster.leader("orders")
    kafka_cluster.kill(leader)
    kafka_cluster.wait_for_leader("orders", other_than=leader)
    send(kafka_cluster.bootstrap_servers, "orders", b"1")

@pytest.mark.kafka(topics={"orders": 1}, faults=[{"move_leader": True, "api": "Produce"}])
def test_a_leader_moves(kafka_cluster):
    kafka_cluster.wait_for_isr("orders", 0, 3)
    leader = kafka_cluster.leader("orders")
    send(kafka_cluster.bootstrap_servers, "orders", b"1")
    kafka_cluster.assert_produced("orders", value="1")
    assert kafka_cluster.leader("orders") != leader == kafka_cluster.requests.of("Produce")[0].broker

def test_what_waits_is_awaited(kafka_async, kafka_session_async):
    async def program():
        for each in (kafka_async, kafka_session_async):
            wanted = asyncio.create_task(each.assert_produced("orders", value="1", within=10))
            await each.create_topic("orders", 1)
            await each.produce("orders", "1")
            assert (await wanted).text == "1"
            assert each.topic("a").startswith("a")
            each.clock.advance(days=1)
    asyncio.run(program())
"""
CONFTEST = """
import pytest

@pytest.fixture
def kafka_options():
    return {"topics": {"made": 5}}
"""
INI = "kafka_settings =\n    log.retention.ms=12345\nkafka_topics =\n    from.ini=2\n"


def test_fixtures_are_what_the_options_say(tmp_path: Path) -> None:
    said = suite(tmp_path, FIXTURES, INI, CONFTEST, "--strict-markers", "-W", "error")
    assert "10 passed" in said


SHARED = """
import pytest

@pytest.mark.parametrize("turn", range(20))
def test_alone_in_a_shared_broker(kafka_session, turn):
    kafka_session.produce("orders", turn)
    assert [record.json for record in kafka_session.records("orders")] == [turn]
    assert len(kafka_session.topics) == 1
"""


@pytest.mark.long
def test_workers_of_xdist_do_not_meet(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    assert "20 passed" in suite(tmp_path, SHARED, "", "", "-n", "2")


FAILING = """
import logging
import pytest

def test_fails(kafka, caplog):
    from confluent_kafka import Producer
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop"})
    producer.produce("orders", b'{"id": 8}')
    producer.flush(10)
    assert not [record for record in caplog.records if record.name.startswith("logkernel")]
    kafka.assert_produced("orders", value={"id": 7})
"""


def test_a_report_shows_the_difference_the_requests_and_the_brokers_log(tmp_path: Path) -> None:
    said = suite(tmp_path, FAILING, code=1)
    assert "value.id: expected 7, found 8" in said
    assert re.search(r"what clients asked of Kafka last -+\n(?:.*\n)*?Produce v\d+ client=shop", said)
    assert re.search(r"log of the Kafka broker -+\n(?:.*\n)*?.*topic created: topic=orders", said)


PROCESSES = """
def test_a_cluster_is_here_all_the_same(kafka_cluster, kafka_memory):
    assert kafka_cluster.topics == kafka_memory.topics == {"orders": 1}

def test_fails(kafka, kafka_session):
    assert "topic created: topic=orders" in kafka.process_log
    assert kafka_session.topics
    kafka.kill()
    assert False
"""


def test_a_whole_suite_has_brokers_in_processes(tmp_path: Path) -> None:
    said = suite(tmp_path, PROCESSES, "kafka_process = true\nkafka_topics =\n    orders", code=1)
    assert "1 failed, 1 passed" in said
    assert re.search(r"log of the Kafka broker's process -+\n(?:.*\n)*?.*topic created: topic=orders", said)


MISTAKES = """
import pytest

@pytest.mark.kafka(topcis={"orders": 1})
def test_misspelt(kafka): ...

@pytest.mark.kafka({"orders": 1})
def test_positional(kafka): ...

@pytest.mark.kafka(settings={"num.partitions": 1})
def test_shared(kafka_session): ...

@pytest.mark.kafka(settings={"num.partitions": "x"})
def test_a_bad_setting(kafka): ...

@pytest.mark.kafka(process=True)
def test_a_cluster_in_a_process(kafka_cluster): ...

@pytest.mark.kafka(process=True)
def test_no_sockets_in_a_process(kafka_memory): ...
"""


def test_mistakes_are_told_with_their_remedy(tmp_path: Path) -> None:
    said = suite(tmp_path, MISTAKES, code=1)
    assert "there is no option 'topcis'; there are as_version, faults, plugins, process, security_protocol" in said
    assert "takes keywords only" in said
    assert "override kafka_session_options" in said
    assert "ConfigError: pytest.mark.kafka: num.partitions=x: Not a number" in said
    assert "kafka_cluster: its brokers run in the test's process; leave out process, or ask for kafka" in said
    assert "kafka_memory: its brokers run in the test's process; leave out process, or ask for kafka" in said
    said = suite(tmp_path, "def test_it(kafka): ...", "kafka_topics =\n    orders=many\n", code=1)
    assert "'orders=many' is not of the form NAME or NAME=PARTITIONS" in said
