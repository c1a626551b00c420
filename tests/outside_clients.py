"""Adapters: one small face over the unmodified outside clients, so that each can write what another reads.

Every client keeps its default settings save what a test names (acks, codec); consumers are told to
start at the earliest offset where they begin without a position.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from attrs import field, frozen

READ_TIMEOUT_S = 120.0


@frozen
class Sent:
    """A record as a test means it; `timestamp_ms` None leaves the choice to the client."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


@frozen
class Got:
    """A record as a client read it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = field(converter=tuple)

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
        return self.key, self.value, self.headers


class Client(Protocol):
    """`produce` returns (partition, offset) of each record, in order; `consume` reads partition 0 from `offset`."""

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, acks: str = "all", codec: str = "none"
    ) -> list[tuple[int, int]]: ...

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Got]: ...


class Confluent:
    """confluent-kafka: librdkafka. Idempotence is asked for as soon as the acks allow it."""

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, acks: str = "all", codec: str = "none"
    ) -> list[tuple[int, int]]:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "acks": acks}
        producer = Producer({**settings, "enable.idempotence": acks == "all"})
        placed: list[Any] = [None] * len(records)
        for index, record in enumerate(records):

            def delivered(error: Any, message: Any, index: int = index) -> None:
                placed[index] = error or (message.partition(), message.offset())

            extra = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
            headers = list(record.headers)
            producer.produce(
                topic, record.value, record.key, partition=0, headers=headers, on_delivery=delivered, **extra
            )
        assert producer.flush(READ_TIMEOUT_S) == 0
        assert all(isinstance(place, tuple) for place in placed), placed
        return placed

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Got]:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": bootstrap, "group.id": f"g-{uuid.uuid4()}"}
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(topic, 0, offset)])
        got: list[Got] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(got) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(got), timeout=1.0):
                assert message.error() is None, message.error()
                got.append(confluent_got(message))
        consumer.close()
        return got


def confluent_got(message: Any) -> Got:
    """A confluent-kafka message as `Got`."""
    headers = message.headers() or ()
    place = message.partition(), message.offset(), message.timestamp()[1]
    return Got(*place, message.key(), message.value(), headers)


class KafkaPython:
    """kafka-python."""

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, acks: str = "all", codec: str = "none"
    ) -> list[tuple[int, int]]:
        from kafka import KafkaProducer

        settings: dict[str, Any] = {} if acks == "all" else {"acks": int(acks)}
        codec_name = None if codec == "none" else codec
        producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec_name, **settings)
        futures = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=0,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        producer.flush(READ_TIMEOUT_S)
        placed = [future.get(READ_TIMEOUT_S) for future in futures]
        producer.close()
        return [(place.partition, place.offset) for place in placed]

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Got]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=bootstrap)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), offset)
        got: list[Got] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while len(got) < count and time.monotonic() < deadline:
            for messages in consumer.poll(1000).values():
                got += [Got(m.partition, m.offset, m.timestamp, m.key, m.value, m.headers) for m in messages]
        consumer.close()
        return got[:count]


class AioKafka:
    """aiokafka, driven by a loop of its own for each call."""

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, acks: str = "all", codec: str = "none"
    ) -> list[tuple[int, int]]:
        return asyncio.run(self._produce(bootstrap, topic, records, acks, codec))

    async def _produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], acks: str, codec: str
    ) -> list[tuple[int, int]]:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all" if acks == "all" else int(acks),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=acks == "all",
        )
        async with producer:
            futures = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            placed = await asyncio.gather(*futures)
        return [(place.partition, place.offset) if place is not None else (0, -1) for place in placed]

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Got]:
        return asyncio.run(self._consume(bootstrap, topic, count, offset))

    async def _consume(self, bootstrap: str, topic: str, count: int, offset: int) -> list[Got]:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
        got: list[Got] = []
        async with consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), offset)
            deadline = time.monotonic() + READ_TIMEOUT_S
            while len(got) < count and time.monotonic() < deadline:
                batches = await consumer.getmany(timeout_ms=1000)
                for messages in batches.values():
                    got += [Got(m.partition, m.offset, m.timestamp, m.key, m.value, m.headers) for m in messages]
        return got[:count]


class Java:
    """The Java client, through `Interop.java`; records cross as lines of JSON with base64 bytes."""

    def __init__(self, command: Callable[..., list[str]]) -> None:
        self.command = command

    def run(self, *arguments: str, stdin: str = "") -> list[Any]:
        """Run one command of the program; each line of its output is JSON."""
        done = subprocess.run(self.command(*arguments), input=stdin, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-4000:]
        return [json.loads(line) for line in done.stdout.splitlines()]

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *, acks: str = "all", codec: str = "none"
    ) -> list[tuple[int, int]]:
        lines = [
            " ".join(
                [
                    encoded(record.key),
                    encoded(record.value),
                    str(-1 if record.timestamp_ms is None else record.timestamp_ms),
                    *(f"{encoded(name.encode())}:{encoded(value)}" for name, value in record.headers),
                ]
            )
            for record in records
        ]
        rows = self.run("produce", bootstrap, topic, f"acks={acks},compression.type={codec}", stdin="\n".join(lines))
        return [(row["partition"], row["offset"]) for row in rows]

    def consume(self, bootstrap: str, topic: str, count: int, *, offset: int = 0) -> list[Got]:
        rows = self.run("consume", bootstrap, topic, str(count), str(offset))
        return [
            Got(
                row["partition"],
                row["offset"],
                row["timestamp"],
                decoded(row["key"]),
                decoded(row["value"]),
                [(base64.b64decode(name).decode(), decoded(value)) for name, value in row["headers"]],
            )
            for row in rows
        ]


def encoded(data: bytes | None) -> str:
    """Base64, "!" for the empty string and "-" for null."""
    return "-" if data is None else base64.b64encode(data).decode() or "!"


def decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


PYTHON_CLIENTS: dict[str, Client] = {
    "confluent-kafka": Confluent(),
    "kafka-python": KafkaPython(),
    "aiokafka": AioKafka(),
}
