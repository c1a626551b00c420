"""What a broker costs a test. The shortest of several times counts, as the machine may be busy; with `-s` each test
says what it measured, and docs/testing.md has the figures of a quiet one."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

import confluent_kafka

from logkernel.testing import Kafka
from logkernel.testing.kafka.namespace import KafkaNamespace

UNUSED = """
import sys, time
import pytest
begun = time.perf_counter()
import logkernel.testing.pytest_plugin
print((time.perf_counter() - begun) * 1000)
print(*sorted(name for name in sys.modules if name.startswith("logkernel")))
"""


def ms_since(begun_s: float) -> float:
    return (time.perf_counter() - begun_s) * 1000


def test_a_broker_is_ready_and_gone_in_milliseconds() -> None:
    ready, gone = [], []
    for _ in range(15):
        begun_s = time.perf_counter()
        kafka = Kafka(topics={"orders": 3})
        ready.append(ms_since(begun_s))
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("orders", b"1")
        assert producer.flush(10) == 0
        del producer
        begun_s = time.perf_counter()
        kafka.close()
        gone.append(ms_since(begun_s))
    print(f"ready in {median(ready):.1f} ms, gone in {median(gone):.1f} ms")
    assert min(ready) < 150
    assert min(gone) < 60


def test_a_broker_in_a_process_is_ready_and_gone_in_milliseconds() -> None:
    ready, gone = [], []
    for _ in range(12):
        begun_s = time.perf_counter()
        kafka = Kafka(process=True, topics={"orders": 3})
        ready.append(ms_since(begun_s))
        begun_s = time.perf_counter()
        kafka.close()
        gone.append(ms_since(begun_s))
    print(f"ready in {median(ready):.1f} ms, gone in {median(gone):.1f} ms; the first {ready[0]:.0f} ms")
    assert min(ready) < 500
    assert min(gone) < 300


def test_a_broker_whose_consumers_wait_is_gone_in_milliseconds() -> None:
    gone: list[float] = []
    while len(gone) < 5 or (min(gone) >= 60 and len(gone) < 30):
        kafka = Kafka(topics={"orders": 1})
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "fetch.wait.max.ms": 10_000}
        )
        consumer.subscribe(["orders"])
        while not kafka.requests.of("Fetch"):
            consumer.poll(0.01)
        begun_s = time.perf_counter()
        kafka.close()
        gone.append(ms_since(begun_s))
        consumer.close()
    print(f"gone in {median(gone):.1f} ms while a fetch waits")
    assert min(gone) < 60


def test_a_namespace_costs_less_than_milliseconds() -> None:
    took = []
    with Kafka() as kafka:
        for number in range(50):
            begun_s = time.perf_counter()
            with KafkaNamespace(kafka, number) as namespace:
                namespace.create_topic("orders", 1)
            took.append(ms_since(begun_s))
    print(f"a namespace took {median(took):.2f} ms")
    assert min(took) < 20


def test_what_is_installed_but_unused_imports_nothing() -> None:
    run = [sys.executable, "-c", UNUSED]
    outcomes = [subprocess.run(run, capture_output=True, text=True, check=True).stdout.split("\n") for _ in range(5)]
    took = min(float(lines[0]) for lines in outcomes)
    print(f"the plugin's import took {took:.1f} ms")
    assert outcomes[0][1].split() == ["logkernel", "logkernel.testing", "logkernel.testing.pytest_plugin"]
    assert took < 30
