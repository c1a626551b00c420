"""Segments that go, change and rot while they are read; several log.dirs; the folder of Apache Kafka."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.errors import OffsetOutOfRange
from logkernel.record.columns import CorruptRecord
from logkernel.storage import reader as storage_reader
from logkernel.table import COLUMNS, HEADERS, Bounds, open_source
from logkernel.vocabulary import Record, TopicPartition

pytest.importorskip("pyarrow")
KAFKA = Path(__file__).resolve().parents[2] / "golden" / "storage" / "kafka-4.3.1"
JAVA, P = TopicPartition("java.topic", 1), TopicPartition("t", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def fill(log: Any, segments: int = 6, **settings: Any) -> None:
    """Ten records a segment, each its own batch: offset n has key k(n % 5) and value n."""
    log.create_topic("t", segment_ms=1000, index_interval_bytes=200, **settings)
    for number in range(10 * segments):
        record = Record(b"k%d" % (number % 5), b"%d" % number, timestamp_ms=1000 + number // 10 * 5000 + number % 10)
        log.append_many("t", [record])


def offsets(batches: Any) -> list[int]:
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


def logs(folder: Path) -> list[Path]:
    return sorted((folder / "t-0").glob("*.log"))


@pytest.fixture
def few_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_reader, "HELD_SEGMENTS", 2)
    monkeypatch.setattr(storage_reader, "NAP_S", 0.001)


def test_removed_segments_that_are_held_are_read_on(folder: Path) -> None:
    with logkernel.open(folder) as log:
        fill(log)
        source = open_source(path=folder)
        assert len(logs(folder)) == 6
        scan = source.scan(P, 0, 60, columns=("offset",), batch_rows=5)
        found = offsets([next(scan)])
        for path in logs(folder)[:-1]:
            path.unlink()
        assert found + offsets(scan) == list(range(60))


def test_removed_segments_that_were_not_held_are_a_loss(folder: Path, few_held: None) -> None:
    with logkernel.open(folder) as log:
        fill(log)
        scan = open_source(path=folder).scan(P, 0, 60, columns=("offset",), batch_rows=5)
        found = offsets([next(scan)])
        for path in logs(folder)[:4]:
            path.unlink()
        with pytest.raises(OffsetOutOfRange, match=r": 20 is below the first segment, 40"):
            found += offsets(scan)


def test_what_compaction_leaves_out_is_no_loss(folder: Path, few_held: None) -> None:
    with logkernel.open(folder) as log:
        fill(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms=2**62)
        scan = open_source(path=folder).scan(P, 0, 60, columns=("offset",), batch_rows=5)
        found = offsets([next(scan)])
        log.compact("t")
        assert len(logs(folder)) < 6
        found += offsets(scan)
        assert found[:20] == list(range(20)), "two segments were held"
        kept = [record.offset for record in log.read("t")]
        assert found[20:] == [offset for offset in kept if offset >= 20]
        assert len(found) < 60
        assert offsets(open_source(path=folder).scan(P, 0, 60)) == kept


@pytest.mark.parametrize("held", [1, 2, 32])
def test_offsets_that_no_segment_has_are_no_loss(folder: Path, monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    monkeypatch.setattr(storage_reader, "HELD_SEGMENTS", held)
    with logkernel.open(folder) as log:
        fill(log)
    for path in (logs(folder)[1], logs(folder)[3]):
        path.unlink()
    source = open_source(path=folder)
    left = [offset for offset in range(60) if offset // 10 not in (1, 3)]
    assert offsets(source.scan(P, 0, 60)) == left
    assert offsets(source.scan(P, 15, 45)) == [offset for offset in left if 15 <= offset < 45]


def test_a_merged_segment_is_gone_on_with_in_its_middle(folder: Path, few_held: None) -> None:
    """Cleaning puts several segments into the first one's place; what was read of it does not come again."""
    with logkernel.open(folder) as log:
        fill(log)
        scan = open_source(path=folder).scan(P, 0, 60, columns=("offset",), batch_rows=5)
        found = offsets([next(scan)])
        first, *others = logs(folder)[:5]
        merged = first.with_suffix(".swap")
        merged.write_bytes(b"".join(path.read_bytes() for path in (first, *others)))
        first.with_suffix(".index").unlink()
        for path in others:
            path.unlink()
        merged.rename(first)
        assert found + offsets(scan) == list(range(60))


def test_a_batch_that_is_being_written_ends_a_scan(folder: Path) -> None:
    with logkernel.open(folder) as log:
        fill(log, segments=2)
    last = logs(folder)[-1]
    whole = last.read_bytes()
    last.write_bytes(whole[:-3])
    assert offsets(open_source(path=folder).scan(P, 0, 20)) == list(range(19))
    last.write_bytes(whole + bytes(5000))
    assert offsets(open_source(path=folder).scan(P, 0, 21)) == list(range(20))
    (folder / "replication-offset-checkpoint").unlink()
    assert open_source(path=folder).bounds(P) == Bounds(0, 20)


@pytest.mark.parametrize("damage", ["cut", "zeros", "flip", "length"])
def test_a_rotten_segment_is_told_by_file_and_offset(folder: Path, damage: str) -> None:
    with logkernel.open(folder) as log:
        fill(log, segments=3)
    first = logs(folder)[0]
    data = bytearray(first.read_bytes())
    size = len(data) // 10
    if damage == "cut":
        del data[-3:]
    elif damage == "zeros":
        data[-size:] = bytes(size)
    elif damage == "flip":
        data[5 * size + 65] ^= 1
    else:
        data[5 * size + 8] = 0xFF
    first.write_bytes(data)
    place = {"cut": 9, "zeros": 9, "flip": 5, "length": 5}[damage] * size
    with pytest.raises(CorruptRecord, match=rf"^{first}, byte {place}[,:]"):
        list(open_source(path=folder).scan(P, 0, 30))


