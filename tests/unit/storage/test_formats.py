"""The small files, byte by byte as their documentation draws them, and what is refused."""

from __future__ import annotations

import contextlib
import errno
import struct
from uuid import UUID

import pytest
from crcmod.predefined import mkCrcFun
from hypothesis import given
from hypothesis import strategies as st

from logkernel.errors import LogkernelError
from logkernel.storage import checkpoints, snapshot
from logkernel.storage.checkpoints import CorruptCheckpoint, MetaProperties
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.index import CorruptIndex, OffsetIndex, TimeIndex
from logkernel.storage.memory_disk import MemoryDisk
from logkernel.storage.names import doomed_name, offset_name, offset_of, partition_of
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.storage.snapshot import CorruptSnapshot
from logkernel.storage.txnindex import TxnIndex
from logkernel.vocabulary import AbortedTxn, ProducerEntry, TopicPartition

crc32c = mkCrcFun("crc-32c")


@pytest.fixture
def disk():
    disk = MemoryDisk()
    disk.mkdir("/d")
    return disk


# ---------------------------------------------------------------- indexes


def test_offset_index_bytes_and_lookup(disk):
    index = OffsetIndex(disk, "/d/i", 800)
    assert index.lookup(5) == 0
    for entry in ((3, 100), (9, 250), (20, 900)):
        index.append(*entry)
    assert [index.lookup(at) for at in (0, 2, 3, 8, 9, 19, 20, 99)] == [0, 0, 100, 100, 250, 250, 900, 900]
    index.seal()
    assert disk.read("/d/i") == struct.pack(">6i", 3, 100, 9, 250, 20, 900)
    again = OffsetIndex(disk, "/d/i", 800, file_bytes=24)
    again.check(901)
    with pytest.raises(CorruptIndex):
        again.check(900)
    again.truncate_to(20)
    assert (again.count, again.lookup(99)) == (2, 250)
    again.append(30, 950)
    again.seal()
    assert disk.read("/d/i") == struct.pack(">6i", 3, 100, 9, 250, 30, 950)


def test_time_index_bytes_and_lookup(disk):
    index = TimeIndex(disk, "/d/i", 1200)
    for entry in ((1000, 4), (1000, 6), (999, 7), (2000, 9)):
        index.append(*entry)
    assert [index.lookup(at) for at in (0, 999, 1000, 1999, 2000, 9999)] == [0, 0, 4, 4, 9, 9]
    index.seal()
    assert disk.read("/d/i") == struct.pack(">qiqi", 1000, 4, 2000, 9)
    index.truncate_to(9)
    assert (index.count, index.last_ms) == (1, 1000)


def test_indexes_grow_in_steps_and_are_bounded(disk):
    index = OffsetIndex(disk, "/d/i", 10_485_760)
    index.append(1, 1)
    assert disk.size("/d/i") == 65536
    for at in range(2, 9000):
        index.append(at, at)
    assert disk.size("/d/i") == 262144
    assert (index.lookup(8999), index.lookup(4321)) == (8999, 4321)
    small = TimeIndex(disk, "/d/t", 40)
    assert small.limit == 3
    small.append(1, 1)
    assert not small.is_full
    small.append(2, 2)
    assert small.is_full, "one is left for sealing"


def test_an_index_of_odd_length_is_corrupt(disk):
    with pytest.raises(CorruptIndex):
        OffsetIndex(disk, "/d/i", 800, file_bytes=9)


def test_txn_index_bytes(disk):
    index = TxnIndex(disk, "/d/x", exists=False)
    assert not disk.exists("/d/x")
    index.append(AbortedTxn(7, 1, 5, 3))
    index.append(AbortedTxn(8, 3, 6, 7))
    assert disk.read("/d/x") == struct.pack(">hqqqqhqqqq", 0, 7, 1, 5, 3, 0, 8, 3, 6, 7)
    assert TxnIndex(disk, "/d/x", exists=True).rows() == [AbortedTxn(7, 1, 5, 3), AbortedTxn(8, 3, 6, 7)]
    with pytest.raises(ValueError):
        index.append(AbortedTxn(9, 3, 6, 7))
    for rotten in (
        b"x",
        struct.pack(">hqqqq", 0, 7, 6, 5, 3),
        struct.pack(">hqqqqhqqqq", 0, 7, 1, 5, 3, 0, 8, 3, 5, 7),
    ):
        disk.write("/d/x", rotten)
        with pytest.raises(CorruptIndex):
            TxnIndex(disk, "/d/x", exists=True).rows()


