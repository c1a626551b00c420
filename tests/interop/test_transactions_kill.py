"""kill -9 of the broker in the middle of transactions: each is whole or not there, and what was committed is there."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
PARTITIONS = 3
RECORDS = 9
WAIT_S = 180.0
KILLS = 4


class Writer(threading.Thread):
    """Commits and aborts transactions, and knows of each what it was told."""

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.topic = topic
        self.fates: dict[str, str] = {}
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    def producer(self) -> Producer:
        settings = {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 200, "linger.ms": 0}
        producer = Producer({**settings, "transactional.id": self.name})
        self.until_settled(producer.init_transactions)
        return producer

    def run(self) -> None:
        try:
            self.write()
        except BaseException as error:
            self.failure = error

    def write(self) -> None:
        producer, number = self.producer(), 0
        while not self.stop.is_set():
            number += 1
            key = f"{self.name}.{number}"
            wanted = "aborted" if number % 5 == 0 else "committed"
            try:
                producer.begin_transaction()
                for part in range(RECORDS):
                    producer.produce(self.topic, f"{key}.{part}", partition=part % PARTITIONS)
                if wanted == "aborted":
                    producer.flush(WAIT_S)
                    self.until_settled(producer.abort_transaction)
                else:
                    self.until_settled(producer.commit_transaction)
                self.fates[key] = wanted
            except KafkaException as error:
                self.fates[key] = "unknown"
                if error.args[0].txn_requires_abort():
                    self.until_settled(producer.abort_transaction)
                    self.fates[key] = "aborted"
                else:
                    producer = self.producer()

    def until_settled(self, end: Any) -> None:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return end(WAIT_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise


def committed_values(bootstrap: str, topic: str) -> dict[int, list[str]]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "check", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: dict[int, list[str]] = {number: [] for number in range(PARTITIONS)}
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while len(ended) < PARTITIONS and time.monotonic() < deadline:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None:
                found[message.partition()].append(message.value().decode())
            else:
                ended.add(message.partition())
    consumer.close()
    assert len(ended) == PARTITIONS
    return found


def test_transactions_are_whole_over_kills(start_broker: Any, topic: str, make_topic: Any) -> None:
    broker = start_broker()
    make_topic(broker.bootstrap, topic, PARTITIONS)
    writers = [Writer(broker.bootstrap, topic, f"w{number}") for number in range(3)]
    for writer in writers:
        writer.start()
    chance = random.Random(7)
    for _ in range(KILLS):
        before = sum(len(writer.fates) for writer in writers)
        deadline = time.monotonic() + WAIT_S
        while sum(len(writer.fates) for writer in writers) < before + 60:
            assert time.monotonic() < deadline, [writer.failure for writer in writers]
            time.sleep(chance.random() * 0.02)
        broker.kill()
        broker.restart()
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join(WAIT_S)
        assert writer.failure is None
        assert not writer.is_alive()
        writer.producer()  # settles what the last one may have left open
    found = committed_values(broker.bootstrap, topic)
    parts: dict[str, list[int]] = defaultdict(list)
    for values in found.values():
        assert len(set(values)) == len(values), "a record is there twice"
        for value in values:
            key, _, part = value.rpartition(".")
            parts[key].append(int(part))
    for writer in writers:
        for key, fate in writer.fates.items():
            got = sorted(parts.get(key, []))
            assert got in ([], list(range(RECORDS))), f"{key} ({fate}) is seen in part: {got}"
            assert fate == "unknown" or bool(got) is (fate == "committed"), f"{key} was {fate}"
        for values in found.values():
            numbers = [int(value.split(".")[1]) for value in values if value.startswith(f"{writer.name}.")]
            assert numbers == sorted(numbers), "transactions of one producer are in their order"


def test_a_pipeline_is_exact_over_kills(start_broker: Any, topic: str, make_topic: Any) -> None:
    """Consume, transform, produce; each time the broker dies the pipeline begins a new life."""
    broker = start_broker()
    bootstrap, target, count = broker.bootstrap, f"{topic}-out", 600
    make_topic(bootstrap, topic)
    make_topic(bootstrap, target, PARTITIONS)
    source = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        source.produce(topic, str(number), partition=0)
    assert source.flush(WAIT_S) == 0
    lives = [(count // 4, True), (count // 2, False), (3 * count // 4, True), (count + 1, True)]
    for kill_at, commits in lives:
        live(broker, topic, target, kill_at, count, commits=commits)
    found = committed_values(bootstrap, target)
    assert sorted(int(value) for values in found.values() for value in values) == list(range(count))


def live(broker: Any, topic: str, target: str, kill_at: int, count: int, *, commits: bool) -> None:
    """One life: until the broker is killed inside the transaction that reads offset `kill_at`, or all is moved.

    With `commits` it lives to commit that transaction, else it dies with the broker and leaves it open.
    """
    common = {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 200}
    producer = Producer({**common, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(WAIT_S)
    settings = {**common, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**settings, "isolation.level": "read_committed"})
    consumer.subscribe([topic])
    moved, deadline = 0, time.monotonic() + WAIT_S
    try:
        while moved < count:
            assert time.monotonic() < deadline, f"stuck at {moved}"
            messages = [message for message in consumer.consume(10, 1.0) if message.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, message.value(), partition=int(message.value()) % PARTITIONS)
            moved = messages[-1].offset() + 1
            place = TopicPartition(topic, 0, moved)
            producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), WAIT_S)
            if moved > kill_at:
                producer.flush(WAIT_S)
                broker.kill()
                broker.restart()
                if commits:
                    producer.commit_transaction(WAIT_S)
                return
            producer.commit_transaction(WAIT_S)
    finally:
        consumer.close()
