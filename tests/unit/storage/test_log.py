"""Append, read, roll, flush, drop, truncate, close."""

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
from logkernel.storage.upkeep import RENAMED_AT_ONCE
from logkernel.vocabulary import AbortedTxn, LogPosition, Record


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
    assert len(log._active._last) < 16
    assert [offset for offset, _ in store.records(log)] == list(range(200))
    store.check_indexes(log)


def test_a_slice_outlives_close_drop_and_delete(store):
    log = store.open()
    for _ in range(10):
        store.append(log, size=900)
    piece = log.read(0, 10**6)
    kept = piece.read()
    log.drop_before(8, 0)
    log.purge(10**9)
    assert piece.read() == kept
    tail = log.read(9, 10**6)
    log.close()
    store.open(clean=True).delete()
    assert tail.read()
    assert "t-0" not in store.disk.listdir(store.root)


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


def test_without_timestamps_a_segment_is_as_old_as_its_file(store):
    log = store.open()
    store.disk.wall_ms = 77_000  # of a simulated one
    store.append(log, timestamp=-1)
    log.roll(0)
    store.append(log, timestamp=5)
    modified_ms = store.disk.modified_ms(f"{log.folder}/{0:020d}.log")
    assert modified_ms > 5
    assert [facts.largest_timestamp_ms for facts in log.facts()] == [modified_ms, 5]


def test_drop_before_deletes_after_the_delay(store):
    log = store.open()
    for n in range(20):
        store.append(log, size=900, epoch=n)
    dropped = log.drop_before(10, 1000)
    assert [facts.base_offset for facts in dropped] == [0, 4]
    assert (log.start_offset, log.facts()[0].base_offset) == (10, 8)
    assert f"{0:020d}.log.deleted" in store.names()
    assert f"{4:020d}.snapshot.deleted" in store.names()
    assert log.purge(1000 + 59_999) == 0
    assert log.purge(1000 + 60_000) == 7
    assert not [name for name in store.names() if name.endswith(".deleted")]
    assert [offset for offset, _ in store.records(log)] == list(range(10, 20))
    assert log.epochs.entries[0] == (10, 10)
    with pytest.raises(OffsetOutOfRange):
        log.read(9, 100)
    with pytest.raises(OffsetOutOfRange):
        log.drop_before(21, 0)


