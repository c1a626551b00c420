"""Transactions over each transport, in each codec."""

from __future__ import annotations

import pytest
from brokers_by_transport import BITS, NODES, Brokers, stored
from outside_clients import Confluent


def test_a_transaction_is_seen_whole_or_not_at_all(codec: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, {0: NODES, 1: [2, 3, 1]})
    with brokers.log.producer(acks="all", transactional_id=f"of {topic}", compression_type=codec) as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send(topic, end.__name__.encode() * 20, partition=partition)
            producer.flush()  # what is not sent yet, an abort forgets
            end()
    committed = [b"commit_transaction" * 20] * 2
    read = brokers.read(topic, "read_committed")
    assert [(record.partition, record.value) for record in read] == [(p, value) for p in (0, 1) for value in committed]
    assert len(brokers.read(topic)) == 6
    for node in NODES:
        batches = list(stored(brokers.folder(node) / f"{topic}-0"))
        assert [batch.control for batch in batches] == [False, True] * 3
        assert [batch.codec for batch in batches] == [BITS[codec], 0] * 3
    if brokers.bootstrap:  # librdkafka reads what is committed, if it is not told otherwise
        assert [got.value for got in Confluent().consume(brokers.bootstrap, topic, 2)] == committed


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_goes_on_over_an_election(committed: bool, election: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, {0: NODES}, election=election, min_insync_replicas=2)
    with brokers.log.producer(acks="all", transactional_id=f"of {topic}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"before").result(120)
        brokers.stop(1)
        brokers.until_led(topic, other_than=1)
        producer.send(topic, b"after").result(120)
        assert brokers.read(topic, "read_committed") == []
        (producer.commit_transaction if committed else producer.abort_transaction)()
    found = [record.value for record in brokers.read(topic, "read_committed")]
    assert found == ([b"before", b"after"] if committed else [])
