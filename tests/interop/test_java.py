"""The Java client: admin, groups, and the console tools that people type."""

from __future__ import annotations

import subprocess
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.interop


def test_the_java_admin_client_manages_topics_and_settings(java: Any, broker_session: Any, topic: str) -> None:
    seen = dict(java.run("admin", broker_session.bootstrap, topic))
    assert seen == {
        "listed": "true",
        "partitions": "3",
        "retention.ms": "1234567",
        "max.message.bytes": "2000",
        "latest": "0",
        "nodes": "1",
        "deleted": "true",
    }


def test_a_group_reads_and_goes_on(
    java: Any, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample)
    first = java.run("group", broker_session.bootstrap, topic, topic, str(len(sample)))
    assert [row["offset"] for row in first] == list(range(len(sample)))
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample[:3])
    second = java.run("group", broker_session.bootstrap, topic, topic, "3")
    assert [row["offset"] for row in second] == [len(sample) + number for number in range(3)]


@pytest.fixture
def tool(apache_kafka: ModuleType, broker_session: Any) -> Any:
    """Runs one of Kafka's command line tools against the broker; returns its stdout."""

    def run(name: str, *arguments: str, stdin: str = "") -> str:
        command = apache_kafka.java(name, "--bootstrap-server", broker_session.bootstrap, *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_the_console_tools(tool: Any, topic: str) -> None:
    tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic, "--partitions", "2")
    described = tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", topic)
    assert "PartitionCount: 2" in described
    tool("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, stdin="one\ntwo\nthree\n")
    wanted = ["--from-beginning", "--max-messages", "3"]
    read = tool("org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", topic, *wanted)
    assert sorted(read.split()) == ["one", "three", "two"]
    ends = tool("org.apache.kafka.tools.GetOffsetShell", "--topic", topic)
    assert sum(int(line.rpartition(":")[2]) for line in ends.split()) == 3


def test_the_config_tool(tool: Any, topic: str) -> None:
    tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    tool("kafka.admin.ConfigCommand", *entity, "--alter", "--add-config", "retention.ms=60000,cleanup.policy=delete")
    described = tool("kafka.admin.ConfigCommand", *entity, "--describe")
    assert "retention.ms=60000" in described


def test_the_producer_benchmark_that_kafka_ships(tool: Any, topic: str) -> None:
    sizes = ["--num-records", "20000", "--record-size", "200", "--throughput", "-1"]
    assert "20000 records sent" in tool("org.apache.kafka.tools.ProducerPerformance", "--topic", topic, *sizes)
