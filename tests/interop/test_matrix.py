"""What one client writes, every other reads: each codec, each acks, every shape of record."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.interop

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WRITERS = ("confluent-kafka", "kafka-python", "aiokafka")


def contents(records: list[Any]) -> list[Any]:
    """What must come back, in order."""
    return [(record.key, record.value, record.headers) for record in records]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", WRITERS)
def test_every_client_reads_what_one_wrote(
    writer: str, codec: str, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    if writer == "kafka-python":  # it refuses headers whose value is null
        sample = [record for record in sample if all(value is not None for _, value in record.headers)]
    placed = clients[writer].produce(broker_session.bootstrap, topic, sample, codec=codec)
    assert placed == [(0, offset) for offset in range(len(sample))]
    for reader in clients.values():
        got = reader.consume(broker_session.bootstrap, topic, len(sample))
        assert [record.content for record in got] == contents(sample)
        assert [record.offset for record in got] == list(range(len(sample)))
        assert [record.timestamp_ms for record in got] == [record.timestamp_ms for record in sample]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("writer", WRITERS)
def test_every_acks(
    writer: str, acks: str, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    plain = [record for record in sample if not record.headers]
    clients[writer].produce(broker_session.bootstrap, topic, plain, acks=acks)
    got = clients["confluent-kafka"].consume(broker_session.bootstrap, topic, len(plain))
    assert [record.content for record in got] == contents(plain)


@pytest.mark.parametrize("codec", CODECS)
def test_java_and_python_read_each_other(
    codec: str, java: Any, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    assert java.produce(broker_session.bootstrap, topic, sample, codec=codec) == [
        (0, offset) for offset in range(len(sample))
    ]
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample, codec=codec)
    for reader in (java, clients["confluent-kafka"], clients["aiokafka"]):
        got = reader.consume(broker_session.bootstrap, topic, 2 * len(sample))
        assert [record.content for record in got] == 2 * contents(sample)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_java_with_lesser_acks(
    acks: str, java: Any, clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    java.produce(broker_session.bootstrap, topic, sample, acks=acks)
    got = clients["confluent-kafka"].consume(broker_session.bootstrap, topic, len(sample))
    assert [record.content for record in got] == contents(sample)


def test_a_read_may_begin_at_any_offset(
    clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic)
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample, codec="lz4")
    for client in clients.values():
        got = client.consume(broker_session.bootstrap, topic, 10, offset=len(sample) - 10)
        assert [record.offset for record in got] == list(range(len(sample) - 10, len(sample)))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_topic_comes_into_being_when_it_is_written(
    writer: str, clients: Any, broker_session: Any, topic: str, sample: Any
) -> None:
    placed = clients[writer].produce(broker_session.bootstrap, topic, sample[:1])
    assert placed == [(0, 0)]


def test_a_topic_recompresses_what_it_is_given(
    clients: Any, broker_session: Any, topic: str, sample: Any, make_topic: Any
) -> None:
    make_topic(broker_session.bootstrap, topic, compression_type="zstd")
    clients["confluent-kafka"].produce(broker_session.bootstrap, topic, sample, codec="gzip")
    for client in clients.values():
        assert [r.content for r in client.consume(broker_session.bootstrap, topic, len(sample))] == contents(sample)
