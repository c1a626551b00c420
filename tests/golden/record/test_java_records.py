"""Batches that Apache Kafka's own classes wrote (`GoldenRecords.java`): we read what Kafka reads."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from attrs import define, field

from logkernel.contracts import Codec
from logkernel.record.batch import batches
from logkernel.record.control import EndTxnMarker, parse_marker
from logkernel.record.decode import decode_all, decode_batch
from logkernel.record.encode import encode_batch
from logkernel.record.legacy import read_message_set, to_v2
from logkernel.record.validate import WritePolicy, check_produce, check_stored
from logkernel.vocabulary import Record

HERE = Path(__file__).parent
CodecFor = Callable[[int], Codec]


@define
class Golden:
    """One file: its bytes, and what Kafka says of its batches and records."""

    name: str
    data: bytes
    heads: list[list[str]] = field(factory=list)
    records: list[list[str]] = field(factory=list)


def load() -> dict[str, Golden]:
    found: dict[str, Golden] = {}
    for line in (HERE / "batches.txt").read_text(encoding="utf-8").splitlines():
        kind, *words = line.split(" ")
        if kind == "batch":
            golden = found.setdefault(words[0], Golden(words[0], (HERE / f"{words[0]}.bin").read_bytes()))
            golden.heads.append(words[1:])
        else:
            golden.records.append(words)
    return found


GOLDENS = load()
V2 = [name for name in GOLDENS if "-v2-" in name]
LEGACY = [name for name in GOLDENS if "-v2-" not in name]


def shown(blob: bytes | None) -> str:
    if blob is None:
        return "null"
    return f"sha256:{sha256(blob).hexdigest()}" if len(blob) > 1000 else f"x{blob.hex()}"


def words(record: Record) -> list[str]:
    headers = [f"{name}={shown(value)}" for name, value in record.headers]
    return [str(record.offset), str(record.timestamp_ms), shown(record.key), shown(record.value), *headers]


def test_nothing_is_missing() -> None:
    assert len(V2) == 9
    assert len(LEGACY) == 9


@pytest.mark.parametrize("name", GOLDENS)
def test_records_are_those_that_kafka_reads(name: str, codec_for: CodecFor) -> None:
    golden = GOLDENS[name]
    assert [words(record) for record in decode_all(golden.data, codec_for)] == golden.records


@pytest.mark.parametrize("name", GOLDENS)
def test_facts_are_those_that_kafka_reads(name: str) -> None:
    golden = GOLDENS[name]
    facts = list(batches(golden.data))
    assert sum(each.size for each in facts) == len(golden.data)
    assert len(facts) == len(golden.heads)
    for each, head in zip(facts, golden.heads, strict=True):
        magic, codec_id, kind, base, last, epoch, pid, pid_epoch, sequence, txn, control, newest = head
        assert (each.magic, each.codec_id, each.last_offset) == (int(magic), int(codec_id), int(last))
        assert each.is_log_append_time == (kind == "LogAppendTime")
        assert (each.leader_epoch, each.producer_id, each.producer_epoch) == (int(epoch), int(pid), int(pid_epoch))
        assert (each.base_sequence, each.max_timestamp_ms) == (int(sequence), int(newest))
        assert check_stored(golden.data, each.position) == each
        if each.magic == 2:
            assert each.base_offset == int(base)
            assert [each.is_transactional, each.is_control] == [txn == "true", control == "true"]


@pytest.mark.parametrize("name", V2)
def test_our_encoder_writes_kafkas_bytes(name: str, codec_for: CodecFor) -> None:
    """Byte for byte, but for what a compressor is free to choose; then the plain section is equal."""
    golden = GOLDENS[name]
    (facts,) = batches(golden.data)
    records = decode_batch(golden.data, facts, codec_for, verify_crc=True)
    if facts.is_log_append_time:  # the records' own times are gone from the decoded form
        assert {record.timestamp_ms for record in records} == {facts.max_timestamp_ms}
        return
    ours = encode_batch(
        records,
        base_offset=facts.base_offset,
        leader_epoch=facts.leader_epoch,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        base_sequence=facts.base_sequence,
        transactional=facts.is_transactional,
        control=facts.is_control,
        codec=codec_for(facts.codec_id) if facts.codec_id else None,
    )
    if facts.codec_id == 0:
        assert ours == golden.data
        return
    codec = codec_for(facts.codec_id)
    assert ours[21:61] == golden.data[21:61]
    assert codec.decompress(ours[61:], 2**24) == codec.decompress(golden.data[61:], 2**24)


@pytest.mark.parametrize(("name", "offset", "committed", "epoch"), [("commit", 77, True, 9), ("abort", 78, False, 10)])
def test_transaction_markers_are_parsed_and_skipped(
    name: str, offset: int, committed: bool, epoch: int, codec_for: CodecFor
) -> None:
    data = GOLDENS[f"java-v2-{name}"].data
    (record,) = decode_all(data, codec_for)
    assert record.offset == offset
    assert parse_marker(record) == EndTxnMarker(committed, epoch)
    assert decode_all(data, codec_for, skip_control=True) == []


@pytest.mark.parametrize("name", LEGACY)
def test_legacy_sets_become_v2(name: str, codec_for: CodecFor) -> None:
    golden = GOLDENS[name]
    messages = read_message_set(golden.data, codec_for)
    kept = decode_all(to_v2(messages), codec_for)
    assert [words(record) for record in kept] == golden.records
    moved = decode_all(to_v2(messages, base_offset=7, codec=codec_for(1)), codec_for)
    assert [record.offset for record in moved] == [7 + index for index in range(len(golden.records))]


@pytest.mark.parametrize("name", [name for name in LEGACY if not name.endswith("log-append")])
def test_legacy_sets_are_taken_from_producers(name: str, codec_for: CodecFor) -> None:
    golden = GOLDENS[name]
    checked = check_produce(golden.data, WritePolicy(), codec_for, 1_700_000_000_000, allow_legacy=True)
    (facts,) = checked.batches
    assert facts.codec_id == int(golden.heads[0][1])
    records = decode_all(checked.data, codec_for)
    assert [words(record)[1:] for record in records] == [record[1:] for record in golden.records]


@pytest.mark.parametrize("name", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_taken_as_they_come(name: str, codec_for: CodecFor) -> None:
    data = bytearray(GOLDENS[f"java-v2-{name}"].data)
    data[:8] = bytes(8)
    before = bytes(data)
    checked = check_produce(data, WritePolicy(), codec_for, 1_700_000_000_000)
    assert checked.data is data
    assert bytes(data) == before
