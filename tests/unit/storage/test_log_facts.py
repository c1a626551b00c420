"""What a log knows of itself: offsets by time, its segments' facts, aborted transactions."""

from __future__ import annotations

import errno
import random

import pytest

from logkernel.vocabulary import AbortedTxn


def test_without_timestamps_a_segment_is_as_old_as_its_file(store):
    log = store.open()
    store.disk.wall_ms = 77_000  # of a simulated one
    store.append(log, timestamp=-1)
    log.roll(0)
    store.append(log, timestamp=5)
    modified_ms = store.disk.modified_ms(f"{log.folder}/{0:020d}.log")
    assert modified_ms > 5
    assert [facts.largest_timestamp_ms for facts in log.facts()] == [modified_ms, 5]


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
