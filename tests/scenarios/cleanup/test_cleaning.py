"""Compacting an embedded log by name, and what readers find then."""

from __future__ import annotations

import contextlib
import time

import pytest
from filling import NAME, SEGMENT, fill, state

import logkernel
from logkernel.errors import InvalidRecord, UnknownTopicOrPartition
from logkernel.storage.disk import RealDisk
from logkernel.vocabulary import Record


def test_compact_by_name_says_what_it_did(opened):
    count = fill(opened)
    opened.append("t", None, key=b"k3")
    wanted = state(opened)
    (result,) = opened.compact("t")
    assert state(opened) == wanted
    left = [record.offset for record in opened.read("t")]
    assert left == sorted(left)
    assert len(left) == 50  # 49 values and a tombstone
    assert (result.topic, result.partition, result.policy) == ("t", 0, "compact")
    assert result.before.records == count + 1
    assert result.after.records == 50
    assert result.after.bytes < result.before.bytes / 2
    assert result.clean_offset == opened.end_offset("t") == count + 1
    assert opened.compact("t") == []  # nothing is dirty
    opened.append("t", b"new", key=b"k1")
    (again,) = opened.compact("t")
    assert (again.before.records, again.after.records) == (51, 50)
    assert again.after.segments < again.before.segments
    assert state(opened)[b"k1"] == b"new"


def test_offsets_and_gaps_stay_for_readers(opened):
    fill(opened)
    opened.compact("t")
    assert opened.start_offset("t") == 0
    assert [record.offset for record in opened.read("t", offset=7)] == list(range(100, 150))
    assert [record.offset for record in opened.read("t", offset=120)] == list(range(120, 150))


def test_a_record_without_a_key_is_refused(opened):
    with pytest.raises(InvalidRecord):
        opened.append("t", b"v")
    assert opened.end_offset("t") == 0


def test_old_files_go_group_by_group(tmp_path, monkeypatch):
    """At no time do more than one group's old and new files lie side by side."""
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log, rounds=6)
        most = 0
        plain = RealDisk.sync_dir

        def sync_dir(self, path):
            nonlocal most
            with contextlib.suppress(FileNotFoundError):  # another thread renames meanwhile
                most = max(most, sum(each.stat().st_size for each in (tmp_path / "t-0").glob("*.log*")))
            plain(self, path)

        before = sum(each.stat().st_size for each in (tmp_path / "t-0").glob("*.log"))
        monkeypatch.setattr(RealDisk, "sync_dir", sync_dir)
        log.compact("t")
        assert most < before + 1.5 * SEGMENT
        assert not [*(tmp_path / "t-0").glob("*.deleted")]


def test_a_topic_that_is_not_there(opened):
    with pytest.raises(UnknownTopicOrPartition):
        opened.compact("other")
    with pytest.raises(UnknownTopicOrPartition):
        opened.apply_retention("other")


def test_a_reader_keeps_its_slice_over_a_rewrite(opened):
    fill(opened)
    slice_ = opened.broker.replicas.get(NAME).log.read(0, 1 << 20)
    before = slice_.read()
    opened.compact("t")
    assert slice_.read() == before


def test_tombstones_go_after_their_time_and_not_before(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT, delete_retention_ms=300_000)
        clock = log.broker.runtime.clock
        now_ms = clock.wall_ms()
        clock.wall_ms = lambda: now_ms
        fill(log, rounds=1)
        log.append("t", None, key=b"k0")
        log.compact("t")
        tombstones = lambda: [record.offset for record in log.read("t") if record.value is None]  # noqa: E731
        assert tombstones() == [50]
        now_ms += 299_999
        log.append("t", b"dirty", key=b"k1")
        log.compact("t")
        assert tombstones() == [50]
        now_ms += 1
        log.append("t", b"dirty", key=b"k1")
        log.compact("t")
        assert tombstones() == []
        assert b"k0" not in state(log)


def test_compact_and_delete_together(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact,delete", segment_bytes=SEGMENT, retention_ms=1000)
        log.append_many("t", [Record(b"old", b"x" * 1000, (), 1)] * 10)
        log.compact("t")
        assert log.start_offset("t") == 10  # the rewritten segment was too old, the empty one stays
        log.append("t", b"new", key=b"new")
        assert log.apply_retention("t") == []
        assert state(log) == {b"new": b"new"}


def test_internal_topics_are_compacted(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.broker.governance.create_internal("__consumer_offsets", 1)
        for number in range(100):
            log.append("__consumer_offsets", b"%d" % number, key=b"group")
        (result,) = log.compact("__consumer_offsets")
        assert (result.before.records, result.after.records) == (100, 1)


@pytest.mark.parametrize("strategy", ["timestamp", "header"])
def test_topics_choose_how_records_win(opened, strategy):
    config = {"compaction.strategy": strategy, "compaction.strategy.header": "v", "cleanup.policy": "compact"}
    opened.create_topic("s", 1, config=config)
    told = [(b"a", 5, b"wins"), (b"a", 3, b"late"), (b"b", 1, b"early"), (b"b", 1, b"last of equals")]
    for key, number, value in told:
        opened.append("s", value, key=key, timestamp_ms=number * 1000, headers={"v": number.to_bytes(8, "big")})
    opened.compact("s")
    assert state(opened, "s") == {b"a": b"wins", b"b": b"last of equals"}
    opened.append("s", b"too old", key=b"a", timestamp_ms=4000, headers={"v": (4).to_bytes(8, "big")})
    opened.compact("s")
    assert state(opened, "s") == {b"a": b"wins", b"b": b"last of equals"}  # an old record beats a dirty one


def test_a_throttled_rewrite_takes_its_time(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_enable=False, log_cleaner_io_max_bytes_per_second=8e6) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)  # 3 MB, which are read twice
        begun = time.monotonic()
        log.compact("t")
        assert time.monotonic() - begun > 0.3


def test_compact_while_it_listens(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        log.listen()
        (result,) = log.compact("t")
        assert result.after.records == 50
