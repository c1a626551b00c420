"""A rewrite's dealings with the disk: what it tells the throttle, and how much room it takes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.contracts import LogFacts
from logkernel.errors import RecordListTooLarge
from logkernel.plugins.cleanup.compact import Compact
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
from logkernel.storage.compaction import segment_writer
from logkernel.storage.compaction.rewriting import grouped
from logkernel.vocabulary import Record

SETTINGS = TopicSettings(cleanup_policy=("compact",), segment_bytes=5000, index_interval_bytes=300)


def no_codec(codec_id: int):
    raise AssertionError("nothing is compressed here")


def begun(store, *, throttle=None, keys: int = 10):
    log = store.open(settings=SETTINGS)
    for number in range(200):
        data = encode_batch(
            [Record(b"k%d" % (number % keys), bytes(100), timestamp_ms=1000)], base_offset=number, leader_epoch=0
        )
        log.append(data, list(batches(data)), 1000)
    log.roll(1000)
    return log, log.begin_rewrite(planned(log), no_codec, 1000, buffer_bytes=1, throttle=throttle)


def planned(log):
    end = log.end_offset
    (plan,) = Compact().plan(
        LogFacts(
            topic="t", partition=0, segments=log.facts(), log_start_offset=0, high_watermark=end, wall_ms=1000,
            settings=SETTINGS, last_stable_offset=end, clean_offset=log.clean_offset, table_bytes=1 << 14, asked=True,
            seed=bytes(16),
        )
    )  # fmt: skip
    return plan


def test_what_is_read_and_what_is_written_is_told_to_the_throttle(store):
    told: list[int] = []
    log, rewriting = begun(store, throttle=told.append)
    before = log.size_bytes
    rewriting.run()
    written = log.size_bytes
    assert 0 < written < before / 4
    assert sum(told) == 2 * before + written  # it is read to learn, and again to be copied
    assert max(told) <= 1 << 16


def test_no_more_than_one_group_is_there_twice(store):
    """By the bytes that the files have, at each step that is made by either side."""
    log, rewriting = begun(store, keys=150)
    before = most = log.size_bytes
    while not rewriting.done:
        for act in (rewriting.work, rewriting.step):
            act()
            files = [name for name in store.names() if ".log" in name]
            most = max(most, sum(store.disk.size(f"{log.folder}/{name}") for name in files))
    assert rewriting.swapped > 1
    assert most <= before + SETTINGS.segment_bytes
    log.purge(10**9)
    assert sum(len(store.bytes(name)) for name in store.names() if ".log" in name) == log.size_bytes


def part(base: int, *, span: int = 10, size: int = 10, entries: int = 1, stamps: int = 1) -> SimpleNamespace:
    """What a group goes by of a segment; an index has room for 8 entries."""
    index, times = SimpleNamespace(count=entries, limit=8), SimpleNamespace(count=stamps, limit=8)
    return SimpleNamespace(base=base, next_offset=base + span, size=size, index=index, times=times)


@pytest.mark.parametrize(
    ("parts", "together"),
    [
        ([part(0), part(10), part(20)], [3]),
        ([part(0), part(10), part(20, size=11)], [2, 1]),  # 30 bytes fill a segment, 31 do not fit
        ([part(0, size=31), part(10), part(20)], [1, 2]),
        ([part(0, size=25), part(10, size=25), part(20, size=5)], [1, 2]),  # each group begins with nothing
        ([part(0, entries=4), part(10, entries=4)], [2]),
        ([part(0, entries=4), part(10, entries=5), part(20, entries=3)], [1, 2]),
        ([part(0, stamps=4), part(10, stamps=4)], [2]),
        ([part(0, stamps=4), part(10, stamps=5), part(20, stamps=3)], [1, 2]),
        ([part(0), part(2**31 - 11)], [2]),
        ([part(0), part(2**31 - 10), part(2**31)], [1, 2]),  # no relative offset reaches so far
    ],
)
def test_neighbours_are_rewritten_together_as_far_as_one_segment_holds_them(parts, together):
    groups = grouped(parts, segment_bytes=30)
    assert [len(group) for group in groups] == together
    assert [each for group in groups for each in group] == parts


def test_segments_whose_offsets_lie_far_apart_stay_apart(store):
    """A rewrite made one segment of them, and none of its index entries could say how far the last offset was."""
    log = store.open(settings=SETTINGS)
    bases = [0, 5, 2**31 + 7, 2**31 + 9]
    for base in bases:
        data = encode_batch([Record(b"k%d" % base, bytes(400), timestamp_ms=1000)], base_offset=base, leader_epoch=0)
        log.append(data, list(batches(data)), 1000)
        if base != bases[2]:
            log.roll(1000)
    rewriting = log.begin_rewrite(planned(log), no_codec, 1000)
    rewriting.run()
    assert [segment.base for segment in log.segments.closed] == [0, 2**31 + 7]
    assert [offset for offset, _ in store.records(log)] == bases
    store.check_indexes(log)


def test_what_does_not_fit_a_segment_is_refused_and_the_log_is_as_before(store, monkeypatch):
    """Positions have 31 bits; batches that are compressed anew may have grown."""
    log, rewriting = begun(store, keys=199)
    before = store.records(log), store.names()
    monkeypatch.setattr(segment_writer, "MAX_RELATIVE", 4000)
    with pytest.raises(RecordListTooLarge, match=r"\.log.* do not fit a segment"):
        rewriting.run()
    log.abandon_rewrite(rewriting)
    assert (store.records(log), store.names()) == before


def write(store, log, key: bytes, producer: int = -1, size: int = 1, *, transactional: bool = True) -> None:
    """A batch of one record, of nobody or of a producer and, if so, its transaction."""
    known = producer >= 0
    data = encode_batch(
        [Record(key, bytes(size), timestamp_ms=1000)], base_offset=log.end_offset, leader_epoch=0, producer_id=producer,
        producer_epoch=0 if known else -1, base_sequence=log.end_offset if known else -1,
        transactional=known and transactional,
    )  # fmt: skip
    store.put(log, data)


def rewrite(log) -> None:
    log.roll(1000)
    rewriting = log.begin_rewrite(planned(log), no_codec, 1000)
    rewriting.run()
    log.end_rewrite(rewriting)


@pytest.mark.parametrize(
    ("clean", "ends", "left"),
    [
        (2, (True, True), 4),
        (2, (False, True, True, False), 6),
        (4, (False, True, True, False), 6),  # in the midst of a segment
    ],
)
def test_only_what_was_committed_beats_what_came_before(clean, ends, left, store):
    """Aborted data beats nothing, whoever aborted before may commit, and no transaction is taken for another."""
    log = store.open(settings=SETTINGS)
    write(store, log, b"k", 7)
    store.mark(log, 7, commit=False)
    rewrite(log)
    log.clean_offset = clean
    for commit in ends:
        write(store, log, b"k", 7)
        store.mark(log, 7, commit=commit)
    rewrite(log)
    assert [offset for offset, _ in store.records(log)] == [left]


def test_of_a_producer_the_last_batch_is_left_empty_and_no_other(store):
    """Its sequence goes on behind that one, for whoever starts from this log alone."""
    log = store.open(settings=SETTINGS)
    for _ in range(7):
        write(store, log, b"k", 7, transactional=False)
    write(store, log, b"k")
    write(store, log, b"x", size=2000)
    rewrite(log)
    found = [(facts.base_offset, facts.producer_id, facts.count) for facts in log.segments.closed[0].scan()]
    assert found == [(6, 7, 0), (7, -1, 1), (8, -1, 1)]


def test_a_rewritten_segment_has_the_index_rows_of_its_own_markers(store):
    log = store.open(settings=SETTINGS)

    def close(key: bytes) -> None:
        """With so much behind it that no other segment is rewritten with it."""
        write(store, log, key, size=3000)
        log.roll(1000)

    write(store, log, b"a", 7)  # 0
    close(b"x")  # 1
    store.mark(log, 7, commit=False)  # 2
    close(b"y")  # 3
    write(store, log, b"b", 8)  # 4
    store.mark(log, 8, commit=False)  # 5
    close(b"z")  # 6
    close(b"again")  # 7
    close(b"again")  # 8
    rewrite(log)
    assert [offset for offset, _ in store.records(log)] == [1, 3, 6, 8]
    rows = {segment.base: [row.last_offset for row in segment.txns.rows()] for segment in log.segments.closed}
    assert rows == {0: [], 2: [2], 4: [5], 7: [], 8: []}
