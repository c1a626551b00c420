"""librdkafka and the Java client write with acks=all while too few replicas are in sync, and go on when they are back.

Their first attempt is appended and times out, further ones are refused with NOT_ENOUGH_REPLICAS."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import logkernel
from logkernel.cluster.cluster import Cluster

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.interop

TOPIC = "orders"
RECORDS = 20
NUMBERS = list(range(RECORDS))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with logkernel.open_cluster(brokers=3, listen=True, replica_lag_time_max_ms=500) as opened:
        nodes = sorted(opened.brokers, key=lambda node: node != opened.controller())
        opened.create_topic(TOPIC, assignment={0: nodes}, min_insync_replicas=2)
        opened.wait_for_isr(TOPIC, 0, 3)
        yield opened


def cut_leader_off(cluster: Cluster) -> None:
    """The leader is the controller: it can write down that nobody keeps up."""
    leader, *followers = cluster.replicas(TOPIC)
    cluster.cut({leader}, set(followers))


def wait_until_alone(cluster: Cluster) -> None:
    deadline_s, waiting = time.monotonic() + 180, threading.Event()
    while len(cluster.isr(TOPIC)) > 1:
        assert time.monotonic() < deadline_s, f"{cluster.isr(TOPIC)} are in sync"
        waiting.wait(0.01)


def read(cluster: Cluster, count: int) -> list[int]:
    found: list[int] = []
    with cluster.consumer(TOPIC, auto_offset_reset="earliest") as consumer:
        while len(found) < count:
            found += [int(record.value) for record in consumer.poll(10)]
    return found


def test_librdkafka_goes_on_after_the_isr_was_too_small_and_doubles_nothing(cluster: Cluster) -> None:
    errors: list[Any] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "request.timeout.ms": 1000,
         "linger.ms": 0, "retry.backoff.ms": 50, "log_level": 0}
    )  # fmt: skip
    producer.produce(TOPIC, b"-1", partition=0)
    assert producer.flush(300) == 0
    cut_leader_off(cluster)
    for number in NUMBERS:
        producer.produce(TOPIC, b"%d" % number, partition=0, on_delivery=lambda error, _: errors.append(error))
        producer.poll(0)
    wait_until_alone(cluster)
    assert producer.flush(2) == RECORDS, "nothing is acknowledged below min.insync.replicas"
    cluster.heal()
    assert producer.flush(300) == 0
    assert errors == [None] * RECORDS
    assert read(cluster, RECORDS + 1) == [-1, *NUMBERS]


def test_the_java_client_goes_on_after_the_isr_was_too_small_and_doubles_nothing(
    cluster: Cluster, apache_kafka: ModuleType
) -> None:
    command = apache_kafka.java(
        "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", cluster.bootstrap_servers, "--topic", TOPIC,
        "--timeout", "5", "--request-required-acks", "all", "--request-timeout-ms", "1000",
        "--message-send-max-retries", "1000000", "--command-property", "enable.idempotence=true",
        "--command-property", "delivery.timeout.ms=300000",
    )  # fmt: skip
    producer = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert producer.stdin is not None
    try:
        producer.stdin.write("-1\n")
        producer.stdin.flush()
        assert read(cluster, 1) == [-1]
        cut_leader_off(cluster)
        producer.stdin.write("".join(f"{number}\n" for number in NUMBERS))
        producer.stdin.flush()
        wait_until_alone(cluster)
        cluster.heal()
        _, told = producer.communicate(timeout=300)
    finally:
        producer.kill()
    assert producer.returncode == 0, told
    assert read(cluster, RECORDS + 1) == [-1, *NUMBERS]
