"""One suite over every way to produce: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import logkernel
from logkernel import aio
from logkernel.errors import (
    ConfigError,
    InvalidPartitions,
    InvalidTopicException,
    KafkaError,
    LogkernelError,
    MessageTooLarge,
    RequestTimedOut,
)
from logkernel.vocabulary import Record, RecordMetadata


class Bridged:
    """An asyncio producer with the face of the synchronous one: its loop runs in a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, made: Any) -> None:
        self._loop = loop
        self._made = made

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def send(self, *arguments: Any, **details: Any) -> Any:
        return BridgedDelivery(self, self._run(self._made.send(*arguments, **details)))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        if asyncio.iscoroutinefunction(found):
            return lambda *arguments, **details: self._run(found(*arguments, **details))
        return found

    def __enter__(self) -> Bridged:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BridgedDelivery:
    def __init__(self, producer: Bridged, delivery: Any) -> None:
        self._producer = producer
        self._delivery = delivery

    def result(self, timeout_s: float | None = None) -> Any:
        return self._producer._run(self._delivery.result(timeout_s))

    def done(self) -> bool:
        return bool(self._delivery.done())


class Bench:
    """Where a test produces to; what lies there is read from the kernel itself."""

    def __init__(self, log: logkernel.EmbeddedLog, make: Callable[..., Any]) -> None:
        self.log = log
        self.producer = make
        self._topics = 0

    def topic(self, partitions: int = 1, **settings: Any) -> str:
        self._topics += 1
        name = f"t{self._topics}"
        self.log.create_topic(name, partitions, **settings)
        return name

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        return list(self.log.read(topic, partition))


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(params=["embedded", "tcp", "embedded-aio", "tcp-aio"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    kind = request.param
    with logkernel.open(num_partitions=1) as log, running_loop() as loop:
        if kind == "embedded":
            yield Bench(log, log.producer)
            return
        if kind == "tcp":
            with logkernel.connect(log.listen()) as remote:
                yield Bench(log, remote.producer)
            return
        made: list[Any] = []

        async def start() -> Any:
            return aio.connect(address) if kind == "tcp-aio" else aio.AsyncLog(log)

        address = log.listen() if kind == "tcp-aio" else ""
        far = asyncio.run_coroutine_threadsafe(start(), loop).result(10)

        def make(**settings: Any) -> Bridged:
            async def inside() -> Any:
                return far.producer(**settings)

            found = Bridged(loop, asyncio.run_coroutine_threadsafe(inside(), loop).result(10))
            made.append(found)
            return found

        yield Bench(log, make)
        for producer in made:
            producer.close()
        if kind == "tcp-aio":
            asyncio.run_coroutine_threadsafe(far.close(), loop).result(10)


def test_a_record_arrives_as_it_was_sent(bench: Bench) -> None:
    topic = bench.topic()
    with bench.producer() as producer:
        sent = producer.send(
            topic, key=b"k", value=b"v", headers={"h": b"1", "n": None}, timestamp_ms=1_700_000_000_123
        ).result(20)
        producer.send(topic, None, key=b"gone", headers=[("a", b"1"), ("a", b"2")]).result(20)
    assert sent == RecordMetadata(topic, 0, 0, 1_700_000_000_123)
    first, second = bench.records(topic)
    assert (first.key, first.value, first.timestamp_ms) == (b"k", b"v", 1_700_000_000_123)
    assert first.headers == (("h", b"1"), ("n", None))
    assert (second.key, second.value) == (b"gone", None)
    assert second.headers == (("a", b"1"), ("a", b"2"))


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
        assert producer.send(topic, b"v", partition=3).result(20).partition == 3
        same = {producer.send(topic, b"v", key=b"abc").result(20).partition for _ in range(5)}
        assert len(same) == 1
        assert producer.partitions_for(topic) == [0, 1, 2, 3]
        spread = [producer.send(keyed, b"v").result(20).partition for _ in range(4)]
        assert sorted(spread) == [0, 1, 2, 3], "the topic's own partitioner rules"
        with pytest.raises(InvalidPartitions):
            producer.send(topic, b"v", partition=4)
    for given, expected in ((Last, {3}), (Last(), {3}), (lambda *_: 2, {2}), ("round_robin", {0, 1, 2, 3})):
        with bench.producer(partitioner_class=given) as producer:
            assert {producer.send(topic, b"v", key=b"k").result(20).partition for _ in range(4)} == expected
    with bench.producer(partitioner_class=lambda *_: 9) as producer, pytest.raises(InvalidPartitions):
        producer.send(topic, b"v")


def test_keys_meet_where_javas_client_puts_them(bench: Bench) -> None:
    topic = bench.topic(10)
    # murmur2 of Kafka's own tests (UtilsTest): 21 → -973932308, "foobar" → -790332482, "a-little-bit-long-string" …
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    with bench.producer() as producer:
        for key, value in hashes.items():
            assert producer.send(topic, b"v", key=key).result(20).partition == (value & 0x7FFFFFFF) % 10


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
        assert producer.send(topic, b"b").result(20).offset == 1


@pytest.mark.setting("key.serializer", "value.serializer")
def test_serializers(bench: Bench) -> None:
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
            offset = producer.send(topic, {"a": 1}, key="k").result(20).offset
        record = bench.records(topic)[offset]
        assert (record.key, record.value) == expected
    with bench.producer(value_serializer="string") as producer:
        producer.send(topic, None).result(20)
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
        producer.send(topic, b"v").result(20)
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
            producer.send(topic, b"v").result(20)
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


@pytest.mark.setting("max.block.ms")
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
    with bench.producer() as producer:
        with pytest.raises(MessageTooLarge):
            producer.send(topic, bytes(1000), key=b"k").result(20)
        good, bad = producer.send(topic, b"v", key=b"k"), producer.send(topic, b"v")
        with pytest.raises(KafkaError):
            bad.result(20)
        with pytest.raises(KafkaError, match="another record"):
            good.result(20)
        assert producer.send(topic, b"v", key=b"k").result(20).offset == 0


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
        assert producer.send(topic, b"v").result(20).offset == -1
    with bench.producer(acks=1) as producer:
        assert producer.send(topic, b"w").result(20).offset == 1