def test_rows_of_the_txn_index_that_have_no_room_are_written_with_the_next_one():
    disk = SimulatedDisk(0)
    disk.mkdir("/d")
    index, rows = TxnIndex(disk, "/d/x", exists=False), [AbortedTxn(7, n, n, n) for n in range(1, 5)]
    index.append(rows[0])
    disk.fault = lambda kind, path: errno.ENOSPC
    for row in rows[1:3]:
        index.append(row)
    assert index.rows() == rows[:3]
    with pytest.raises(OSError, match="space"):
        index.sync()
    disk.fault = None
    index.truncate_to(3)
    assert TxnIndex(disk, "/d/x", exists=True).rows() == rows[:1]
    index.append(rows[3])
    assert TxnIndex(disk, "/d/x", exists=True).rows() == [*rows[:2], rows[3]]
    disk.fault = lambda kind, path: errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        index.append(AbortedTxn(7, 9, 9, 9))


# ---------------------------------------------------------------- snapshot


def test_snapshot_bytes():
    entry = ProducerEntry(4711, 3, 9, 1234567, 88, [(5, 90, 1, 1000), (9, 100, 3, 1234567)])
    row = struct.pack(">qhiqiqiq", 4711, 3, 9, 100, 3, 1234567, 9, 88)
    body = struct.pack(">i", 1) + row
    data = struct.pack(">hI", 1, crc32c(body)) + body
    assert snapshot.encode([entry]) == data
    entry.batches = [(9, 100, 3, 1234567)]
    assert snapshot.decode(data) == [entry]
    assert snapshot.decode(snapshot.encode([])) == []
    markers_only = ProducerEntry(1, 0, 2, 77)
    assert snapshot.decode(snapshot.encode([markers_only])) == [markers_only]


@pytest.mark.parametrize("change", [lambda d: d[:5], lambda d: d[:-1], lambda d: d + b"x", lambda d: b"\0\2" + d[2:],
                                    lambda d: d[:20] + bytes([d[20] ^ 1]) + d[21:], lambda d: b""])  # fmt: skip
def test_rotten_snapshots(change):
    data = snapshot.encode([ProducerEntry(1, 0)])
    with pytest.raises(CorruptSnapshot):
        snapshot.decode(change(data))


def test_a_snapshot_count_is_not_believed():
    body = struct.pack(">i", 2**31 - 1)
    with pytest.raises(CorruptSnapshot):
        snapshot.decode(struct.pack(">hI", 1, crc32c(body)) + body)


# ---------------------------------------------------------------- text files


def test_offset_checkpoint():
    offsets = {TopicPartition("a.b-c", 0): 12, TopicPartition("x", 7): 2**62}
    data = b"0\n2\na.b-c 0 12\nx 7 4611686018427387904\n"
    assert checkpoints.format_offsets(offsets) == data
    assert checkpoints.parse_offsets(data, "f") == offsets
    assert checkpoints.parse_offsets(b"0\n0\n", "f") == {}


@pytest.mark.parametrize(
    "data",
    [b"", b"1\n0\n", b"0\n", b"0\nx\n", b"0\n1\n", b"0\n1\na 0\n", b"0\n1\na 0 1 2\n", b"0\n1\na 0 -1\n",
     b"0\n0\na 0 1\n",
     b"0\n1\na 0 99999999999999999999\n", b"0\n9999999999\n", b"0\n1\na \xff 1\n",
     b"0\n-1\n", "0\n1\na 0 ١\n".encode()],
)  # fmt: skip
def test_rotten_checkpoints_name_their_file(data):
    with pytest.raises(CorruptCheckpoint, match="some/file"):
        checkpoints.parse_offsets(data, "some/file")


@given(st.binary(max_size=60))
def test_no_text_file_breaks_its_parser(data):
    for parse in (checkpoints.parse_offsets, checkpoints.parse_epochs, checkpoints.parse_partition_metadata,
                  checkpoints.parse_meta):  # fmt: skip
        with contextlib.suppress(LogkernelError):
            parse(data, "f")
    checkpoints.parse_clean_shutdown(data)


def test_partition_metadata():
    topic_id = UUID("12cb9e36-af78-4718-88e0-e4b94857ced4")
    data = b"version: 0\ntopic_id: EsueNq94RxiI4OS5SFfO1A"
    assert checkpoints.format_partition_metadata(topic_id) == data
    assert checkpoints.parse_partition_metadata(data + b"\n", "f") == topic_id
    with pytest.raises(CorruptCheckpoint):
        checkpoints.parse_partition_metadata(b"version: 1\ntopic_id: EsueNq94RxiI4OS5SFfO1A", "f")


