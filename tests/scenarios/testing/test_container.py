"""`LogkernelContainer`, as suites written for testcontainers use it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from logkernel.errors import ConfigError, LogkernelError
from logkernel.testing import LogkernelContainer
from logkernel.testing.container import setting_of


@pytest.fixture(scope="module")
def container() -> Iterator[LogkernelContainer]:
    with LogkernelContainer("confluentinc/cp-kafka:7.6.0").with_kraft().with_env("KAFKA_NUM_PARTITIONS", 3) as started:
        yield started


def test_clients_reach_it(container: LogkernelContainer) -> None:
    bootstrap = container.get_bootstrap_server()
    assert bootstrap == f"{container.get_container_host_ip()}:{container.get_exposed_port(container.port)}"
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"1")
    assert producer.flush(10) == 0
    assert container.kafka.topics["orders"] == 3
    assert container.kafka.assert_produced("orders", value="1").offset == 0
    assert b"topic created: topic=orders" in container.get_logs()[1]


def test_ports_of_the_image_are_those_of_the_broker(container: LogkernelContainer) -> None:
    container.with_exposed_ports("7000/tcp")
    port = int(container.get_bootstrap_server().rpartition(":")[2])
    assert {container.get_exposed_port(each) for each in (9092, 9093, "9093/tcp", 7000)} == {port}
    with pytest.raises(ConfigError, match="9999 is no port here; the broker is 7000, 9092, 9093, the schema regis"):
        container.get_exposed_port(9999)


def test_it_has_a_schema_registry_as_redpanda(container: LogkernelContainer) -> None:
    address = container.get_schema_registry_address()
    assert address.endswith(f":{container.get_exposed_port(8081)}")
    with urllib.request.urlopen(f"{address}/subjects") as answer:
        assert json.load(answer) == []


def test_it_starts_and_stops_as_often_as_it_is_told(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("# ours\nKAFKA_AUTO_CREATE_TOPICS_ENABLE='false'\n")
    container = LogkernelContainer(process=False, topics=["orders"], settings={"num.partitions": 2}, port=29092)
    container.with_env_file(file).with_envs(KAFKA_HEAP_OPTS="-Xmx1g").waiting_for(None).with_name("a")
    assert container.status == "not_started"
    with pytest.raises(LogkernelError, match=r"call start\(\)"):
        container.get_bootstrap_server()
    assert container.start(timeout=5).start() is container
    assert (container.status, container.kafka.topics) == ("running", {"orders": 2})
    port = container.get_exposed_port(29092)
    with container.kafka.producer(max_block_ms=100) as producer, pytest.raises(LogkernelError):
        producer.send("none", b"1").result(5)
    container.kafka.kill()
    assert container.status == "exited"
    container.stop()
    container.stop()
    with container.with_bind_ports(29092, port):
        assert container.get_exposed_port(29092) == port


@pytest.mark.parametrize(
    ("key", "value", "setting"),
    [
        ("KAFKA_LOG_RETENTION_MS", "5", ("log.retention.ms", "5")),
        ("KAFKA_A__B___C", "5", ("a_b-c", "5")),
        ("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9092", None),
        ("KAFKA_JMX_PORT", "9999", None),
        ("CLUSTER_ID", "abc", None),
        ("KAFKA_CFG_NODE_ID", "0", ("node.id", "0")),
        ("KAFKA_CFG_LISTENERS", "PLAINTEXT://:9092", None),
        ("KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE", "false", None),
        ("KAFKA_KRAFT_CLUSTER_ID", "abc", None),
        ("ALLOW_PLAINTEXT_LISTENER", "yes", None),
    ],
)
def test_variables_are_settings(key: str, value: str, setting: Any) -> None:
    assert setting_of(key, value) == setting


def test_what_a_container_is_told_of_itself_has_no_effect() -> None:
    container = LogkernelContainer(
        "confluentinc/cp-kafka:7.6.0", 9093, name="kafka", listener_name="A", wait_strategy_check_string="started"
    )
    assert not container.kraft_enabled
    assert container.with_kraft().kraft_enabled
    with container:
        assert container.status == "running"


def test_what_is_not_there_says_why() -> None:
    container = LogkernelContainer()
    with pytest.raises(AttributeError, match="has no exec: there is no container to run a program in"):
        container.exec("kafka-topics --list")
    with pytest.raises(AttributeError, match=r"has no with_gpu; \.kafka has what"):
        container.with_gpu()
    with pytest.raises(ConfigError, match="TZ=UTC: only KAFKA_… are settings of the broker"):
        container.with_env("TZ", "UTC")
    with pytest.raises(ConfigError, match="pass security_protocol='SASL_SSL' and users="):
        container.with_env("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "A:SASL_SSL")
    with pytest.raises(
        ConfigError, match=r"mem_limit='1g' is no option; there are advertised, ahead_ms, as_version, faults, listen, "
    ):
        LogkernelContainer(mem_limit="1g")
    with pytest.raises(ConfigError, match="network='n': there is no network of containers; for clients in a"):
        LogkernelContainer(network="n")
    with pytest.raises(ConfigError, match="there is no security_protocol='TLS'; use one of PLAINTEXT, SSL, "):
        LogkernelContainer(security_protocol="TLS", process=False).start()
    with pytest.raises(ConfigError, match="'http' is no port"):
        container.with_exposed_ports("http")
    with pytest.raises(ConfigError, match=r"no\.such"):
        container.with_env("KAFKA_NO_SUCH", "1").start()
    assert container.status == "not_started"
