"""Our consumer against a served broker and against Apache Kafka 4.3 and 3.9, and in one group with librdkafka."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import logkernel
from logkernel.errors import InvalidRegularExpression

pytestmark = pytest.mark.interop


def fill(log: logkernel.RemoteLog, topic: str, partitions: int, count: int, codec: str = "none") -> None:
    log.create_topic(topic, partitions=partitions)
    with log.producer(compression_type=codec, batch_size=2000) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_are_read_once_and_a_group_goes_on(bootstrap: str, topic: str, codec: str) -> None:
    found: list[bytes] = []
    with logkernel.connect(bootstrap) as log:
        fill(log, topic, 3, 900, codec)
        for count in (400, 900):
            with log.consumer(topic, group=topic, auto_offset_reset="earliest", max_poll_records=100) as consumer:
                end_s = time.monotonic() + 180
                while len(found) < count and time.monotonic() < end_s:
                    found += [row.value for row in consumer.poll(1)]
        with log.consumer() as consumer:
            assert sum(consumer.end_offsets([(topic, index) for index in range(3)]).values()) == 900
    assert sorted(found, key=int) == [b"%d" % number for number in range(900)]


@pytest.mark.parametrize("ours_first", [True, False])
def test_one_group_with_librdkafka(bootstrap: str, topic: str, ours_first: bool) -> None:
    """Whoever leads, the other understands what it is given: range, by the bytes of the consumer protocol."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    details = {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 500}
    with logkernel.connect(bootstrap) as log:
        fill(log, topic, 4, 400)
        theirs = Consumer({**settings, **details, "session.timeout.ms": 45_000})
        ours = log.consumer(
            group=topic, auto_offset_reset="earliest", partition_assignment_strategy="range", heartbeat_interval_ms=500
        )
        for step in (0, 1):
            if ours_first == (step == 0):
                ours.subscribe(topic)
            else:
                theirs.subscribe([topic])
            end_s = time.monotonic() + 180
            while time.monotonic() < end_s:
                if ours.subscription():
                    ours.poll(0.1)
                if not ours_first or step:
                    theirs.poll(0.1)
                sizes = {len(ours.assignment()), len(theirs.assignment())}
                if sizes == ({0, 4} if step == 0 else {2}):
                    break
            assert sizes == ({0, 4} if step == 0 else {2})
        mine = {(name.topic, name.partition) for name in ours.assignment()}
        other = {(name.topic, name.partition) for name in theirs.assignment()}
        assert mine | other == {(topic, index) for index in range(4)}
        theirs.close()
        end_s = time.monotonic() + 180
        while len(ours.assignment()) < 4 and time.monotonic() < end_s:
            ours.poll(0.1)
        assert len(ours.assignment()) == 4
        ours.close()


# ---------------------------------------------------------------- KIP-848, patterns


@pytest.fixture
def since_4(request: pytest.FixtureRequest, bootstrap: str) -> str:
    """A broker whose KIP-848 is finished: ours, and Apache Kafka from 4.0 on."""
    if "3.9" in request.node.name:
        pytest.skip("Kafka 3.9 has KIP-848 as a preview, off by default")
    return bootstrap


def until(members: list[Any], ready: Callable[[], bool], timeout_s: float = 180.0) -> list[Any]:
    """Poll all members until something holds; what ours read meanwhile."""
    found: list[Any] = []
    end_s = time.monotonic() + timeout_s
    while not ready():
        assert time.monotonic() < end_s
        for member in members:
            rows = member.poll(0.1)
            if isinstance(rows, list):
                found += rows
    return found


def names(member: Any) -> set[tuple[str, int]]:
    return {(name.topic, name.partition) for name in member.assignment()}


@pytest.mark.parametrize("ours_first", [True, False])
def test_one_kip_848_group_with_librdkafka(since_4: str, topic: str, ours_first: bool) -> None:
    from confluent_kafka import Consumer

    with logkernel.connect(since_4) as log:
        fill(log, topic, 4, 400)
        settings = {"bootstrap.servers": since_4, "group.id": topic, "auto.offset.reset": "earliest"}
        theirs = Consumer({**settings, "group.protocol": "consumer"})
        ours = log.consumer(group=topic, auto_offset_reset="earliest", group_protocol="consumer")
        first, second = (ours, theirs) if ours_first else (theirs, ours)
        first.subscribe([topic])
        until([first], lambda: len(first.assignment()) == 4)
        second.subscribe([topic])
        until([ours, theirs], lambda: len(ours.assignment()) == len(theirs.assignment()) == 2)
        assert names(ours) | names(theirs) == {(topic, index) for index in range(4)}
        theirs.close()
        until([ours], lambda: len(ours.assignment()) == 4)
        ours.commit()
        assert ours.group_metadata().generation_id > 1
        ours.close()


