"""The codec of a topic, or of a producer, is the one that lies in every replica's log, and every client reads it."""

from __future__ import annotations

import pytest
from brokers_by_transport import BITS, NODES, Brokers
from outside_clients import Confluent, Sent

VALUES = [b"order %d: %s" % (number, b"the same again " * 20) for number in range(40)]
RAW_BYTES = sum(map(len, VALUES))
EVERYWHERE = {0: NODES}


def send(brokers: Brokers, topic: str, **settings: object) -> None:
    """The values, as one batch."""
    with brokers.log.producer(acks="all", linger_ms=10_000, batch_size=1 << 20, **settings) as producer:
        sent = [producer.send(topic, value, b"key", partition=0) for value in VALUES]
        producer.flush()
        assert [each.result().offset for each in sent] == list(
            range(sent[0].result().offset, sent[-1].result().offset + 1)
        )


def read(brokers: Brokers, topic: str) -> list[bytes]:
    return [record.value for record in brokers.read(topic)]


def test_a_topics_codec_is_stored_whatever_producers_use(codec: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, EVERYWHERE, compression_type="uncompressed" if codec == "none" else codec)
    for used in ("none", "gzip", "lz4"):
        send(brokers, topic, compression_type=used)
    for node in NODES:
        batches = brokers.batches(node, topic)
        assert [(batch.codec, batch.records) for batch in batches] == [(BITS[codec], len(VALUES))] * 3
        assert all((len(batch.data) < RAW_BYTES / 3) == (codec != "none") for batch in batches)
    assert read(brokers, topic) == VALUES * 3


def test_a_producers_codec_is_stored_where_the_topic_names_none(codec: str, brokers: Brokers, topic: str) -> None:
    brokers.create(topic, EVERYWHERE, compression_type="producer")
    send(brokers, topic, compression_type=codec)
    (batch,) = brokers.batches(1, topic)
    assert (batch.codec, batch.records) == (BITS[codec], len(VALUES))
    assert (len(batch.data) < RAW_BYTES / 3) == (codec != "none")
    assert [brokers.batches(node, topic) for node in NODES] == [[batch]] * 3  # byte for byte
    assert read(brokers, topic) == VALUES


@pytest.mark.plugins(transport=("tcp", "zookeeper"))
def test_librdkafka_reads_what_is_stored_and_what_it_writes_is_stored_so(
    codec: str, brokers: Brokers, topic: str
) -> None:
    brokers.create(topic, EVERYWHERE, compression_type="producer")
    send(brokers, topic, compression_type=codec)
    client = Confluent()
    client.produce(brokers.bootstrap, topic, [Sent(b"key", value) for value in VALUES], codec=codec)
    assert {batch.codec for batch in brokers.batches(1, topic)} == {BITS[codec]}
    assert [got.value for got in client.consume(brokers.bootstrap, topic, 2 * len(VALUES))] == VALUES * 2
    assert read(brokers, topic) == VALUES * 2
