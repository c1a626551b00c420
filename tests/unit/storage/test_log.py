"""Append, read, roll, close."""

from __future__ import annotations

import errno
import random

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.errors import CorruptMessage, KafkaStorageError, OffsetOutOfRange
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.storage.disk import RealDisk
from logkernel.storage.ledger import NoProducers
from logkernel.storage.log import Log
from logkernel.vocabulary import LogPosition, Record


def test_what_is_appended_is_read_over_many_segments(store):
    log = store.open()
    chance = random.Random(3)
    for _ in range(200):
        store.append(log, chance.randint(1, 5), size=chance.randint(0, 300))
    assert len(log.facts()) > 20
    everything = store.records(log)
    assert [offset for offset, _ in everything] == list(range(log.end_offset))
    for start in chance.sample(range(log.end_offset), 60):
        assert store.records(log, start, step=chance.choice((1, 100, 5000))) == everything[start:]
    store.check_indexes(log)
    assert log.size_bytes == sum(facts.size_bytes for facts in log.facts())


def test_file_names_and_a_roll_by_size(store):
    log = store.open()
    while len(log.facts()) < 3:
        store.append(log, size=900)
    bases = [facts.base_offset for facts in log.facts()]
    assert bases == [0, 4, 8]
    assert [store.rolled[0][0], store.rolled[1][0]] == [0, 4]
    assert store.rolled[0][1] == store.disk.size(f"{log.folder}/{0:020d}.log")
    assert [name for name in store.names() if name.startswith("00000000000000000004")] == [
        f"{4:020d}.index", f"{4:020d}.log", f"{4:020d}.snapshot", f"{4:020d}.timeindex",
    ]  # fmt: skip
    assert [facts.next_offset for facts in log.facts()] == [4, 8, log.end_offset]
    assert [facts.active for facts in log.facts()] == [False, False, True]


def test_roll_by_time_counts_in_record_time(store):
    log = store.open(settings=store.settings(segment_ms=1000, segment_jitter_ms=400), jitter=0.5)
    store.append(log, timestamp=5000)
    store.append(log, timestamp=5800)
    assert len(log.facts()) == 1
    store.append(log, timestamp=5801)
    assert len(log.facts()) == 2, "800 ms are over"


def test_new_settings_count_from_the_next_append_on(store):
    log = store.open(settings=store.settings(segment_ms=1000))
    store.append(log, timestamp=5000)
    store.append(log, timestamp=5500)
    log.settings = store.settings(segment_ms=500)
    store.append(log, timestamp=5500)
    assert len(log.facts()) == 1
    store.append(log, timestamp=5501)
    assert len(log.facts()) == 2


@pytest.mark.parametrize(("policy", "segments"), [(("delete",), 1), (("compact",), 2), (("compact", "delete"), 2)])
def test_a_compacted_log_rolls_in_time_for_max_compaction_lag_ms(policy, segments, store):
    """The active segment is never compacted: what must be compacted by then must be closed by then."""
    log = store.open(settings=store.settings(cleanup_policy=policy, max_compaction_lag_ms=1000))
    store.append(log, timestamp=5000)
    store.append(log, timestamp=6000)
    assert len(log.facts()) == 1
    store.append(log, timestamp=6001)
    assert len(log.facts()) == segments


def test_roll_by_wall_time_without_timestamps(store):
    log = store.open(settings=store.settings(segment_ms=1000), wall_ms=100)
    store.append(log, timestamp=-1, wall_ms=1000)
    store.append(log, timestamp=-1, wall_ms=1100)
    assert len(log.facts()) == 1
    store.append(log, timestamp=-1, wall_ms=1101)
    assert len(log.facts()) == 2


def test_roll_by_time_goes_on_after_reopening(store):
    log = store.open(settings=store.settings(segment_ms=1000))
    for n in range(20):
        store.append(log, size=50, timestamp=5000 + n)
    log.close()
    log = store.open(settings=store.settings(segment_ms=1000), clean=True)
    store.append(log, timestamp=6001)
    assert len(log.facts()) == 2


