"""The read-only door beside a log that is being written."""

from __future__ import annotations

import random

import pytest

from logkernel.errors import CorruptMessage, OffsetOutOfRange
from logkernel.storage.reader import PartitionReader


def bases(reader, *bounds):
    return [facts.base_offset for facts, _ in reader.batches(*bounds)]


def test_it_sees_what_is_whole(store):
    log = store.open()
    for n in range(60):
        store.append(log, 2, size=random.Random(n).randint(0, 400))
    reader = PartitionReader(store.disk, log.folder)
    for start in (0, 1, 2, 30, 77, 118, 119):
        for end in (None, start + 1, start + 9, 120):
            last = 120 if end is None else min(end, 120)
            assert bases(reader, start, end) == list(range(start - start % 2, last, 2))
    for facts, view in reader.batches(40, 44):
        assert facts.position == 0
        assert len(view) == facts.size
    store.append(log)
    assert bases(reader, 120) == [120]
    assert bases(reader, 121) == []


def test_a_batch_larger_than_its_window(store, monkeypatch):
    monkeypatch.setattr("logkernel.storage.reader.CHUNK_BYTES", 100)
    log = store.open()
    for n in range(6):
        store.append(log, size=n * 200)
    assert bases(PartitionReader(store.disk, log.folder)) == list(range(6))


def test_half_a_batch_ends_the_walk(store):
    log = store.open()
    store.append(log)
    data = store.append(log)
    path = f"{log.folder}/{0:020d}.log"
    whole = store.disk.read(path)
    reader = PartitionReader(store.disk, log.folder)
    for cut in (1, 5, len(data) - 1, len(data) - 13):
        store.disk.write(path, whole[:-cut])
        assert bases(reader) == [0]
    store.disk.write(path, whole + b"\xff" * 100)
    with pytest.raises(CorruptMessage):
        bases(reader)


def test_what_was_dropped_is_out_of_range(store):
    log = store.open()
    for _ in range(12):
        store.append(log, size=900)
    reader = PartitionReader(store.disk, log.folder)
    walk = reader.batches(0)
    next(walk)
    log.drop_before(8, 0)
    with pytest.raises(OffsetOutOfRange):
        list(walk)
    with pytest.raises(OffsetOutOfRange):
        bases(reader, 3)
    assert bases(reader, 8) == [8, 9, 10, 11]
