"""`logkernel dump` beside Kafka's own tool, on files that Kafka wrote: line by line the same."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path

import pytest

import logkernel
from logkernel.cli import main
from logkernel.errors import CorruptMessage
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.vocabulary import Record

HERE = Path(__file__).parent
KAFKA = HERE / "kafka-4.3.1"
RECORD = HERE.parent / "record"
SEGMENT = "00000000000000000000"


def dumped(capsys, *arguments: str) -> str:
    assert main(["dump", *arguments]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("golden", "arguments"),
    [
        ("t.log", ["--print-data-log", f"t-0/{SEGMENT}.log"]),
        ("t.deep", ["--deep-iteration", f"t-0/{SEGMENT}.log"]),
        ("t.shallow", [f"t-0/{SEGMENT}.log"]),
        ("t.index", [f"t-0/{SEGMENT}.index"]),
        ("t.timeindex", [f"t-0/{SEGMENT}.timeindex"]),
        ("t.txnindex", [f"t-0/{SEGMENT}.txnindex"]),
        ("t.snapshot", ["t-0/00000000000000000037.snapshot"]),
        ("app.log", ["--print-data-log", f"app-0/{SEGMENT}.log"]),
        ("offsets", ["--offsets-decoder", f"__consumer_offsets-0/{SEGMENT}.log"]),
        ("offsets", ["--decode", f"__consumer_offsets-0/{SEGMENT}.log"]),
        ("transactions", ["--transaction-log-decoder", f"__transaction_state-0/{SEGMENT}.log"]),
        ("transactions", ["--decoder", "__transaction_state", f"__transaction_state-0/{SEGMENT}.log"]),
    ],
)
def test_every_line_is_that_of_kafkas_tool(golden, arguments, capsys, monkeypatch):
    monkeypatch.chdir(KAFKA)
    assert dumped(capsys, *arguments) == (HERE / f"{golden}.txt").read_text(errors="replace")


@pytest.mark.parametrize("name", ["v0-gzip", "v0-none", "v1-lz4", "v1-log-append", "v2-abort", "v2-transactional"])
def test_batches_of_every_magic(name, capsys, monkeypatch, tmp_path):
    shutil.copy(RECORD / f"java-{name}.bin", tmp_path / f"{SEGMENT}.log")
    monkeypatch.chdir(tmp_path)
    assert dumped(capsys, "--deep-iteration", f"{SEGMENT}.log") == (HERE / f"legacy.{name}.txt").read_text()


def test_a_snapshot_with_a_producer_that_wrote_no_batch(capsys, monkeypatch):
    monkeypatch.chdir(HERE)
    assert dumped(capsys, "00000000000000000009.snapshot") == (HERE / "odd.snapshot.txt").read_text()


def test_a_segment_that_ends_within_a_batch(capsys, monkeypatch, tmp_path):
    (tmp_path / f"{SEGMENT}.log").write_bytes((KAFKA / f"t-0/{SEGMENT}.log").read_bytes()[:700])
    monkeypatch.chdir(tmp_path)
    assert main(["dump", f"{SEGMENT}.log"]) == 1
    assert capsys.readouterr().out == (HERE / "cut.txt").read_text()


def test_no_more_than_was_asked_for(capsys, monkeypatch):
    monkeypatch.chdir(KAFKA)
    assert dumped(capsys, "--max-bytes", "700", f"t-0/{SEGMENT}.log") == (HERE / "max.txt").read_text()


def test_an_index_of_a_segment_too_small_for_one(capsys, monkeypatch, tmp_path):
    (tmp_path / f"{SEGMENT}.index").touch()
    monkeypatch.chdir(tmp_path)
    assert dumped(capsys, f"{SEGMENT}.index") == (HERE / "empty.index.txt").read_text()
    assert dumped(capsys, "--json", f"{SEGMENT}.index").count("\n") == 1


def test_json_says_the_same_as_the_columns(capsys, monkeypatch):
    monkeypatch.chdir(KAFKA)
    out = dumped(capsys, "--json", "--print-data-log", f"t-0/{SEGMENT}.log")
    rows = [json.loads(line) for line in out.splitlines()]
    batches = [row for row in rows if row["kind"] == "batch"]
    records = [row for row in rows if row["kind"] == "record"]
    assert [row["offset"] for row in records] == list(range(37))
    assert {row["compresscodec"] for row in batches} == {"none", "gzip", "snappy", "zstd"}
    assert all(row["isvalid"] for row in batches)
    (rotten,) = [row for row in records if row["offset"] == 4]
    assert rotten["valueBase64"] == "djQgw6n/AA=="
    assert records[1]["headers"] == [{"name": "h", "value": "1"}, {"name": "n", "value": None}]
    assert [row.get("endTxnMarker") for row in records if "endTxnMarker" in row] == ["COMMIT", "ABORT", "COMMIT"]


def test_files_that_kafkas_tool_does_not_know(capsys, monkeypatch):
    monkeypatch.chdir(KAFKA)
    names = ["t-0/leader-epoch-checkpoint", "t-0/partition.metadata", "meta.properties"]
    checkpoints = sorted(path.name for path in KAFKA.glob("*-checkpoint"))
    rows = [json.loads(line) for line in dumped(capsys, "--json", *names, *checkpoints).splitlines()]
    assert {"kind": "epoch", "epoch": 0, "startOffset": 0} in rows
    assert {"kind": "partition", "version": 0, "topicId": "WUksg-_iRxuiMtWbTCP1Tg"} in rows
    assert any(row["kind"] == "directory" and row["nodeId"] == 1 for row in rows)
    assert {"kind": "checkpoint", "topic": "t", "partition": 0, "offset": 37} in rows
    assert len([row for row in rows if row["kind"] == "file"]) == len(names) + len(checkpoints)


def test_a_rotten_batch_does_not_hide_those_behind_it(capsys, monkeypatch, tmp_path):
    data = bytearray((KAFKA / f"t-0/{SEGMENT}.log").read_bytes())
    data[161 + 100] ^= 1
    (tmp_path / f"{SEGMENT}.log").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert main(["dump", "--json", "--deep-iteration", f"{SEGMENT}.log"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["baseOffset"] for row in rows if row["kind"] == "batch" and not row["isvalid"]] == [6]
    assert [row["offset"] for row in rows if row["kind"] == "error"] == [6]
    assert [row["offset"] for row in rows if row["kind"] == "record"][-1] == 36


TOPICS = {"group": "__consumer_offsets", "transaction": "__transaction_state", "share": "__share_group_state"}


def test_every_kind_of_coordinator_record_is_decoded_as_kafka_decodes_it():
    kernel, kinds = Kernel(), set()
    for line in (HERE / "records.jsonl").read_text().splitlines():
        row = json.loads(line)
        decoder = kernel.decoder(TOPICS[row["family"]])
        record = Record(bytes.fromhex(row["keyHex"]), bytes.fromhex(row["valueHex"]))
        assert json.dumps(decoder.decode(record)) == json.dumps([row["key"], row["value"]])
        kinds.add((row["family"], row["key"]["type"], row["value"]["version"]))
    assert len(kinds) == 34


def test_bytes_that_mean_nothing_are_corrupt_and_nothing_worse():
    chance, kernel = random.Random(9), Kernel()
    for line in (HERE / "records.jsonl").read_text().splitlines():
        row = json.loads(line)
        decoder = kernel.decoder(TOPICS[row["family"]])
        key, value = bytes.fromhex(row["keyHex"]), bytearray.fromhex(row["valueHex"])
        for _ in range(20):
            rotten = bytearray(value[: chance.randint(0, len(value))])
            if rotten:
                rotten[chance.randrange(len(rotten))] = chance.randrange(256)
            with contextlib.suppress(CorruptMessage):
                decoder.decode(Record(key, bytes(rotten)))


def test_a_strangers_topic_is_decoded_by_its_plugin():
    class Plugin:
        @hookimpl
        def logkernel_decoder(self, topic):
            return self if topic == "__delays" else None

        def decode(self, record):
            return record.key.decode(), len(record.value)

    kernel = Kernel(plugins=[Plugin()])
    assert kernel.decoder("__delays").decode(Record(b"k", b"four")) == ("k", 4)
    assert kernel.decoder("orders") is None


def test_our_metadata_log_is_decoded(tmp_path, capsys):
    with logkernel.open(tmp_path / "data") as log:
        log.create_topic("orders", partitions=2)
    path = tmp_path / "data" / "__logkernel_metadata-0" / f"{SEGMENT}.log"
    rows = [json.loads(line) for line in dumped(capsys, "--json", "--decode", str(path)).splitlines()]
    keys = [row["key"] for row in rows if row["kind"] == "record"]
    assert {"type": "topic", "data": {"key": "orders"}} in keys
