"""A folder that Apache Kafka wrote: it opens here, and what we write of it is Kafka's, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.kernel import Kernel
from logkernel.partition.producers import ProducerStates
from logkernel.record.decode import decode_all
from logkernel.storage import snapshot
from logkernel.storage.checkpoints import format_meta, format_partition_metadata, parse_meta
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.disk import RealDisk
from logkernel.storage.log import Log
from logkernel.storage.reader import open_reader
from logkernel.vocabulary import AbortedTxn, EpochStart, LogPosition, TopicPartition, format_id

KAFKA = Path(__file__).parent / "kafka-4.3.1"
SETTINGS = TopicSettings(index_interval_bytes=512)
FIRST_MS = 1_700_000_000_000
ABORTED = [AbortedTxn(0, 44, 47, 48), AbortedTxn(0, 52, 55, 56)]


@pytest.fixture
def folder(tmp_path) -> Path:
    shutil.copytree(KAFKA, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(scope="module")
def codec_for():
    return Kernel().codec_for


def open_log(folder: Path, **options) -> Log:
    return Log.open(RealDisk(), str(folder), "java.topic", 0, SETTINGS, producers=ProducerStates(), **options)


def test_the_directory_opens(folder):
    dirs = LogDirectories.open(RealDisk(), [str(folder)], node_id=1)
    dirs.load(Needs(lambda topic: SETTINGS, lambda name: ProducerStates()), 1000)
    (directory,) = dirs.directories
    assert (directory.clean, directory.broker_epoch, dirs.cluster_id) == (True, 12, "MkU3OEVBNTcwNTJENDM2Qk")
    assert {str(name): (log.start_offset, log.end_offset) for name, log in dirs.logs.items()} == {
        "java.topic-0": (0, 56),
        "empty-one-0": (0, 0),
    }
    assert directory.recovery_points[TopicPartition("java.topic", 1)] == 60
    assert dirs.high_watermark(TopicPartition("java.topic", 0)) == 56
    log = dirs.logs[TopicPartition("java.topic", 0)]
    written = (KAFKA / "java.topic-0" / "partition.metadata").read_bytes()
    assert format_partition_metadata(log.topic_id) == written
    assert format_id(log.topic_id).encode() in written
    assert log.epochs.entries == (EpochStart(0, 0),)
    dirs.close()


def test_every_record_is_there(folder, codec_for):
    log = open_log(folder, clean=True)
    records = []
    offset = 0
    while offset < log.end_offset:
        found = decode_all(log.read(offset, 300).read(), codec_for, skip_control=False)
        records += found
        offset = found[-1].offset + 1
    assert [record.offset for record in records] == list(range(56))
    assert [(r.key, r.value, r.timestamp_ms) for r in records[:40]] == [
        (b"k%d" % i, b"v%d" % i * 3, FIRST_MS + i) for i in range(40)
    ]
    assert log.offset_for_timestamp(FIRST_MS + 25, codec_for) == (FIRST_MS + 25, 25)
    assert log.offset_for_timestamp(FIRST_MS + 101, codec_for) == (FIRST_MS + 101, 41)
    assert log.offset_of_max_timestamp(codec_for).offset in (43, 47, 51, 55)
    assert log.aborted_in(0, 56) == ABORTED
    assert log.position_of(45) == LogPosition(45, 43, 78)


@pytest.mark.parametrize("lost", ["", "index", "timeindex", "txnindex", "snapshot", "checkpoint"])
def test_what_recovery_rebuilds_is_what_kafka_wrote(folder, lost):
    partition = folder / "java.topic-0"
    for path in partition.iterdir():
        if lost and path.name.endswith(lost):
            path.unlink()
    log = open_log(folder)
    assert not log.damages
    assert log.end_offset == 56
    log.close()
    for path in sorted((KAFKA / "java.topic-0").iterdir()):
        if path.suffix != ".snapshot":  # Kafka's holds the coordinator's epoch, which only its ledger knows
            assert (partition / path.name).read_bytes() == path.read_bytes(), path.name


def test_snapshots_are_read_and_written_alike():
    for path in (KAFKA / "java.topic-0").glob("*.snapshot"):
        data = path.read_bytes()
        assert snapshot.encode(snapshot.decode(data)) == data


def test_producer_state_is_the_same_from_snapshot_and_from_batches(folder):
    states = ProducerStates()
    Log.open(RealDisk(), str(folder), "java.topic", 0, SETTINGS, producers=states, clean=True)
    (kept,) = states.entries()
    for path in (folder / "java.topic-0").glob("*.snapshot"):
        path.unlink()
    states = ProducerStates()
    Log.open(RealDisk(), str(folder), "java.topic", 0, SETTINGS, producers=states, clean=True)
    (found,) = states.entries()
    assert found.batches[-1][:3] == kept.batches[-1][:3] == (11, 54, 2)
    assert (found.producer_epoch, found.last_timestamp_ms) == (kept.producer_epoch, kept.last_timestamp_ms)
    assert found.current_txn_first_offset == kept.current_txn_first_offset == -1


def test_meta_properties_are_the_same_but_for_the_comment():
    data = (KAFKA / "meta.properties").read_bytes()
    ours = format_meta(parse_meta(data, "meta.properties"))

    def lines(text: bytes) -> set[bytes]:
        return {line for line in text.splitlines() if not line.startswith(b"#")}

    assert lines(ours) == lines(data)


def test_the_reader_needs_neither_lock_nor_broker(codec_for):
    reader = open_reader(str(KAFKA / "java.topic-0"))
    assert reader.bases() == [0, 43]
    found = list(reader.batches(10, 50))
    assert found[0][0].base_offset <= 10 <= found[0][0].last_offset
    offsets = [record.offset for _, view in found for record in decode_all(view, codec_for)]
    assert offsets == list(range(8, 51))
    assert reader.aborted_in(45, 56) == ABORTED
    assert reader.aborted_in(48, 53) == ABORTED[1:]
