"""Where records lie is what the topic's partitioner, or the producer's, says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from brokers_by_transport import Brokers, until
from kafka.partitioner import murmur2

PARTITIONS = 3
KEYS = [b"key-%d" % (number % 20) for number in range(60)]
ONE_EACH = {0: [1], 1: [2], 2: [3]}


def place(log: Any, topic: str, keys: Sequence[bytes | None], **settings: object) -> list[int]:
    """Where the records with these keys went; batches hold two of them."""
    with log.producer(acks="all", batch_size=300, **settings) as producer:
        sent = [producer.send(topic, b"%100d" % number, key) for number, key in enumerate(keys)]
        producer.flush()
        return [each.result().partition for each in sent]


def take_turns(placed: Sequence[int], among: Sequence[int]) -> bool:
    return all(among[(among.index(one) + 1) % len(among)] == other for one, other in pairwise(placed))


@pytest.mark.parametrize("named_by", ["topic", "producer"])
def test_keys_choose_or_turns_do(named_by: str, partitioner: str, brokers: Brokers, topic: str) -> None:
    other = "round_robin" if partitioner == "keyed" else "keyed"
    by_topic = named_by == "topic"
    brokers.create(topic, ONE_EACH, partitioner=partitioner if by_topic else other)
    placed = place(brokers.log, topic, KEYS, **({} if by_topic else {"partitioner_class": partitioner}))
    if partitioner == "round_robin":
        assert take_turns(placed, range(PARTITIONS))
    else:
        assert placed == [(murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key in KEYS]
    read = {(record.partition, record.key, int(record.value)) for record in brokers.read(topic)}
    assert read == {(partition, key, number) for number, (partition, key) in enumerate(zip(placed, KEYS, strict=True))}


def test_without_keys_records_stick_stay_or_take_turns(partitioner: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, ONE_EACH, partitioner=partitioner)
    placed = place(brokers.log, topic, [None] * 60)
    moves = sum(one != other for one, other in pairwise(placed))
    if partitioner == "keyed":
        assert moves == 0
    elif partitioner == "round_robin":
        assert take_turns(placed, range(PARTITIONS))
    else:
        assert 5 <= moves < 40  # batch by batch
        assert set(placed) == set(range(PARTITIONS))


def test_without_keys_a_partition_that_nobody_leads_is_spared(partitioner: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, ONE_EACH, partitioner=partitioner)
    brokers.stop(2)
    brokers.until_offline(topic, 1)
    placed = place(brokers.log, topic, [None] * 40)
    assert set(placed) <= {0, 2}
    if partitioner == "round_robin":
        assert take_turns(placed, (0, 2))
    brokers.start(2)
    brokers.until_led(topic, 1)
    assert len(brokers.read(topic)) == 40


@pytest.mark.plugins(transport=("tcp", "zookeeper"))
def test_librdkafka_finds_our_keys_where_it_puts_its_own(partitioner: str, brokers: Brokers, topic: str) -> None:
    from confluent_kafka import Producer

    brokers.create(topic, ONE_EACH, partitioner=partitioner)
    ours = place(brokers.log, topic, KEYS)
    theirs: list[int] = []
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "partitioner": "murmur2_random"})
    for key in KEYS:
        producer.produce(topic, b"theirs", key, on_delivery=lambda error, message: theirs.append(message.partition()))
        assert producer.flush(30) == 0
    assert (ours == theirs) == (partitioner != "round_robin")


def test_a_group_reads_every_partition_once_and_goes_on_behind_its_commits(
    partitioner: str, brokers: Brokers, topic: str
) -> None:
    brokers.create(topic, {0: [1, 2], 1: [2, 3], 2: [3, 1]}, partitioner=partitioner)
    settings = {"group": f"of {topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False,
                "heartbeat_interval_ms": 100}  # fmt: skip
    found: list[Any] = []
    with brokers.log.consumer(topic, **settings) as one, brokers.log.consumer(topic, **settings) as other:

        def poll() -> None:
            for member in (one, other):
                found.extend(member.poll(0.02))

        def shared() -> bool:
            poll()
            held = [{name.partition for name in member.assignment()} for member in (one, other)]
            return all(held) and not held[0] & held[1] and held[0] | held[1] == set(range(PARTITIONS))

        until(shared, "the members share the partitions")
        placed = place(brokers.log, topic, KEYS)
        until(lambda: poll() or len(found) >= len(KEYS), "all is read")
        for member in (one, other):
            member.commit()
    assert sorted(record.partition for record in found) == sorted(placed)
    later = place(brokers.log, topic, KEYS[:7])
    found.clear()
    with brokers.log.consumer(topic, **settings) as one:
        until(lambda: found.extend(one.poll(0.05)) or len(found) >= len(later), "the later ones are read")
    assert sorted(record.partition for record in found) == sorted(later)
