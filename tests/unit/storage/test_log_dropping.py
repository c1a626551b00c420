"""Drop, truncate: what leaves a log, and the names of its files meanwhile."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.errors import OffsetOutOfRange
from logkernel.storage.dropped_files import RENAMED_AT_ONCE
from logkernel.storage.epochs import LeaderEpochCache


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
    store.open(clean=True).delete(UUID(int=1))
    assert tail.read()
    assert "t-0" not in store.disk.listdir(store.root)


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


def test_drop_before_the_end_drops_the_active_segment_too(store):
    log = store.open()
    store.append(log, 5)
    assert len(log.drop_before(5, 0)) == 1
    assert (log.start_offset, log.end_offset, log.size_bytes) == (5, 5, 0)
    store.append(log)
    log.close()
    assert [offset for offset, _ in store.records(store.open(clean=True))] == [5]


@pytest.mark.parametrize("target", [0, 1, 2, 3, 9, 10, 11, 19, 20, 35, 39, 40, 44])
def test_truncation_keeps_whole_batches_below_the_target(store, target):
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


@pytest.mark.parametrize("target", [10, 12])
def test_a_cut_at_the_end_forgets_an_epoch_without_records(store, target):
    """KAFKA-10706: this replica led epoch 2 and wrote nothing; the next leader writes epoch 3 from the same offset.

    Asked for the end of epoch 2, that leader answers offset 10 of epoch 1. Cutting there must leave epoch 1 as the
    latest, or the follower asks the same again, for ever.
    """
    log = store.open()
    for _ in range(10):
        store.append(log, epoch=1)
    log.flush()
    log.epochs.assign(2, log.end_offset)
    log.epochs.save()
    leader = LeaderEpochCache(store.disk, f"{store.root}/leader")
    leader.assign(1, 0)
    leader.assign(3, 10)
    assert leader.end_offset_for(log.epochs.latest, 15) == (10, 1)
    log.truncate_to(target)
    assert (log.end_offset, log.epochs.latest) == (10, 1)
    assert leader.end_offset_for(log.epochs.latest, 15) == (10, 1)
    again = store.open(clean=True)
    assert again.epochs.entries == ((1, 0),)


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