def many_segments(store, count: int = 60):
    log = store.open()
    for n in range(count):
        store.append(log, epoch=n // 10)
        log.roll(0)
    return log


def plain_names(store) -> list[str]:
    return sorted(name for name in store.names() if name[:20].isdigit() and not name.endswith(".deleted"))


def test_many_segments_leave_the_log_at_once_and_their_names_later(store):
    """Renaming the files of 10,000 segments took a second and more, in one go."""
    log = many_segments(store)
    piece = log.read(3, 10**6)
    assert len(log.drop_before(50, 1000)) == 50
    assert (log.start_offset, log.first_base_offset, log.segment_count) == (50, 50, 11)
    assert [offset for offset, _ in store.records(log)] == list(range(50, 60))
    assert f"{RENAMED_AT_ONCE - 1:020d}.log.deleted" in store.names()
    assert f"{RENAMED_AT_ONCE:020d}.log" in store.names()
    waiting = 50 - RENAMED_AT_ONCE
    while waiting:
        waiting = max(0, waiting - 7)
        assert log.rename_dropped(7) == waiting
    assert log.rename_dropped(7) == 0
    assert {int(name[:20]) for name in plain_names(store)} == set(range(50, 61))
    assert log.purge(1000 + 59_999) == 0
    assert log.purge(1000 + 60_000) > 150
    assert not [name for name in store.names() if name.endswith(".deleted")]
    assert piece.read()


@pytest.mark.parametrize("cut", ["truncate_to", "truncate_fully_and_start_at"])
def test_what_is_written_behind_a_cut_keeps_clear_of_names_that_wait(store, cut):
    log = many_segments(store)
    log.drop_before(50, 1000)
    getattr(log, cut)(20)
    assert (log.start_offset, log.end_offset) == (20, 20)
    for _ in range(5):
        store.append(log)
        log.roll(0)
    log.purge(10**9)
    assert [offset for offset, _ in store.records(log)] == list(range(20, 25))
    assert {int(name[:20]) for name in plain_names(store)} == set(range(20, 26))


def test_an_empty_segment_that_waits_gives_its_name_free_before_a_cut(store):
    log = many_segments(store)
    log.drop_before(50, 1000)
    log.roll(0, base=70)  # the active segment, empty, waits behind the others
    log.truncate_to(55)
    for _ in range(10):
        store.append(log)
        log.roll(0)
    log.rename_dropped()
    log.purge(10**9)
    assert [offset for offset, _ in store.records(log)] == list(range(50, 65))
    assert {int(name[:20]) for name in plain_names(store)} == set(range(50, 66))


def test_names_that_wait_are_gone_after_close(store):
    log = many_segments(store)
    log.drop_before(50, 1000)
    log.close()
    assert {int(name[:20]) for name in store.names() if name[:20].isdigit()} == set(range(50, 61))
    assert [offset for offset, _ in store.records(store.open(clean=True, log_start=50))] == list(range(50, 60))


def test_names_that_a_crash_left_do_not_come_back(store):
    log = many_segments(store)
    log.flush()
    log.drop_before(50, 1000)
    log.abandon()
    log = store.open(log_start=50)
    assert [offset for offset, _ in store.records(log)] == list(range(50, 60))
    assert {int(name[:20]) for name in store.names() if name[:20].isdigit()} == set(range(50, 61))


def test_a_flush_under_way_passes_over_what_was_dropped_meanwhile(store):
    """Else the directory went offline for a file that nobody needs any more."""
    log = store.open()
    for _ in range(20):
        store.append(log, size=900)
    flush = log.begin_flush()
    log.drop_before(12, 0)
    flush.run()
    log.end_flush(flush)
    assert log.recovery_point == log.end_offset == 20


def test_a_flush_that_misses_a_file_of_the_log_says_so(store):
    log = store.open()
    store.append(log, 2)
    log.roll(0)
    store.disk.remove(f"{log.folder}/{0:020d}.timeindex")
    with pytest.raises(FileNotFoundError):
        log.flush()
    assert log.recovery_point == 0


def test_the_recovery_point_stays_in_a_segment_that_was_closed_while_it_was_synced(store):
    """Its indexes are not durable yet, and recovery looks at no segment below the recovery point."""
    log = store.open()
    store.append(log, 2)
    flush = log.begin_flush()
    flush.run()
    log.roll(0)
    log.end_flush(flush)
    assert log.recovery_point == 1
    log.flush()
    assert log.recovery_point == 2


@pytest.mark.parametrize("flushed_first", [True, False])
def test_what_the_recovery_point_passes_is_durable_with_its_indexes(flushed_first, simulated, new_ledger):
    """Recovery reads nothing there: which transactions were aborted would be known no more, and some of their data
    shown to readers."""
    for seed in range(20):
        store = simulated(seed)
        store.disk.sync_dir("/")
        log = store.open()
        for number in range(12):
            store.append(log, size=200, producer_id=1, producer_epoch=0, base_sequence=number, transactional=True)
        log.flush()
        store.mark(log, 1, commit=False)
        for act in (log.flush, lambda log=log: log.roll(0))[:: 1 if flushed_first else -1]:
            act()
        assert log.recovery_point == 13
        assert len(log.closed_segments()) == 1
        names = [name for name in store.names() if name.startswith(f"{0:020d}") and not name.endswith(".snapshot")]
        assert len(names) == 4
        before = {name: store.bytes(name) for name in names}
        store = simulated(store.disk.crash())
        assert {name: store.bytes(name) for name in names} == before
        log = store.open(recovery_point=13)
        assert log.aborted_in(0, 13) == [AbortedTxn(1, 0, 12, 13)]
        store.check_indexes(log)


def test_a_roll_leaves_what_the_producers_are_so_that_no_older_segment_is_read(store, new_ledger):
    log = store.open()
    for number in range(7):
        if number == 6:
            log.roll(0)
        store.append(log, producer_id=5, producer_epoch=0, base_sequence=number)
    log.flush()
    log.abandon()
    ledger = new_ledger()
    store.open(recovery_point=7, producers=ledger)
    assert ledger.replayed == 1
    assert [last for _, last, _, _ in ledger.entries()[0].batches] == [5, 6]  # a snapshot has the newest


def test_drop_before_the_end_drops_the_active_segment_too(store):
    log = store.open()
    store.append(log, 5)
    assert len(log.drop_before(5, 0)) == 1
    assert (log.start_offset, log.end_offset, log.size_bytes) == (5, 5, 0)
    store.append(log)
    log.close()
    assert [offset for offset, _ in store.records(store.open(clean=True))] == [5]


@pytest.mark.parametrize("target", [0, 1, 2, 3, 9, 10, 11, 19, 20, 35, 39, 40, 44])
def test_truncate(store, target):
    log = store.open()
    for n in range(20):
        store.append(log, 2, size=300, epoch=n // 5, producer_id=7, producer_epoch=0, base_sequence=2 * n)
    before = store.records(log)
    log.flush()
    log.truncate_to(target)
    end = min(target - target % 2, 40)
    assert log.end_offset == end
    assert store.records(log) == before[:end]
    store.check_indexes(log)
    assert log.recovery_point <= end
    assert all(entry.start_offset < end for entry in log.epochs.entries)
    last = [each.batches[-1][1] for each in store.ledger.entries()]
    assert last == ([end - 1] if end else [])
    store.append(log, 1, epoch=9)
    for clean in (False, True):
        again = store.open(clean=clean)
        assert [offset for offset, _ in store.records(again)] == list(range(end + 1))
        assert again.epochs.latest == 9
        again.close()


def test_truncate_fully(store):
    log = store.open()
    for _ in range(12):
        store.append(log, size=900)
    log.truncate_fully_and_start_at(1000)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (1000, 1000, 0)
    store.append(log)
    log.close()
    log = store.open(clean=True)
    assert [offset for offset, _ in store.records(log)] == [1000]


def test_flush_moves_the_recovery_point(store):
    log = store.open()
    for _ in range(6):
        store.append(log, size=900)
    assert (log.recovery_point, log.unflushed_records) == (0, 6)
    log.flush(4)
    assert (log.recovery_point, log.unflushed_records) == (4, 2)
    log.flush(2)
    assert log.recovery_point == 4
    flush = log.begin_flush()
    store.append(log)
    flush.run()
    log.end_flush(flush, 77)
    assert (log.recovery_point, log.unflushed_records, log.last_flush_ms) == (6, 1, 77)


@pytest.mark.parametrize("kind", ["sync", "sync_dir"])
def test_a_flush_after_one_that_failed_does_all_of_its_work(kind, simulated):
    for seed in range(20):
        store = simulated(seed)
        store.disk.sync_dir("/")
        log = store.open()
        store.append(log, 3)
        store.disk.fault = lambda what, path: errno.EIO if what == kind else None
        with pytest.raises(OSError):
            log.flush()
        store.disk.fault = None
        assert log.recovery_point == 0
        log.flush()
        log = simulated(store.disk.crash()).open(recovery_point=3)
        assert (log.end_offset, log.damages) == (3, [])


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


def no_codec(codec_id: int):
    raise AssertionError("nothing is compressed here")


def test_offsets_by_timestamp(store):
    log = store.open()
    assert log.offset_for_timestamp(0, no_codec) is None
    assert log.offset_of_max_timestamp(no_codec) is None
    chance = random.Random(4)
    stamps: list[int] = []
    for _ in range(80):
        count, stamp = chance.randint(1, 4), chance.randint(1000, 9000)
        store.append(log, count, size=200, timestamp=stamp)
        stamps += range(stamp, stamp + count)
    assert len(log.facts()) > 4
    for reopened in (False, True):
        if reopened:
            log.close()
            log = store.open(clean=True)
        for start in (0, 30):
            log.advance_log_start(start)
            for asked in [0, 1000, *chance.sample(range(900, 9100), 60), max(stamps), max(stamps) + 1]:
                offset = next((at for at in range(start, len(stamps)) if stamps[at] >= asked), None)
                found = log.offset_for_timestamp(asked, no_codec)
                assert found == (None if offset is None else (stamps[offset], offset)), asked
        assert log.offset_of_max_timestamp(no_codec) == (max(stamps), stamps.index(max(stamps)))
        assert [facts.largest_timestamp_ms for facts in log.facts()] == [
            max(stamps[facts.base_offset : facts.next_offset]) for facts in log.facts()
        ]


def test_a_segment_that_was_closed_in_vain_and_written_on_is_as_young_as_its_last_record(simulated):
    """There was no room for the next segment. Its time index ended where it was closed first, and retention took it for
    older than it is."""
    store = simulated()
    log = store.open()
    store.append(log, timestamp=1000)
    store.disk.fault = lambda kind, path: errno.ENOSPC if kind == "create" and path.endswith("1.log") else None
    with pytest.raises(OSError):
        log.roll(0)
    store.disk.fault = None
    store.append(log, timestamp=5000)
    log.roll(0)
    assert log.facts()[0].largest_timestamp_ms == 5000
    log.close()
    log = store.open(clean=True)
    assert log.facts()[0].largest_timestamp_ms == 5000
    assert log.offset_for_timestamp(4000, no_codec) == (5000, 1)


def test_facts_are_read_once_and_as_long_as_there_is_time(simulated):
    store = simulated()
    log = store.open(settings=store.settings(cleanup_policy=("compact",)))
    for n in range(30):
        store.append(log, timestamp=1000 + n)
        store.append(log, timestamp=2000 + n)
        log.roll(0)
    wanted = log.facts()
    log.close()
    log = store.open(clean=True, settings=store.settings(cleanup_policy=("compact",)))
    opened: list[str] = []
    store.disk.fault = lambda kind, path: opened.append(path) if kind == "open" else None
    turns = 0
    while not log.take_stock(lambda: False):
        turns += 1
        assert len(opened) <= turns
    assert turns == 30
    opened.clear()
    assert log.facts() == wanted
    assert [facts.first_timestamp_ms for facts in wanted] == [*range(1000, 1030), -1]
    assert not opened
    log.settings = store.settings(cleanup_policy=("delete",))
    assert {facts.first_timestamp_ms for facts in log.facts()} == {-1}
    log.settings = store.settings(cleanup_policy=("compact", "delete"))
    assert log.facts() == wanted
    log.truncate_to(33)
    store.append(log, timestamp=99, size=200)
    store.append(log, timestamp=98)
    log.roll(0)
    assert log.facts()[:16] == wanted[:16]
    last = log.facts()[16]
    assert (last.next_offset, last.largest_timestamp_ms) == (35, 1016)
    assert last.size_bytes == store.disk.size(f"{log.folder}/{32:020d}.log")


def test_retention_falls_back_to_the_file_time(simulated):
    store = simulated()
    log = store.open()
    store.disk.wall_ms = 4711
    store.append(log, timestamp=-1)
    assert log.facts()[0].largest_timestamp_ms == 4711


def test_aborted_transactions(store):
    log = store.open()

    def write(producer, count=1):
        store.append(log, count, size=300, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    write(1)  # 0
    write(2)  # 1
    store.mark(log, 1, commit=False)  # 2
    for _ in range(10):
        write(1)  # 3..12
    store.mark(log, 2, commit=False)  # 13
    store.mark(log, 1, commit=True)  # 14
    first = AbortedTxn(1, 0, 2, 1)
    second = AbortedTxn(2, 1, 13, 3)
    for reopened in (None, True, False):
        if reopened is not None:
            log.close()
            log = store.open(clean=reopened)
        assert log.aborted_in(0, 15) == [first, second]
        assert log.aborted_in(0, 0) == []
        assert log.aborted_in(0, 1) == [first]
        assert log.aborted_in(3, 15) == [second]
        assert log.aborted_in(13, 15) == [second]  # as Kafka tells it to who begins at the marker
        assert log.aborted_in(14, 15) == []
    log.truncate_to(13)
    assert log.aborted_in(0, 15) == [first]
    store.mark(log, 2, commit=False)
    assert log.aborted_in(0, 15) == [first, second]


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