def test_a_batch_larger_than_the_buffer(folder: Path) -> None:
    with logkernel.open(folder) as log:
        log.create_topic("t", max_message_bytes=10_000_000)
        for size in (10, 5_000_000, 10):
            log.append("t", bytes(size))
        (values,) = open_source(path=folder).scan(P, 0, 3, columns=("value",), batch_bytes=1 << 30)
        assert [len(value) for value in values["value"].to_pylist()] == [10, 5_000_000, 10]


def test_late_segments_are_found_by_their_time_index(folder: Path) -> None:
    with logkernel.open(folder) as log:
        fill(log)
        source = open_source(path=folder)
        assert storage_reader.open_reader(str(folder / "t-0")).first_since(0, 21_003) >= 40
        for path in logs(folder)[:4]:
            os.truncate(path, 0)  # nobody looks at them
        assert offsets(source.scan(P, 0, 60, timestamps=(21_003, 26_002))) == [*range(43, 50), 50, 51]


def test_several_folders_and_where_a_partition_went(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with logkernel.open(f"{one},{two}") as log:
        log.create_topic("t", 4)
        for index in range(4):
            log.append("t", b"%d" % index, partition=index)
    for source in (open_source(path=[str(one), str(two)]), open_source(path=f"{one},{two}")):
        assert source.topics() == {"t": 4}
        for index in range(4):
            (batch,) = source.scan(TopicPartition("t", index), 0, 1, columns=("value",))
            assert batch["value"].to_pylist() == [b"%d" % index]
    home, other = (one, two) if (one / "t-0").is_dir() else (two, one)
    (home / "t-0").rename(other / "t-0")
    assert offsets(source.scan(P, 0, 1)) == [0], "it was moved between two looks"


def test_checkpoints_bound_what_is_read_of_a_dead_folder(folder: Path) -> None:
    with logkernel.open(folder) as log:
        fill(log, segments=2)
    (folder / "replication-offset-checkpoint").write_text("0\n1\nt 0 15\n")
    (folder / "log-start-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    source = open_source(path=folder)
    assert source.bounds(P) == Bounds(4, 15)
    with pytest.raises(OffsetOutOfRange, match="3 is below the log start, 4"):
        source.scan(P, 3, 15)
    (folder / "replication-offset-checkpoint").write_text("rubbish")
    (folder / "log-start-offset-checkpoint").unlink()
    assert source.bounds(P) == Bounds(0, 20)


def test_an_end_that_was_seen_stays_where_the_checkpoint_is_older(folder: Path) -> None:
    with logkernel.open(folder) as log:
        fill(log, segments=2)
    (folder / "replication-offset-checkpoint").write_text("0\n1\nt 0 15\n")
    source = open_source(path=folder)
    for level in ("read_uncommitted", "read_committed"):
        for seen, end in ((0, 15), (12, 15), (18, 18), (99, 20)):
            assert source.bounds_of([P], level, {P: seen}) == {P: Bounds(0, end)}


def test_a_folder_of_apache_kafka(tmp_path: Path) -> None:
    """Its values were read by Kafka's own tools: tests/golden/storage."""
    name = TopicPartition("java.topic", 0)
    source = open_source(path=KAFKA)
    assert source.topics() == {"empty-one": 1, "java.topic": 1}
    assert source.bounds(name) == Bounds(0, 56)
    assert source.bounds(name, "read_committed") == Bounds(0, 56)
    every = offsets(source.scan(name, 0, 56, columns=(*COLUMNS, HEADERS)))
    committed = offsets(source.scan(name, 0, 56, isolation="read_committed"))
    control, aborted = {43, 47, 51, 55}, {44, 45, 46, 52, 53, 54}
    assert set(range(56)) - set(every) == control
    assert set(every) - set(committed) == aborted
    cuts = source.cuts(name, 0, 56, 4)
    assert all(0 < cut < 56 for cut in cuts)
    parts = [offsets(source.scan(name, *pair)) for pair in zip([0, *cuts], [*cuts, 56], strict=True)]
    assert [offset for part in parts for offset in part] == every
    copy = tmp_path / "copy"
    shutil.copytree(KAFKA, copy)
    for path in (copy / "java.topic-0").glob("*index"):
        if path.suffix != ".txnindex":
            path.unlink()
    bare = open_source(path=copy)
    assert offsets(bare.scan(name, 30, 56, isolation="read_committed")) == [each for each in committed if each >= 30]
    assert bare.cuts(name, 0, 56, 4) == [43]


def test_the_last_stable_offset_needs_no_snapshot(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(KAFKA, copy)
    log = copy / "java.topic-0"
    last = log / f"{43:020d}.log"
    last.write_bytes(last.read_bytes()[:-78])  # without the abort marker at 55, the transaction from 52 on is open
    (log / f"{56:020d}.snapshot").unlink()
    (copy / "replication-offset-checkpoint").unlink()
    name = TopicPartition("java.topic", 0)
    for _ in range(2):
        assert open_source(path=copy).bounds(name, "read_committed") == Bounds(0, 52)
        (log / f"{43:020d}.snapshot").unlink(missing_ok=True)