def test_roll_when_an_index_is_full(store):
    log = store.open(settings=store.settings(segment_index_bytes=48, index_interval_bytes=1, segment_bytes=1 << 20))
    for _ in range(20):
        store.append(log)
    sizes = [store.disk.size(f"{log.folder}/{facts.base_offset:020d}.index") for facts in log.facts()[:-1]]
    assert sizes == [48, 48]


def test_roll_when_the_time_index_is_full_leaves_room_for_its_last_entry(store):
    log = store.open(settings=store.settings(segment_index_bytes=48, index_interval_bytes=1, segment_bytes=1 << 20))
    for n in range(20):
        store.append(log, timestamp=1000 + n)
    sizes = [store.disk.size(f"{log.folder}/{facts.base_offset:020d}.timeindex") for facts in log.facts()[:-1]]
    assert sizes == [36] * 4


def test_roll_where_relative_offsets_would_overflow(store):
    log = store.open()
    store.append(log)
    store.put(log, store.batch(log, base_offset=2**31 - 1))
    assert len(log.facts()) == 1
    store.put(log, store.batch(log, base_offset=2**31))
    assert [facts.base_offset for facts in log.facts()] == [0, 2**31]
    store.put(log, store.batch(log, base_offset=2**40))
    assert [offset for offset, _ in store.records(log)] == [0, 2**31 - 1, 2**31, 2**40]
    log.close()
    again = store.open(clean=True)
    assert again.end_offset == 2**40 + 1
    assert [offset for offset, _ in store.records(again)] == [0, 2**31 - 1, 2**31, 2**40]


def test_an_empty_log_takes_a_far_first_offset(store):
    log = store.open()
    store.put(log, store.batch(log, base_offset=2**33))
    assert [facts.base_offset for facts in log.facts()] == [2**33 - 0]
    assert store.records(log, 2**33) == [(2**33, bytes([65 + 2**33 % 26]) * 50)]


def test_read_bounds(store):
    log = store.open()
    for _ in range(3):
        store.append(log, 2)
    size = log.size_bytes // 3
    assert log.read(6, 100) is None
    for offset in (-1, 7):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100)
    assert log.read(1, 1).size == size, "the first batch comes whole"
    assert log.read(0, 1, min_one=False).size == 1
    assert log.read(0, 0, min_one=False) is None
    assert (log.read(2, 10**6).position, log.read(2, 10**6).size) == (size, 2 * size)
    assert log.read(0, size + 5).size == size + 5, "later batches may be cut off"


