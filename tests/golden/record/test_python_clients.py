"""kafka-python and aiokafka, both ways: we read what their builders write, they read what ours writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel.contracts import Codec
from logkernel.record.batch import batches
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch
from logkernel.record.legacy import read_message_set
from logkernel.record.validate import WritePolicy, check_produce
from logkernel.vocabulary import Record

CodecFor = Callable[[int], Codec]
T0 = 1_700_000_000_000
RECORDS = [
    Record(b"key", b"value", (), T0),
    Record(None, b"no key", (("h", b"1"), ("null", None), ("é漢", b"")), T0 - 1000),
    Record(b"tombstone", None, (), T0 + 9_000_000_000),
    Record(b"", b"", (("", b"\x00\xff"),), T0),
    *(Record(b"k%d" % index, bytes([index]) * index * 7, (), T0 + index) for index in range(100)),
]
CLIENTS = ["kafka", "aiokafka"]
CODECS = {"plain": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def room(client: str, name: str) -> Any:
    return pytest.importorskip(f"{client}.record.{name}")


def unsupported(client: str, codec_id: int) -> bool:
    """kafka-python takes snappy from a package that needs a C library; aiokafka covers that codec."""
    return client == "kafka" and codec_id == 2


COMBINATIONS = [
    (client, name) for client in CLIENTS for name, codec_id in CODECS.items() if not unsupported(client, codec_id)
]


@pytest.mark.parametrize(("client", "name"), COMBINATIONS)
@pytest.mark.parametrize("transactional", [False, True])
def test_we_read_theirs(client: str, name: str, transactional: bool, codec_for: CodecFor) -> None:
    codec_id = CODECS[name]
    builder = room(client, "default_records").DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec_id,
        is_transactional=transactional,
        producer_id=4242 if transactional else -1,
        producer_epoch=3 if transactional else -1,
        base_sequence=17 if transactional else -1,
        batch_size=10**6,
    )
    for offset, record in enumerate(RECORDS):
        assert builder.append(
            offset, record.timestamp_ms, record.key, record.value, [tuple(header) for header in record.headers]
        )
    data = bytearray(builder.build())
    checked = check_produce(data, WritePolicy(), codec_for, T0)
    assert checked.data is data
    (facts,) = checked.batches
    assert (facts.codec_id, facts.is_transactional, facts.count) == (codec_id, transactional, len(RECORDS))
    assert (facts.producer_id, facts.producer_epoch, facts.base_sequence) == (
        (4242, 3, 17) if transactional else (-1,) * 3
    )
    assert facts.max_timestamp_ms == T0 + 9_000_000_000
    found = decode_all(data, codec_for)
    assert [record.offset for record in found] == list(range(len(RECORDS)))
    for record, expected in zip(found, RECORDS, strict=True):
        record.offset = -1
        assert record == expected


@pytest.mark.parametrize(("client", "name"), COMBINATIONS)
def test_they_read_ours(client: str, name: str, codec_for: CodecFor) -> None:
    codec_id = CODECS[name]
    data = encode_batch(
        RECORDS,
        base_offset=500,
        leader_epoch=2,
        producer_id=7,
        producer_epoch=1,
        base_sequence=0,
        transactional=True,
        codec=codec_for(codec_id) if codec_id else None,
    )
    batch = room(client, "default_records").DefaultRecordBatch(data)
    assert batch.validate_crc()
    assert (batch.base_offset, batch.producer_id, batch.is_transactional) == (500, 7, True)
    assert (batch.compression_type, batch.next_offset) == (codec_id, 500 + len(RECORDS))
    for offset, (theirs, ours) in enumerate(zip(batch, RECORDS, strict=True), 500):
        assert (theirs.offset, theirs.timestamp, theirs.key, theirs.value) == (
            offset,
            ours.timestamp_ms,
            ours.key,
            ours.value,
        )
        assert [tuple(header) for header in theirs.headers] == list(ours.headers)


# The clients write no lz4 in magic 0; Java's golden covers it.
LEGACY = [
    (*pair, magic) for pair in COMBINATIONS for magic in (0, 1) if pair[1] != "zstd" and (pair[1], magic) != ("lz4", 0)
]


@pytest.mark.parametrize(("client", "name", "magic"), LEGACY)
def test_we_read_their_legacy_messages(client: str, name: str, magic: int, codec_for: CodecFor) -> None:
    builder = room(client, "legacy_records").LegacyRecordBatchBuilder(
        magic=magic, compression_type=CODECS[name], batch_size=10**6
    )
    for offset, record in enumerate(RECORDS):
        assert builder.append(offset, record.timestamp_ms, record.key, record.value)
    data = bytes(builder.build())
    if magic == 1 and CODECS[name]:  # a producer leaves 0 there, a broker writes the offset of the last
        assert [record.offset for record in decode_all(data, codec_for)] == list(range(len(RECORDS)))
        data = (900 + len(RECORDS) - 1).to_bytes(8, "big") + data[8:]
    messages = read_message_set(data, codec_for)
    first = 900 if magic == 1 and CODECS[name] else 0
    assert messages.codec_id == CODECS[name]
    for offset, (record, expected) in enumerate(zip(messages.records, RECORDS, strict=True)):
        assert (record.key, record.value, record.offset) == (expected.key, expected.value, first + offset)
        assert record.timestamp_ms == (expected.timestamp_ms if magic else -1)
    assert all(facts.magic == magic for facts in batches(data))
