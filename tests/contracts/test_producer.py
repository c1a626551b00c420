"""One suite over every way to produce: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from typing import Any

import pytest
from doors import Bench, way_into

import logkernel
from logkernel.client.consumer.aio_consumer import AsyncConsumer
from logkernel.client.consumer.consumer import Consumer
from logkernel.client.producer.aio_producer import AsyncDelivery, AsyncProducer
from logkernel.client.producer.producer import Delivery, Producer
from logkernel.errors import (
    ConfigError,
    InvalidPartitions,
    InvalidTopicException,
    KafkaError,
    LogkernelError,
    MessageTooLarge,
    RequestTimedOut,
)
from logkernel.vocabulary import RecordMetadata


@pytest.fixture
def bench(way: str) -> Iterator[Bench]:
    with logkernel.open(num_partitions=1) as log, way_into(log, way) as far:
        yield Bench(log, far)


def test_the_twins_have_the_same_methods() -> None:
    for one, other, more in (
        (Producer, AsyncProducer, {"send_and_wait"}),
        (Delivery, AsyncDelivery, {"exception", "add_done_callback"}),
        (Consumer, AsyncConsumer, {"wakeup"}),
    ):
        names, twins = ({name for name in dir(found) if name[0] != "_"} for found in (one, other))
        assert names ^ twins == more
        for name in names & twins:
            if callable(getattr(one, name)):
                mine, its = (inspect.signature(getattr(found, name)) for found in (one, other))
                assert mine.parameters == its.parameters, name
        assert all(getattr(one, name).__doc__ for name in ("send", "flush", "close", "poll") if name in names)


def test_a_record_arrives_as_it_was_sent(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer() as producer:
        sent = producer.send(
            topic, key=b"k", value=b"v", headers={"h": b"1", "n": None}, timestamp_ms=1_700_000_000_123
        ).result(120)
        producer.send(topic, None, key=b"gone", headers=[("a", b"1"), ("a", b"2")]).result(120)
    assert sent == RecordMetadata(topic, 0, 0, 1_700_000_000_123)
    first, second = bench.records(topic)
    assert (first.key, first.value, first.timestamp_ms) == (b"k", b"v", 1_700_000_000_123)
    assert first.headers == (("h", b"1"), ("n", None))
    assert (second.key, second.value) == (b"gone", None)
    assert second.headers == (("a", b"1"), ("a", b"2"))


def test_a_clock_that_is_patched_rules_the_first_record_of_a_batch_and_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = bench.topic()
    with bench.producer() as producer:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: 1_600_000_000_123_456_789)
            sent = [producer.send(topic, b"v") for _ in range(3)]
        assert [delivery.result(120).timestamp_ms for delivery in sent] == [1_600_000_000_123] * 3


def test_records_keep_their_order_and_know_their_offsets(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer(batch_size=500, linger_ms=1) as producer:
        deliveries = [producer.send(topic, b"%d" % number) for number in range(300)]
        producer.flush(30)
        assert all(delivery.done() for delivery in deliveries)
        assert [delivery.result(1).offset for delivery in deliveries] == list(range(300))
    assert [record.value for record in bench.records(topic)] == [b"%d" % number for number in range(300)]


@pytest.mark.setting("partitioner.class")
def test_who_chooses_the_partition(bench: Bench) -> None:
    topic, keyed = bench.topic(4), bench.topic(4, partitioner="round_robin")

    class Last:
        def partition(self, key: Any, value: Any, partitions: int, available: Any) -> int:
            return partitions - 1

        def on_batch_full(self, partition: int) -> None:
            pass

    with bench.producer() as producer:
        assert producer.send(topic, b"v", partition=3).result(120).partition == 3
        same = {producer.send(topic, b"v", key=b"abc").result(120).partition for _ in range(5)}
        assert len(same) == 1
        assert producer.partitions_for(topic) == [0, 1, 2, 3]
        spread = [producer.send(keyed, b"v").result(120).partition for _ in range(4)]
        assert sorted(spread) == [0, 1, 2, 3], "the topic's own partitioner rules"
        with pytest.raises(InvalidPartitions):
            producer.send(topic, b"v", partition=4)
    for given, expected in ((Last, {3}), (Last(), {3}), (lambda *_: 2, {2}), ("round_robin", {0, 1, 2, 3})):
        with bench.producer(partitioner_class=given) as producer:
            assert {producer.send(topic, b"v", key=b"k").result(120).partition for _ in range(4)} == expected
    with bench.producer(partitioner_class=lambda *_: 9) as producer, pytest.raises(InvalidPartitions):
        producer.send(topic, b"v")


def test_keys_meet_where_javas_client_puts_them(bench: Bench) -> None:
    topic = bench.topic(10)
    # murmur2 of Kafka's own tests (UtilsTest): 21 → -973932308, "foobar" → -790332482, "a-little-bit-long-string" …
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    with bench.producer() as producer:
        for key, value in hashes.items():
            assert producer.send(topic, b"v", key=key).result(120).partition == (value & 0x7FFFFFFF) % 10


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_arrives(bench: Bench, codec: str) -> None:
    topic = bench.topic()
    with bench.producer(compression_type=codec) as producer:
        for number in range(50):
            producer.send(topic, b"value %d " % number * 10)
    assert [record.value for record in bench.records(topic)] == [b"value %d " % number * 10 for number in range(50)]


def test_callbacks_are_told_once(bench: Bench) -> None:
    topic = bench.topic()
    told: list[tuple[Any, Any]] = []
    with bench.producer() as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number, on_delivery=lambda metadata, error: told.append((metadata, error)))
    assert [metadata.offset for metadata, _ in told] == list(range(20))
    assert {error for _, error in told} == {None}


def test_a_callback_that_fails_harms_nobody(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer() as producer:
        producer.send(topic, b"a", on_delivery=lambda metadata, error: 1 / 0)
        assert producer.send(topic, b"b").result(120).offset == 1


@pytest.mark.setting("key.serializer", "value.serializer")
def test_serializers_convert_key_and_value(bench: Bench) -> None:
    topic = bench.topic()

    class Upper:
        def serialize(self, topic: str, value: Any) -> bytes:
            return f"{topic}:{value}".upper().encode()

    for key, value, expected in (
        ("string", "json", (b"k", b'{"a":1}')),
        (str.encode, Upper, (b"k", f"{topic}:{{'A': 1}}".upper().encode())),
        ("org.apache.kafka.common.serialization.StringSerializer", lambda value: b"x", (b"k", b"x")),
    ):
        with bench.producer(key_serializer=key, value_serializer=value) as producer:
            offset = producer.send(topic, {"a": 1}, key="k").result(120).offset
        record = bench.records(topic)[offset]
        assert (record.key, record.value) == expected
    with bench.producer(value_serializer="string") as producer:
        producer.send(topic, None).result(120)
        assert bench.records(topic)[-1].value is None
    with bench.producer() as producer, pytest.raises(TypeError):
        producer.send(topic, "text without a serializer")
    with pytest.raises(ConfigError):
        bench.producer(value_serializer="nosuch")


@pytest.mark.setting("interceptor.classes")
def test_interceptors_see_records_and_outcomes(bench: Bench) -> None:
    topic = bench.topic()
    seen: list[Any] = []

    class Stamp:
        def on_send(self, record: Any) -> Any:
            record.headers = {**dict(record.headers), "stamp": b"1"}
            return record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            seen.append((metadata, error))

        def close(self) -> None:
            seen.append("closed")

    class Broken(Stamp):
        def on_send(self, record: Any) -> Any:
            raise ValueError("no")

    with bench.producer(interceptor_classes=[Stamp(), Broken]) as producer:
        producer.send(topic, b"v").result(120)
    assert bench.records(topic)[0].headers == (("stamp", b"1"),)
    assert [row for row in seen if row != "closed"] == [((topic, 0, 0, seen[0][0].timestamp_ms), None)] * 2
    assert seen.count("closed") == 2


@pytest.mark.setting("metric.reporters")
def test_reporters_are_told_the_metrics(bench: Bench) -> None:
    topic = bench.topic()
    told: list[Any] = []

    class Keep:
        def report(self, metrics: Any) -> None:
            told.append(metrics)

        def close(self) -> None:
            told.append("closed")

    with bench.producer(metric_reporters=[Keep()], metrics_sample_window_ms=20) as producer:
        for _ in range(10):
            producer.send(topic, b"v").result(120)
        assert producer.metrics()["record-send-total"] == 10
        assert producer.metrics()["buffer-available-bytes"] == producer.metrics()["buffer-total-bytes"]
    assert told[-1] == "closed"
    assert told[-2]["record-send-total"] == 10


def test_close_sends_what_is_pending(bench: Bench) -> None:
    topic = bench.topic()
    producer = bench.producer(linger_ms=60_000, request_timeout_ms=30_000)
    delivery = producer.send(topic, b"v")
    producer.close()
    producer.close()
    assert delivery.done()
    assert len(bench.records(topic)) == 1
    with pytest.raises(LogkernelError):
        producer.send(topic, b"w")


def test_flush_does_not_wait_for_the_linger(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer(linger_ms=60_000) as producer:
        delivery = producer.send(topic, b"v")
        producer.flush(20)
        assert delivery.done()


def test_what_cannot_be_known_or_held_is_refused_in_time(bench: Bench) -> None:
    with bench.producer(max_block_ms=300) as producer:
        with pytest.raises((InvalidTopicException, RequestTimedOut)):
            producer.send("no such name!", b"v")
        for bad in ("", 7):
            with pytest.raises(InvalidTopicException):
                producer.send(bad, b"v")
    with bench.producer(max_request_size=500) as producer, pytest.raises(MessageTooLarge):
        producer.send(bench.topic(), bytes(1000))


def test_a_refused_record_says_why(bench: Bench) -> None:
    topic = bench.topic(max_message_bytes=300, cleanup_policy="compact")
    with bench.producer(linger_ms=60_000) as producer:  # so long that two records share a batch on a busy machine, too
        large = producer.send(topic, bytes(1000), key=b"k")
        producer.flush(20)
        with pytest.raises(MessageTooLarge):
            large.result(120)
        good, bad = producer.send(topic, b"v", key=b"k"), producer.send(topic, b"v")
        producer.flush(20)
        with pytest.raises(KafkaError):
            bad.result(120)
        with pytest.raises(KafkaError, match="another record"):
            good.result(120)
        last = producer.send(topic, b"v", key=b"k")
        producer.flush(20)
        assert last.result(120).offset == 0


def test_a_batch_that_is_too_large_is_split(bench: Bench) -> None:
    topic = bench.topic(max_message_bytes=400)
    with bench.producer(batch_size=4000, linger_ms=50) as producer:
        deliveries = [producer.send(topic, b"%03d" % number + bytes(40)) for number in range(60)]
        producer.flush(30)
        assert [delivery.result(1).offset for delivery in deliveries] == list(range(60))
    values = [(record.value or b"")[:3] for record in bench.records(topic)]
    assert values == [b"%03d" % number for number in range(60)]


def test_transactions_need_a_name(bench: Bench) -> None:
    with bench.producer() as producer, pytest.raises(LogkernelError, match=r"transactional\.id"):
        producer.begin_transaction()


def test_without_idempotence_and_without_acknowledgement(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer(acks=0) as producer:
        assert producer.send(topic, b"v").result(120).offset == -1
    with bench.producer(acks=1) as producer:
        assert producer.send(topic, b"w").result(120).offset == 1