def test_read_ends_at_the_watermark(store):
    log = store.open()
    for _ in range(12):
        store.append(log, 1, size=800)
    end = log.position_of(6)
    assert end == LogPosition(6, 4, 2 * (log.facts()[0].size_bytes // 4))
    got = []
    offset = 0
    while piece := (log.read(offset, 10**6, end) if offset < 6 else None):
        found = list(batches(piece.read()))
        got += [facts.base_offset for facts in found]
        offset = found[-1].last_offset + 1
    assert got == [0, 1, 2, 3, 4, 5]
    assert log.read(6, 10**6, end) is None
    assert log.read(9, 10**6, end) is None
    assert log.position_of(12) == LogPosition(12, 8, log.facts()[-1].size_bytes)
    with pytest.raises(OffsetOutOfRange):
        log.position_of(13)


def test_gaps_of_a_compacted_log_are_stepped_over(store):
    log = store.open(settings=store.settings(cleanup_policy=("compact",)))
    for base in (3, 10, 11, 40, 300):
        store.put(log, store.batch(log, base_offset=base, size=1500))
    offsets = [3, 10, 11, 40, 300]
    assert len(log.facts()) > 1
    for start in (0, 4, 11, 12, 41, 299):
        assert [offset for offset, _ in store.records(log, start)] == [each for each in offsets if each >= start]
    with pytest.raises(CorruptMessage):
        store.put(log, store.batch(log, base_offset=300))


def test_the_position_table_forgets_but_the_index_knows(store, monkeypatch):
    monkeypatch.setattr("logkernel.storage.segment.TABLE_BATCHES", 8)
    log = store.open(settings=store.settings(segment_bytes=1 << 20))
    for _ in range(100):
        store.append(log, 2)
    assert len(log.segments.active._last) < 16
    assert [offset for offset, _ in store.records(log)] == list(range(200))
    store.check_indexes(log)


def test_preallocate_takes_the_blocks_of_a_segment_and_gives_the_rest_back(tmp_path):
    disk, folder = RealDisk(), str(tmp_path)
    settings = TopicSettings(segment_bytes=4 << 20, preallocate=True)
    log = Log.open(disk, folder, "t", 0, settings, producers=NoProducers())
    path = tmp_path / "t-0" / f"{0:020d}.log"
    data = encode_batch([Record(value=b"x" * 100, timestamp_ms=1)])
    log.append(bytearray(data), list(batches(data)), 0)
    taken = path.stat()
    assert taken.st_size == len(data), "readers see no zero tail"
    if taken.st_blocks * 512 < 4 << 20:
        pytest.skip("this file system cannot reserve blocks")
    log.roll(0)
    assert path.stat().st_blocks * 512 < 1 << 20
    log.close()


@pytest.mark.parametrize("flushed", [False, True])
def test_clean_close_and_open_needs_no_scan(flushed, store, new_ledger):
    log = store.open()
    for n in range(30):
        store.append(log, 2, size=200, producer_id=5, producer_epoch=1, base_sequence=2 * n)
    if flushed:
        log.flush()
    log.close()
    assert not [name for name in store.names() if name.endswith((".deleted", ".tmp"))]
    assert f"{60:020d}.snapshot" in store.names()
    for facts in log.facts():
        for suffix, size in ((".index", 8), (".timeindex", 12)):
            data = store.bytes(f"{facts.base_offset:020d}{suffix}")
            assert len(data) % size == 0
            assert not data or data[-size:] != bytes(size), "trimmed"
    ledger = new_ledger()
    log = store.open(clean=True, producers=ledger)
    assert ledger.replayed == 0
    assert ledger.entries()[0].batches == [(59, 59, 1, 1001)]
    assert (log.end_offset, log.recovery_point) == (60, 60)
    store.append(log)
    assert [offset for offset, _ in store.records(log)] == list(range(61))
    store.check_indexes(log)


def test_an_idle_log_is_closed_without_a_write(simulated):
    store = simulated()
    log = store.open()
    store.append(log)
    log.close()
    log = store.open(clean=True)
    before = store.disk.operations
    log.close()
    assert store.disk.operations == before


def test_a_failed_append_leaves_the_log_as_it_was(simulated):
    store = simulated()
    log = store.open()
    store.append(log, 3)
    store.disk.fail_at(store.disk.operations + 1, errno.ENOSPC)
    with pytest.raises(OSError):
        store.append(log, 3)
    assert log.end_offset == 3
    store.append(log, 2)
    assert [offset for offset, _ in store.records(log)] == [0, 1, 2, 3, 4]
    log.close()
    assert [offset for offset, _ in store.records(store.open(clean=True))] == [0, 1, 2, 3, 4]


def test_an_offline_log_refuses_everything(store):
    log = store.open()
    store.append(log)
    log.fail(OSError(errno.EIO, "gone"))
    for action in (lambda: store.append(log), lambda: log.read(0, 1), log.flush, lambda: log.roll(0),
                   lambda: log.truncate_to(0), log.facts, lambda: log.drop_before(1)):  # fmt: skip
        with pytest.raises(KafkaStorageError, match="gone"):
            action()
    log.close()


def test_a_cut_index_is_trimmed_at_close(store):
    log = store.open()
    for _ in range(20):
        store.append(log, size=200)
    log.truncate_to(log.facts()[0].next_offset - 2)
    log.abandon()
    log.close()
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        data = store.bytes(f"{0:020d}{suffix}")
        assert data[-size:] != bytes(size)
    store.check_indexes(store.open(clean=True))