def test_meta_properties():
    meta = MetaProperties(3, "MkU3OEVBNTcwNTJENDM2Qk", "zrW_ZF8pmb2ngwocFJMHrQ")
    assert checkpoints.parse_meta(checkpoints.format_meta(meta), "f") == meta
    old = b"#Mon Jan 01\nbroker.id=4\nversion=0\ncluster.id=abc\n"
    assert checkpoints.parse_meta(old, "f") == MetaProperties(4, "abc", None, version=0)
    assert checkpoints.format_meta(checkpoints.parse_meta(old, "f")) == b"#\nbroker.id=4\nversion=0\ncluster.id=abc\n"
    for rotten in (b"version=2\nnode.id=1\n", b"version=1\nnode.id=x\n", b"version=1\nbroker.id=1\n"):
        with pytest.raises(CorruptCheckpoint):
            checkpoints.parse_meta(rotten, "f")


def test_clean_shutdown_mark():
    assert checkpoints.format_clean_shutdown() == b'{"version":0,"brokerEpoch":-1}'
    assert checkpoints.parse_clean_shutdown(b'{"version":0,"brokerEpoch":11}') == 11
    assert checkpoints.parse_clean_shutdown(b"") == -1
    assert checkpoints.parse_clean_shutdown(b"[1]") == -1


# ---------------------------------------------------------------- names


def test_names_of_files_and_folders_round_trip():
    assert offset_name(42, ".log") == "00000000000000000042.log"
    assert offset_of("00000000000000000042.log", ".log") == 42
    assert offset_of("42.log", ".log") is None
    assert offset_of("00000000000000000042.log.deleted", ".log") is None
    assert partition_of("my-topic-12") == ("my-topic", 12)
    for name in ("topic", "topic-", "-1", "topic-x", "t-0.0123-delete", "t-0.12-future", "t-0.1-stray", "checkpoint"):
        assert partition_of(name) is None
    unique = UUID(int=7)
    assert doomed_name("t", 3, unique) == f"t-3.{unique.hex}-delete"
    assert len(doomed_name("t" * 249, 12345, unique)) == 255


# ---------------------------------------------------------------- leader epochs


def test_epoch_end_offsets(disk):
    cache = LeaderEpochCache(disk, "/d/e")
    assert cache.end_offset_for(0, 10) is None
    cache.assign(2, 10)
    cache.assign(4, 20)
    cache.assign(7, 35)
    assert cache.end_offset_for(7, 50) == (50, 7), "the latest epoch ends at the log end"
    assert cache.end_offset_for(4, 50) == (35, 4)
    assert cache.end_offset_for(6, 50) == (35, 4), "the greatest known one below"
    assert cache.end_offset_for(1, 50) == (10, 1), "below all known: where the first starts"
    assert cache.end_offset_for(8, 50) is None, "above all known"
    assert cache.end_offset_for(-1, 50) is None
    assert [cache.epoch_at(at) for at in (5, 10, 19, 20, 99)] == [-1, 2, 2, 4, 7]


def test_an_epoch_that_begins_while_the_file_is_written_is_saved_next(disk, monkeypatch):
    """A flush writes the file on its own thread, beside the appends."""
    cache = LeaderEpochCache(disk, "/d/e")
    cache.assign(1, 0)
    write = disk.write_atomic

    def slow_write(path, data):
        write(path, data)
        cache.assign(2, 10)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write_atomic", slow_write)
        cache.save()
    cache.save()
    assert LeaderEpochCache(disk, "/d/e", exists=True).entries == ((1, 0), (2, 10))


def test_epochs_that_could_not_be_written_are_saved_next(disk, monkeypatch):
    cache = LeaderEpochCache(disk, "/d/e")
    cache.assign(1, 0)

    def refuse(path, data):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write_atomic", refuse)
        with pytest.raises(OSError, match="full"):
            cache.save()
    cache.save()
    assert LeaderEpochCache(disk, "/d/e", exists=True).entries == ((1, 0),)


def test_epochs_are_cut_at_both_ends_and_kept(disk):
    cache = LeaderEpochCache(disk, "/d/e")
    for epoch, start in ((0, 0), (1, 10), (2, 20), (3, 30)):
        cache.assign(epoch, start)
    cache.assign(3, 40)
    cache.truncate_from_start(15)
    assert cache.entries == ((1, 15), (2, 20), (3, 30))
    cache.truncate_from_end(30)
    assert (cache.entries, cache.latest) == (((1, 15), (2, 20)), 2)
    cache.assign(5, 18)
    assert cache.entries == ((1, 15), (5, 18)), "what starts later contradicts it"
    cache.save()
    assert disk.read("/d/e") == b"0\n2\n1 15\n5 18\n"
    assert LeaderEpochCache(disk, "/d/e", exists=True).entries == cache.entries
    disk.write("/d/e", b"0\n2\n5 18\n1 15\n")
    with pytest.raises(CorruptCheckpoint, match="out of order"):
        LeaderEpochCache(disk, "/d/e", exists=True)
