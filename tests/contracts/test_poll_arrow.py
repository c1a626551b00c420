"""`poll_arrow` gives what `poll` gives, as columns: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import logkernel
import logkernel.record.columns as columns_room
from logkernel import aio
from logkernel.client.consumer.arrow import COLUMNS, ArrowTaker
from logkernel.client.consumer.fetcher import Fetcher
from logkernel.client.consumer.positions import Chunk, Part
from logkernel.client.settings.consumer import load_consumer
from logkernel.errors import ConfigError, CorruptMessage
from logkernel.kernel import Kernel
from logkernel.plugins.transport.tcp.response_buffer import is_held
from logkernel.record.encode import encode_batch
from logkernel.record.pure_columns import ColumnScan
from logkernel.vocabulary import Record, TopicPartition

pa = pytest.importorskip("pyarrow")

ALL = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")


@pytest.fixture(params=["compiled", "pure"])
def scan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(columns_room, "scan_type", ColumnScan)
    elif not columns_room.COMPILED:
        pytest.skip("the extension is not built")


@pytest.fixture(params=["embedded", "tcp"])
def log(request: pytest.FixtureRequest) -> Iterator[Any]:
    """(the log, how to make a consumer)"""
    with logkernel.open(group_initial_rebalance_delay_ms=0) as made:
        if request.param == "embedded":
            yield made, made.consumer
        else:
            with logkernel.connect(made.listen()) as remote:
                yield made, remote.consumer


def rows_of(consumer: Any, count: int, **details: Any) -> list[dict[str, Any]]:
    """At least so many rows, each a dictionary."""
    found: list[dict[str, Any]] = []
    end_s = time.monotonic() + 180
    while len(found) < count:
        assert time.monotonic() < end_s, f"{len(found)} of {count} rows"
        batch = consumer.poll_arrow(1, **details)
        assert isinstance(batch, pa.RecordBatch)
        batch.validate(full=True)
        found += batch.to_pylist()
    return found


def fill(log: Any, make: Callable[..., Any], codec: str, partitions: int = 2, count: int = 300) -> None:
    log.create_topic("t", partitions)
    with log.producer(compression_type=codec, batch_size=2000) as producer:
        for number in range(count):
            producer.send(
                "t",
                None if number % 7 == 0 else b"v%d" % number * (number % 5),
                key=None if number % 3 == 0 else b"k%d" % number,
                headers=[("h", b"%d" % number), ("n", None)] if number % 4 == 0 else [],
                partition=number % partitions,
                timestamp_ms=1_700_000_000_000 + number,
            )


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_the_same_rows_as_poll(log: Any, scan: None, codec: str) -> None:
    kernel, make = log
    fill(kernel, make, codec)
    with make("t", auto_offset_reset="earliest") as consumer, make("t", auto_offset_reset="earliest") as plain:
        rows = rows_of(consumer, 300, columns=ALL)
        records: list[Any] = []
        while len(records) < 300:
            records += plain.poll(1)
        assert consumer.lag == plain.lag
        positions = [consumer.position(("t", index)) for index in (0, 1)]
        assert positions == [150, 150]
    assert len(rows) == 300
    found = {(row["partition"], row["offset"]): row for row in rows}
    for record in records:
        row = found[(record.partition, record.offset)]
        assert (row["topic"], row["key"], row["value"]) == (record.topic, record.key, record.value)
        assert round(row["timestamp"].timestamp() * 1000) == record.timestamp_ms
        assert row["timestampType"] == 0
        assert tuple((h["key"], h["value"]) for h in row["headers"] or ()) == record.headers
    assert [row["offset"] for row in rows if row["partition"] == 0] == list(range(150)), "order"


def test_the_schema_is_spark_s_also_without_rows(log: Any) -> None:
    kernel, make = log
    kernel.create_topic("t", 1)
    with make("t") as consumer:
        empty = consumer.poll_arrow(0.05)
        assert empty.num_rows == 0
        kernel.append("t", b"v", key=b"k")
        consumer.seek_to_beginning()
        batch = consumer.poll_arrow(10)
        assert batch.schema == empty.schema
        assert batch.schema.names == list(ALL[:7])
        assert str(batch.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
        consumer.seek_to_beginning()
        assert consumer.poll_arrow(10, columns=("value",)).to_pylist() == [{"value": b"v"}]
        with pytest.raises(ConfigError, match="did you mean 'value'"):
            consumer.poll_arrow(1, columns=("valeu",))


def test_commits_and_seeks_as_with_poll(log: Any, scan: None) -> None:
    kernel, make = log
    kernel.create_topic("t", 1)
    for start in range(0, 100, 10):
        kernel.append_many("t", [Record(None, b"%d" % (start + index)) for index in range(10)])
    with make("t", group="g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        first = consumer.poll_arrow(10, max_rows=25)
        assert 25 <= first.num_rows <= 30
        consumer.commit()
        assert consumer.committed([("t", 0)])[("t", 0)].offset == first.num_rows
        consumer.seek(("t", 0), 43)
        assert rows_of(consumer, 57)[0]["offset"] == 43, "in the midst of a batch"
    with make("t", group="g", auto_offset_reset="earliest") as consumer:
        assert rows_of(consumer, 100 - first.num_rows)[0]["offset"] == first.num_rows
    with make("t", group="g") as consumer:
        assert consumer.committed([("t", 0)])[("t", 0)].offset == 100, "automatic commits too"


def test_polls_of_both_kinds_follow_one_another(log: Any, scan: None) -> None:
    kernel, make = log
    kernel.create_topic("t", 1)
    kernel.append_many("t", [Record(None, b"%d" % index) for index in range(20)])
    kernel.append_many("t", [Record(None, b"%d" % index) for index in range(20, 40)])
    with make("t", auto_offset_reset="earliest", max_poll_records=5) as consumer:
        offsets = [row.offset for row in consumer.poll(10)]
        offsets += [row["offset"] for row in consumer.poll_arrow(10, max_rows=1).to_pylist()]
        assert offsets == list(range(20))
        offsets += [row.offset for row in consumer.poll(10)]
        offsets.append(next(iter(consumer)).offset)
        offsets += [row["offset"] for row in rows_of(consumer, 14)]
    assert offsets == list(range(40)), "what iteration held back came again"


def test_only_what_is_committed(log: Any, scan: None) -> None:
    kernel, make = log
    kernel.create_topic("t", 1)
    with kernel.producer(transactional_id="x") as producer:
        producer.init_transactions()
        for value, commits in ((b"yes", True), (b"no", False), (b"too", True), (b"not", False), (b"last", True)):
            producer.begin_transaction()
            producer.send("t", value)
            producer.flush()
            producer.commit_transaction() if commits else producer.abort_transaction()
    with make("t", auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        assert [row["value"] for row in rows_of(consumer, 3)] == [b"yes", b"too", b"last"]
        assert consumer.poll_arrow(0.1).num_rows == 0
        assert consumer.position(("t", 0)) == 10, "behind the last marker"
    with make("t", auto_offset_reset="earliest") as consumer:
        assert len(rows_of(consumer, 5)) == 5


def test_what_is_before_a_rotten_batch_comes_before_its_error(
    log: Any, scan: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logkernel.client.consumer.positions import Chunk

    kernel, make = log
    kernel.create_topic("t", 1)
    for start in (0, 10, 20):
        kernel.append_many("t", [Record(None, b"%d" % (start + index)) for index in range(10)])
    real = Chunk.data.fget
    assert real is not None

    def rotten(chunk: Chunk) -> bytes:
        data = bytearray(real(chunk))
        at = data.find(b"\x0415\x00")  # the length goes along: a checksum, too, holds a b"15" now and then
        if at > 0:
            data[at + 1] ^= 0xFF
        return bytes(data)

    monkeypatch.setattr(Chunk, "data", property(rotten))
    with make("t", auto_offset_reset="earliest") as consumer:
        assert [row["offset"] for row in rows_of(consumer, 10)] == list(range(10))
        for _ in range(2):
            with pytest.raises(CorruptMessage, match="offset 10"):
                consumer.poll_arrow(10)
        consumer.seek(("t", 0), 20)
        assert [row["offset"] for row in rows_of(consumer, 10)] == list(range(20, 30))


def test_the_leader_epoch_goes_along(log: Any) -> None:
    kernel, make = log
    kernel.create_topic("t", 1)
    kernel.append("t", b"v")
    with make("t", group="g", auto_offset_reset="earliest") as consumer:
        rows_of(consumer, 1)
        consumer.commit()
        assert consumer.committed([("t", 0)])[("t", 0)].leader_epoch == 0


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_poll_arrow_can_be_awaited(kind: str) -> None:
    async def work(log: logkernel.EmbeddedLog) -> None:
        far: Any = aio.AsyncLog(log) if kind == "embedded" else aio.connect(log.listen())
        async with far.consumer("t", group="g", auto_offset_reset="earliest") as consumer:
            batch = await consumer.poll_arrow(10, columns=("offset", "value"))
            assert batch.to_pydict() == {"offset": [0, 1], "value": [b"a", b"b"]}
        if kind == "tcp":
            await far.close()

    with logkernel.open(group_initial_rebalance_delay_ms=0) as log:
        log.create_topic("t", 1)
        log.append_many("t", [Record(None, b"a"), Record(None, b"b")])
        asyncio.run(work(log))


def test_fetched_bytes_are_let_go_with_their_last_row() -> None:
    """Not when the garbage collector comes by: a receive buffer waits for it, and new ones cost more than the copy."""
    part = Part(TopicPartition("t", 0))
    part.place(0)
    core = SimpleNamespace(random=Random(1))
    fetcher = Fetcher(core, load_consumer({}), Kernel().codec_for)  # type: ignore[arg-type]
    fetcher.parts[part.name] = part
    data = bytearray(encode_batch([Record(None, b"v") for _ in range(5)]))
    part.chunks.append(Chunk(part.name, memoryview(data), [], Kernel().codec_for, True))
    fetcher.line[part] = None
    gc.disable()
    try:
        assert is_held(data)
        assert ArrowTaker(fetcher).take(COLUMNS, 100).num_rows == 5
        assert not is_held(data)
    finally:
        gc.enable()
