"""Flush, the recovery point, and what is durable below it."""

from __future__ import annotations

import errno

import pytest

from logkernel.vocabulary import AbortedTxn


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
        assert len(log.segments.closed) == 1
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
