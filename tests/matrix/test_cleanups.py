"""What a topic's cleanup policy leaves: for readers, on every replica, over restarts, and of transactions."""

from __future__ import annotations

import matrix_records as filling
from brokers_by_transport import BITS, NODES, Brokers, until


def stored_counts(brokers: Brokers, topic: str) -> set[int]:
    """How many records each replica's log holds; one number where all are cleaned alike."""
    return {sum(batch.records for batch in brokers.batches(node, topic)) for node in NODES}


def test_a_policy_leaves_what_it_promises_on_every_replica(cleanup: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, {0: NODES}, **filling.SETTINGS[cleanup])
    wanted = filling.left(cleanup, filling.fill(brokers, topic))
    filling.until_left(brokers, topic, wanted)
    with brokers.log.consumer(topic) as consumer:
        (start,) = consumer.beginning_offsets([(topic, 0)]).values()
    assert start == (wanted[0].offset if cleanup == "delete" else 0)
    until(lambda: stored_counts(brokers, topic) == {len(wanted)}, "every replica is cleaned")
    for leader in (2, 3):
        brokers.stop(leader - 1)
        brokers.until_led(topic, other_than=leader - 1)
        assert filling.read(brokers, topic) == wanted
        brokers.start(leader - 1)
        brokers.until_in_sync(topic)


def test_what_is_left_keeps_its_codec(cleanup: str, codec: str, memory: Brokers, topic: str) -> None:
    memory.create(topic, {0: NODES}, **filling.SETTINGS[cleanup])
    wanted = filling.left(cleanup, filling.fill(memory, topic, compression_type=codec))
    filling.until_left(memory, topic, wanted)
    until(lambda: stored_counts(memory, topic) == {len(wanted)}, "every replica is cleaned")
    for node in NODES:
        assert {batch.codec for batch in memory.batches(node, topic)} == {BITS[codec]}


def test_a_replica_that_was_away_copies_what_is_left(cleanup: str, brokers: Brokers, topic: str) -> None:
    """The log begins behind its own end, or has holes there."""
    brokers.create(topic, {0: [1, 2]}, **filling.SETTINGS[cleanup])
    brokers.stop(2)
    brokers.until_in_sync(topic, 1)
    wanted = filling.left(cleanup, filling.fill(brokers, topic))
    filling.until_left(brokers, topic, wanted)
    brokers.start(2)
    brokers.until_in_sync(topic)
    assert sum(batch.records for batch in brokers.batches(2, topic)) == len(wanted)
    brokers.stop(1)
    assert brokers.until_led(topic, other_than=1) == 2
    assert filling.read(brokers, topic) == wanted


def test_all_brokers_are_killed_and_nothing_comes_back_or_goes(cleanup: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, {0: NODES}, **filling.SETTINGS[cleanup])
    wanted = filling.left(cleanup, filling.fill(brokers, topic))
    filling.until_left(brokers, topic, wanted)
    for node in NODES:
        brokers.kill(node)
    for node in NODES:
        brokers.start(node)
    brokers.until_in_sync(topic)
    assert filling.read(brokers, topic) == wanted
    more = filling.write(brokers, topic, filling.NEW, 0)
    assert filling.read(brokers, topic) == wanted + more
    assert more[0].offset == wanted[-1].offset + 1


def test_aborted_records_win_nothing(cleanup: str, brokers: Brokers, topic: str) -> None:
    """Compaction drops them, and keeps the committed record of their key; without it only some readers pass them by."""
    settings = {**filling.SETTINGS[cleanup], "retention_ms": -1}
    brokers.create(topic, {0: NODES}, **settings)
    with brokers.log.producer(acks="all", transactional_id=f"of {topic}") as producer:
        producer.init_transactions()
        for value, end in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, value, b"key", partition=0).result()
            end()
    filling.write(brokers, topic, filling.NEW, -2)  # in a segment of their own
    new = [value for _, value in filling.NEW]
    read = lambda isolation: [record.value for record in brokers.read(topic, isolation)]  # noqa: E731
    wanted = [b"committed", *new] if cleanup == "compact" else [b"committed", b"aborted", *new]
    until(lambda: read("read_uncommitted") == wanted, "aborted records are dropped, or stay")
    assert read("read_committed") == [b"committed", *new]