@pytest.mark.parametrize("new_one", ["classic", "consumer"])
def test_a_group_changes_its_protocol_while_it_reads(since_4: str, topic: str, new_one: str) -> None:
    details: dict[str, Any] = {
        "classic": {"partition_assignment_strategy": "range", "heartbeat_interval_ms": 300},
        "consumer": {"group_protocol": "consumer"},
    }
    with logkernel.connect(since_4) as log:
        fill(log, topic, 4, 400)
        common = {"group": topic, "auto_offset_reset": "earliest"}
        before = log.consumer(topic, **common, **details["consumer" if new_one == "classic" else "classic"])
        found: list[Any] = []
        while len(found) < 400:
            found += before.poll(1)
        after = log.consumer(topic, **common, **details[new_one])
        found += until([before, after], lambda: len(before.assignment()) == len(after.assignment()) == 2)
        before.commit()
        after.commit()
        with log.producer() as producer:
            for number in range(400, 800):
                producer.send(topic, b"%d" % number, partition=number % 4)
        found += until([before, after], lambda: all(lag == 0 for lag in {**before.lag, **after.lag}.values()))
        before.close()
        found += until([after], lambda: len(after.assignment()) == 4)
        with log.producer() as producer:
            producer.send(topic, b"800", partition=0)
        while len(found) < 801:
            found += after.poll(1)
        after.close()
    assert sorted((row.value for row in found), key=int) == [b"%d" % number for number in range(801)]


@pytest.mark.parametrize("protocol", ["classic", "consumer", "consumer-here"])
def test_topics_by_pattern(request: pytest.FixtureRequest, bootstrap: str, topic: str, protocol: str) -> None:
    if protocol != "classic":
        request.getfixturevalue("since_4")
    with logkernel.connect(bootstrap) as log:
        for end in ("-a", "-b", "-c9"):
            fill(log, topic + end, 2, 20)
        details: dict[str, Any] = {"group_protocol": protocol.removesuffix("-here"), "metadata_max_age_ms": 500}
        with log.consumer(group=topic, auto_offset_reset="earliest", **details) as consumer:
            text = f"{topic}-[a-z]+"
            consumer.subscribe(pattern=re.compile(text) if protocol == "consumer-here" else text)
            found = until([consumer], lambda: len(consumer.assignment()) == 4)
            while len(found) < 40:
                found += consumer.poll(1)
            fill(log, topic + "-d", 2, 20)
            if protocol != "consumer":  # the coordinator looks for new topics every ten minutes
                found += until([consumer], lambda: len(consumer.assignment()) == 6)
                while len(found) < 60:
                    found += consumer.poll(1)
        assert not {row.topic for row in found} & {topic + "-c9"}


def test_an_expression_that_is_none_is_told(since_4: str, topic: str) -> None:
    with (
        logkernel.connect(since_4) as log,
        log.consumer(group=topic, group_protocol="consumer") as consumer,
    ):
        consumer.subscribe(pattern="(")
        with pytest.raises(InvalidRegularExpression):
            consumer.poll(120)


def test_a_static_member_of_kip_848_comes_back(since_4: str, topic: str) -> None:
    details: dict[str, Any] = {"group": topic, "group_protocol": "consumer", "group_instance_id": "one"}
    with logkernel.connect(since_4) as log:
        fill(log, topic, 2, 20)
        epochs = []
        for _ in range(2):
            with log.consumer(topic, auto_offset_reset="earliest", **details) as consumer:
                until([consumer], lambda consumer=consumer: len(consumer.assignment()) == 2)  # type: ignore[misc]
                epochs.append(consumer.group_metadata().generation_id)
        assert epochs[0] == epochs[1], "nobody else was to be given its partitions"
