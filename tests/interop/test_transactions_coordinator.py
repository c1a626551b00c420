"""Transactions of unmodified clients, of v1 (librdkafka) and v2 (Java): all or none, fenced, and across kill -9."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PARTITIONS = 3
WAIT_S = 180.0
KILLS = 4


def producer(bootstrap: str, name: str) -> Producer:
    settings = {"transactional.id": name, "log_level": 0, "socket.timeout.ms": 4000}
    found = Producer({"bootstrap.servers": bootstrap, **settings})
    found.init_transactions(WAIT_S)
    return found


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[str, list[int]]:
    """Value → the partitions in which it is read, up to the end of each."""
    settings = {"isolation.level": isolation, "enable.partition.eof": True, "group.id": "check"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: dict[str, list[int]] = defaultdict(list)
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, "a transaction that nobody ends"
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is None:
                found[message.value().decode()].append(message.partition())
            else:
                assert message.error().name() == "_PARTITION_EOF", message.error()
                ended.add(message.partition())
    consumer.close()
    return found


def write(client: Producer, topic: str, value: str) -> None:
    client.begin_transaction()
    for partition in range(PARTITIONS):
        client.produce(topic, value.encode(), partition=partition)


def test_all_or_none_is_read(broker_session: Any, topic: str, make_topic: Any) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic, PARTITIONS)
    client = producer(bootstrap, topic)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": topic})
    for number in range(6):
        write(client, topic, f"v{number}")
        client.flush(WAIT_S)
        offsets = [TopicPartition(topic, 0, number)]
        client.send_offsets_to_transaction(offsets, reader.consumer_group_metadata(), WAIT_S)
        if number % 2:
            client.abort_transaction(WAIT_S)
        else:
            client.commit_transaction(WAIT_S)
    assert sorted(read(bootstrap, topic)) == ["v0", "v2", "v4"]
    assert sorted(read(bootstrap, topic, "read_uncommitted")) == [f"v{number}" for number in range(6)]
    assert [one.offset for one in reader.committed([TopicPartition(topic, 0)], WAIT_S)] == [4]
    reader.close()


def test_a_successor_settles_what_was_begun(broker_session: Any, topic: str, make_topic: Any) -> None:
    bootstrap = broker_session.bootstrap
    make_topic(bootstrap, topic, PARTITIONS)
    first = producer(bootstrap, topic)
    write(first, topic, "first")
    first.flush(WAIT_S)
    second = producer(bootstrap, topic)
    with pytest.raises(KafkaException) as fault:
        first.commit_transaction(WAIT_S)
    assert fault.value.args[0].name() == "_FENCED"
    write(second, topic, "second")
    second.commit_transaction(WAIT_S)
    assert set(read(bootstrap, topic)) == {"second"}


def test_transactions_over_kills(start_broker: Any, topic: str, make_topic: Any) -> None:
    """What was told to be committed is read whole, what was told to be aborted is not, and nothing is read in part."""
    broker = start_broker()
    make_topic(broker.bootstrap, topic, PARTITIONS)
    told: dict[str, bool] = {}
    stop = threading.Event()

    def work(name: str) -> None:
        number = 0
        while not stop.is_set():
            try:
                client = producer(broker.bootstrap, name)
                while not stop.is_set():
                    number += 1
                    value = f"{name}-{number}"
                    write(client, topic, value)
                    if number % 4 == 3:
                        client.abort_transaction(WAIT_S)
                    else:
                        client.commit_transaction(WAIT_S)
                    told[value] = number % 4 != 3
            except (KafkaException, BufferError):
                pass  # the outcome is not known; a new producer settles it

    workers = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(2)]
    for worker in workers:
        worker.start()
    for _ in range(KILLS):
        before = len(told)
        deadline = time.monotonic() + WAIT_S
        while len(told) < before + 60:
            assert time.monotonic() < deadline, "stuck"
            time.sleep(0.01)
        broker.kill()
        broker.restart()
    stop.set()
    for worker in workers:
        worker.join(2 * WAIT_S)
        assert not worker.is_alive()
    for number in range(2):
        producer(broker.bootstrap, f"w{number}")
    found = read(broker.bootstrap, topic)
    assert [value for value, where in found.items() if sorted(where) != [0, 1, 2]] == []
    assert {value for value, committed in told.items() if committed} <= set(found)
    assert not {value for value, committed in told.items() if not committed} & set(found)


def test_the_java_clients_coordinator_calls_are_answered(
    broker_session: Any, topic: str, make_topic: Any, apache_kafka: Any, tmp_path: Path
) -> None:
    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    source = Path(__file__).parent / "Coordinator.java"
    compile_command = ["javac", "-nowarn", "-cp", f"{apache_kafka.JARS}/*", "-d", str(tmp_path), str(source)]
    subprocess.run(compile_command, check=True, capture_output=True)
    command = apache_kafka.java("Coordinator", broker_session.bootstrap, topic, classpath=str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]

    found = {row["what"]: row["value"] for row in map(json.loads, done.stdout.splitlines())}
    assert found == {
        "feature": "2",
        "offset": "36",
        "open": f"Ongoing [{topic}-0]",
        "listed": "1",
        "first": "ProducerFencedException",
        "second": "InvalidProducerEpochException",
        "read_committed": "61 0",
        "read_uncommitted": "61 61",
    }
