"""Faults that a test asks for, as unmodified clients meet them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from logkernel.errors import KafkaError, KafkaStorageError, LogkernelError
from logkernel.testing import Kafka

MS = 1 / 1000


@pytest.fixture(params=[False, True], ids=["here", "process"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(topics={"orders": 2}, process=request.param) as broker:
        yield broker


class Sender:
    """A producer of confluent-kafka that notes what was delivered, and what failed."""

    def __init__(self, kafka: Kafka, **settings: Any) -> None:
        conf = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "retry.backoff.ms": 1}
        self.client = confluent_kafka.Producer({**conf, "reconnect.backoff.ms": 1, **settings})
        self.outcomes: list[str | None] = []

    def send(self, value: bytes, partition: int = 0, *, wait: bool = True) -> str | None:
        """The name of the error, None for a success."""
        self.client.produce("orders", value, partition=partition, on_delivery=self._told)
        if wait:
            assert self.client.flush(20) == 0
        return self.outcomes[-1] if wait else None

    def _told(self, error: Any, message: Any) -> None:
        self.outcomes.append(None if error is None else error.name())


def values(kafka: Kafka, partition: int = 0) -> list[str | None]:
    return [record.text for record in kafka.records("orders", partition)]


def test_a_retried_error_passes(kafka: Kafka) -> None:
    fault = kafka.faults.error("NOT_LEADER_OR_FOLLOWER", api="Produce", topic="orders", times=2)
    assert Sender(kafka).send(b"1") is None
    assert fault.struck == 2
    assert len(kafka.requests.of("Produce")) == 3
    assert values(kafka) == ["1"]


def test_a_fatal_error_is_told(kafka: Kafka) -> None:
    with kafka.faults.error("TOPIC_AUTHORIZATION_FAILED", api="Produce", partition=1):
        sender = Sender(kafka)
        assert sender.send(b"1", 0) is None
        assert sender.send(b"2", 1) == "TOPIC_AUTHORIZATION_FAILED"
    assert Sender(kafka).send(b"3", 1) is None, "the first one remembers"
    assert (values(kafka, 0), values(kafka, 1)) == (["1"], ["3"])


def test_of_a_request_only_what_is_meant_fails(kafka: Kafka) -> None:
    """One request has both partitions; the other one is written."""
    kafka.faults.error("INVALID_RECORD", api="Produce", partition=1)
    sender = Sender(kafka, **{"linger.ms": 200, "enable.idempotence": False})
    sender.send(b"0", 0, wait=False)
    sender.send(b"1", 1, wait=False)
    assert sender.client.flush(20) == 0
    assert sorted(map(str, sender.outcomes)) == ["INVALID_RECORD", "None"]
    assert (values(kafka, 0), values(kafka, 1)) == (["0"], [])


def test_a_lost_answer_is_sent_again_and_not_doubled(kafka: Kafka) -> None:
    fault = kafka.faults.lose_answer(api="Produce", times=1)
    assert Sender(kafka, **{"enable.idempotence": True}).send(b"1") is None
    assert fault.struck == 1
    assert len(kafka.requests.of("Produce")) == 2
    assert values(kafka) == ["1"]


def test_a_lost_answer_doubles_without_idempotence(kafka: Kafka) -> None:
    kafka.faults.lose_answer(api="Produce", times=1)
    assert Sender(kafka, **{"enable.idempotence": False, "acks": 1}).send(b"1") is None
    assert values(kafka) == ["1", "1"]


@pytest.mark.parametrize("kind", ["close", "cut_answer"])
def test_a_broken_connection_is_made_anew(kafka: Kafka, kind: str) -> None:
    fault = getattr(kafka.faults, kind)(api="Produce", times=1)
    assert Sender(kafka, **{"enable.idempotence": True}).send(b"1") is None
    assert fault.struck == 1
    connections = {request.connection for request in kafka.requests.of("Produce")}
    assert len(connections) > 1  # a client makes more, where the machine stalls
    assert values(kafka) == ["1"]


def test_a_delay_ends_by_the_brokers_clock(kafka: Kafka) -> None:
    kafka.faults.delay(3_600_000, api="Produce", times=1)
    sender = Sender(kafka, **{"linger.ms": 0})
    sender.send(b"1", wait=False)
    while not kafka.requests.of("Produce"):
        sender.client.poll(10 * MS)
    assert values(kafka) == []
    kafka.clock.advance(hours=1)
    assert values(kafka) == ["1"]
    assert sender.client.flush(20) == 0


def test_a_stall_holds_a_connection_up_in_order(kafka: Kafka) -> None:
    sender = Sender(kafka, **{"linger.ms": 0, "batch.num.messages": 1, "enable.idempotence": True})
    assert sender.send(b"0") is None
    with kafka.faults.stall(api="Produce", times=1) as fault:
        for value in (b"1", b"2", b"3"):
            sender.send(value, wait=False)
        while not fault.struck:
            sender.client.poll(10 * MS)
        assert values(kafka) == ["0"]
    assert sender.client.flush(20) == 0
    assert values(kafka) == ["0", "1", "2", "3"]


def test_a_consumer_recovers_from_errors_of_fetches(kafka: Kafka) -> None:
    kafka.produce("orders", "1", partition=0)
    kafka.produce("orders", "2", partition=1)
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**conf, "fetch.error.backoff.ms": 1, "reconnect.backoff.ms": 1})
    fault = kafka.faults.error("NOT_LEADER_OR_FOLLOWER", api="Fetch", topic="orders", partition=1, times=2)
    consumer.subscribe(["orders"])
    found = set()
    try:
        while len(found) < 2:
            message = consumer.poll(20)
            assert message is not None
            found.add(message.value())
    finally:
        consumer.close()
    assert fault.struck == 2


@pytest.mark.parametrize("kafka", [False], ids=["here"], indirect=True)
def test_a_groups_coordinator_is_away_for_a_while(kafka: Kafka) -> None:
    kafka.produce("orders", "1", partition=0)
    fault = kafka.faults.error("COORDINATOR_NOT_AVAILABLE", api="FindCoordinator", times=2)
    refused = kafka.faults.error("COORDINATOR_LOAD_IN_PROGRESS", api="JoinGroup", times=1)
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(conf)
    consumer.subscribe(["orders"])
    try:
        assert consumer.poll(20) is not None
    finally:
        consumer.close()
    assert (fault.struck, refused.struck) == (2, 1)


# ---------------------------------------------------------------- the broker itself


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_broker_comes_back_with_what_it_had(kafka: Kafka, end: str) -> None:
    sender = Sender(kafka)
    assert sender.send(b"1") is None
    where = kafka.bootstrap_servers
    getattr(kafka, end)()
    sender.send(b"2", wait=False)
    kafka.start()
    assert sender.client.flush(20) == 0
    assert sender.outcomes == [None, None]
    assert kafka.bootstrap_servers == where
    assert values(kafka) == ["1", "2"]
    with pytest.raises(LogkernelError, match="runs"):
        kafka.start()
    kafka.restart()
    assert kafka.topics == {"orders": 2}


def test_a_full_disk_refuses_and_takes_again(kafka: Kafka) -> None:
    assert Sender(kafka).send(b"1") is None
    sender = Sender(kafka, **{"message.timeout.ms": 300})
    with kafka.full_disk():
        assert sender.send(b"2") is not None
    deadline_s = time.monotonic() + 180
    while sender.send(b"3") is not None:
        assert time.monotonic() < deadline_s
    assert values(kafka)[0] == "1"
    assert "3" in values(kafka)


def test_a_full_disk_of_a_folder_refuses_and_takes_again(tmp_path: Path) -> None:
    with Kafka(path=tmp_path, topics=["orders"]) as kafka:
        with kafka.full_disk():
            with pytest.raises(KafkaError):
                kafka.produce("orders", "1")
            with pytest.raises(KafkaError):
                kafka.create_topic("more")
        kafka.restart()
        kafka.produce("orders", "2")
        assert values(kafka) == ["2"]


@pytest.mark.parametrize("kafka", [False], ids=["here"], indirect=True)
def test_a_full_disk_says_so_of_a_new_topic(kafka: Kafka) -> None:
    """It said the partition's name, and nothing else."""
    with kafka.full_disk(), pytest.raises(KafkaStorageError, match=r"^new-0: its log cannot be made for want of room"):
        kafka.produce("new", "1")


