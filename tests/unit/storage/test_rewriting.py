"""A rewrite's dealings with the disk: what it tells the throttle, and how much room it takes."""

from __future__ import annotations

from logkernel.config.topic import TopicSettings
from logkernel.contracts import LogFacts
from logkernel.plugins.cleanup.compact import Compact
from logkernel.record.batch import batches
from logkernel.record.encode import encode_batch
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
    (plan,) = Compact().plan(
        LogFacts(
            topic="t", partition=0, segments=log.facts(), log_start_offset=0, high_watermark=200, wall_ms=1000,
            settings=SETTINGS, last_stable_offset=200, clean_offset=None, table_bytes=1 << 14, asked=True,
            seed=bytes(16),
        )
    )  # fmt: skip
    return log, log.begin_rewrite(plan, no_codec, 1000, buffer_bytes=1, throttle=throttle)


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
        for act in (rewriting.work, rewriting.settle):
            act()
            files = [name for name in store.names() if ".log" in name]
            most = max(most, sum(store.disk.size(f"{log.folder}/{name}") for name in files))
    assert rewriting.swapped > 1
    assert most <= before + SETTINGS.segment_bytes
    log.purge(10**9)
    assert sum(len(store.bytes(name)) for name in store.names() if ".log" in name) == log.size_bytes
