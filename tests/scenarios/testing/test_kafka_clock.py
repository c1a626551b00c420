"""A test moves the broker's time: what falls due is done when `advance` returns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from logkernel.errors import UnknownTopicOrPartition
from logkernel.testing import Kafka
from logkernel.testing.child.clock import ClockOverControl
from logkernel.testing.child.control import ControlClient
from logkernel.testing.kafka.clock import LentClock


@pytest.fixture(params=[False, True], ids=["here", "process"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(process=request.param) as broker:
        yield broker


def values(kafka: Kafka, topic: str) -> list[str | None]:
    return [record.text for record in kafka.records(topic)]


@pytest.fixture(params=[True, False], ids=["sockets", "memory"])
def either(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    with Kafka(sockets=request.param) as broker:
        yield broker


def test_retention_drops_what_is_too_old(either: Kafka) -> None:
    either.create_topic("orders", config={"retention.ms": 7 * 86_400_000})
    either.produce("orders", "old")
    either.clock.advance(days=6)
    assert values(either, "orders") == ["old"]
    either.produce("orders", "new")
    either.clock.advance(days=1, minutes=10)
    assert either.start_offset("orders") == 0, "the segment holds a record that is not too old"
    either.clock.advance(days=8)
    assert values(either, "orders") == []
    assert (either.start_offset("orders"), either.end_offset("orders")) == (2, 2)


def test_compaction_keeps_its_lags(either: Kafka) -> None:
    config = {"cleanup.policy": "compact", "min.compaction.lag.ms": 3_600_000, "segment.ms": 60_000}
    config["min.cleanable.dirty.ratio"] = 0.0
    either.create_topic("prices", 1, config=config)
    either.produce("prices", "1", key="a")
    either.produce("prices", "2", key="a")
    either.clock.advance(minutes=2)
    either.produce("prices", "3", key="b")  # begins a segment
    either.clock.advance(minutes=20)
    assert values(either, "prices") == ["1", "2", "3"]
    either.clock.advance(hours=2)
    assert values(either, "prices") == ["2", "3"]


def test_cleaning_is_done_at_once_when_asked_for(either: Kafka) -> None:
    either.create_topic("prices", 1, config={"cleanup.policy": "compact"})
    either.create_topic("orders", 1, config={"retention.ms": 1000})
    for number in range(3):
        either.produce("prices", number, key="a")
        either.produce("orders", number, timestamp_ms=1)
    either.compact()
    either.apply_retention()
    assert (values(either, "prices"), values(either, "orders")) == (["2"], [])
    either.compact("prices")
    with pytest.raises(UnknownTopicOrPartition):
        either.compact("none")


def test_a_member_that_is_silent_loses_its_session(kafka: Kafka) -> None:
    kafka.produce("orders", "1")
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**conf, "session.timeout.ms": 45_000, "heartbeat.interval.ms": 40_000})
    consumer.subscribe(["orders"])
    try:
        assert consumer.poll(10) is not None
        (member,) = kafka.wait_for_group("g", members=1, state="Stable").members
        kafka.clock.advance(seconds=30)
        assert kafka.wait_for_group("g", members=1).members[0].id == member.id
        kafka.clock.advance(seconds=46)
        kafka.wait_for_group("g", members=0, state="Empty")
    finally:
        consumer.close()


def test_a_transaction_times_out(kafka: Kafka) -> None:
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t", "transaction.timeout.ms": 60_000}
    producer = confluent_kafka.Producer(conf)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"1")
    producer.flush(10)
    kafka.produce("orders", "after")
    assert values(kafka, "orders") == []

    kafka.clock.advance(minutes=2)

    kafka.assert_produced("orders", value="after", within=10)
    assert values(kafka, "orders") == ["after"]
    with pytest.raises(confluent_kafka.KafkaException) as failed:
        producer.commit_transaction(10)
    assert failed.value.args[0].fatal() or failed.value.args[0].txn_requires_abort()


def test_an_idle_producer_is_forgotten(kafka: Kafka) -> None:
    kafka.create_topic("orders", 1)
    with kafka.producer(enable_idempotence=True) as producer:
        producer.send("orders", b"1").result(60)
        with kafka.admin() as admin:
            assert len(admin.describe_producers([("orders", 0)])[("orders", 0)]) == 1
            kafka.clock.advance(days=2)
            assert admin.describe_producers([("orders", 0)])[("orders", 0)] == ()


def test_clients_in_the_process_keep_their_own_time(kafka: Kafka) -> None:
    """A wait of theirs that began before or after a jump is as long as it was to be."""
    kafka.create_topic("orders", 1)
    kafka.clock.advance(days=30)
    with kafka.consumer("orders", group="g") as consumer:
        begun_s = time.monotonic()
        assert list(consumer.poll(0.3)) == []
        assert time.monotonic() - begun_s >= 0.29
        sent: Any
        with kafka.producer(linger_ms=100) as producer:
            sent = producer.send("orders", b"1")
            assert sent.result(60).offset == 0


def test_time_goes_forward_only(kafka: Kafka) -> None:
    before_ms = kafka.clock.wall_ms()
    kafka.clock.advance(hours=1, ms=500)
    assert kafka.clock.ahead_ms == 3_600_500
    assert 0 <= kafka.clock.wall_ms() - before_ms - 3_600_500 < 60_000
    with pytest.raises(ValueError, match="forward only"):
        kafka.clock.advance(seconds=-1)
    assert kafka.clock.ahead_ms == 3_600_500


def test_time_goes_on_while_the_broker_is_away(kafka: Kafka) -> None:
    kafka.create_topic("orders", config={"retention.ms": 86_400_000})
    kafka.produce("orders", "1")
    kafka.kill()
    kafka.clock.advance(days=2)
    kafka.start()
    assert values(kafka, "orders") == ["1"], "retention looks every five minutes"
    kafka.clock.advance(minutes=10)
    assert values(kafka, "orders") == []


@pytest.mark.parametrize(
    ("given", "named", "kind", "said"),
    [
        ((-5,), {}, TypeError, r"advance\(-5\) has no unit; write e.g. advance\(seconds=5\)"),
        ((), {"days": -1}, ValueError, r"cannot advance\(days=-1\): time goes forward only; write"),
        ((), {"hours": "1"}, TypeError, r"advance\(hours='1'\): str is no number; write"),
        ((), {"ms": True}, TypeError, "bool is no number"),
        ((), {"day": 8}, TypeError, r"advance\(day=…\): there is no unit 'day'; did you mean 'days'\?"),
        ((), {"fortnights": 8}, TypeError, r"there is no unit 'fortnights'; write e.g. advance\(seconds=5\)"),
        ((), {}, TypeError, r"advance\(\) has no length; write e.g. advance\(seconds=5\)"),
        ((), {"days": float("nan")}, ValueError, "no clock goes that far"),
        ((), {"days": 1e30}, ValueError, "no clock goes that far"),
    ],
)
def test_a_jump_that_is_none_is_refused(given: Any, named: Any, kind: type[Exception], said: str) -> None:
    for clock in (LentClock(lambda: None), ClockOverControl(ControlClient(), 0)):
        with pytest.raises(kind, match=said):
            clock.advance(*given, **named)
        assert clock.ahead_ms == 0
        clock.advance(seconds=0)