def test_faults_are_there_from_the_start() -> None:
    with Kafka(topics=["orders"], faults=[{"error": "REQUEST_TIMED_OUT", "api": "Produce", "times": 1}]) as kafka:
        assert Sender(kafka).send(b"1") is None
        assert [fault.struck for fault in kafka.faults.active] == [1]


@pytest.mark.parametrize("kafka", [False], ids=["here"], indirect=True)
def test_a_producer_of_aiokafka_bears_what_a_seed_brings(kafka: Kafka) -> None:
    """Without idempotence it doubles what it must, and loses nothing."""
    import asyncio

    from aiokafka import AIOKafkaProducer

    kafka.faults.lose_answer(api="Produce", probability=0.2)
    kafka.faults.error("NOT_ENOUGH_REPLICAS", api="Produce", probability=0.2)

    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, retry_backoff_ms=5)
        await producer.start()
        try:
            for number in range(30):
                await producer.send_and_wait("orders", b"%d" % number, partition=0)
        finally:
            await producer.stop()

    asyncio.run(send())
    assert list(dict.fromkeys(values(kafka))) == [str(number) for number in range(30)]
    assert all(fault.struck for fault in kafka.faults.active)


def test_what_stalls_ends_with_the_broker(kafka: Kafka) -> None:
    sender = Sender(kafka)
    with kafka.faults.stall(api="Produce", times=1) as fault:
        sender.send(b"1", wait=False)
        while not fault.struck:
            sender.client.poll(10 * MS)
        kafka.kill()
        assert len(kafka.requests.of("Produce")) == 1, "what was asked is there without a broker"
        kafka.start()
    assert sender.client.flush(20) == 0
    assert values(kafka) == ["1"]
    with kafka.faults.close(api="Produce"):
        kafka.stop()
    assert kafka.faults.active == []
