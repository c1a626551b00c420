"""Our consumer against a served broker and against Apache Kafka 4.3 and 3.9, and in one group with librdkafka."""

from __future__ import annotations

import time

import pytest

import logkernel

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
                end_s = time.monotonic() + 60
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
        theirs = Consumer({**settings, **details, "session.timeout.ms": 10_000})
        ours = log.consumer(
            group=topic, auto_offset_reset="earliest", partition_assignment_strategy="range", heartbeat_interval_ms=500
        )
        for step in (0, 1):
            if ours_first == (step == 0):
                ours.subscribe(topic)
            else:
                theirs.subscribe([topic])
            end_s = time.monotonic() + 60
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
        end_s = time.monotonic() + 60
        while len(ours.assignment()) < 4 and time.monotonic() < end_s:
            ours.poll(0.1)
        assert len(ours.assignment()) == 4
        ours.close()
