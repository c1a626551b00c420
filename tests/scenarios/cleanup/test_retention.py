"""What retention drops from an embedded log: its start is written first, and its files hold nobody up."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from filling import NAME, SEGMENT, fill, wait

import logkernel
from logkernel.broker import retention
from logkernel.storage.directories import REMOVED_AT_CLOSE
from logkernel.storage.disk import RealDisk
from logkernel.vocabulary import Record, TopicPartition


def test_retention_by_name_says_what_it_did(opened):
    opened.create_topic("d", 1, segment_bytes=SEGMENT, retention_bytes=SEGMENT)
    fill(opened, topic="d")
    (result,) = opened.apply_retention("d")
    assert result.policy == "delete"
    assert result.before.records == 150
    assert result.after.records == 150 - result.log_start_offset
    assert result.after.segments == 2
    assert opened.start_offset("d") == result.log_start_offset > 0
    assert opened.apply_retention("d") == []


def test_a_topic_may_have_segments_that_are_smaller_than_kafka_lets_anybody_ask_for(opened):
    """By Kafka's internal setting, which its own tests use."""
    opened.create_topic("s", 1, internal_segment_bytes=2_000)
    for _ in range(30):
        opened.append("s", b"x" * 500)
    sizes = [segment.size for segment in opened.broker.replicas.get(TopicPartition("s", 0)).log.segments]
    assert len(sizes) > 5
    assert max(sizes) <= 2_000


def test_retention_of_many_segments_holds_nobody_up(tmp_path, monkeypatch):
    """One call dropped 10,000 segments in 0.8 to 2.9 s, most of it for 40,000 renames: now these come in slices."""
    renamed = 0
    plain = RealDisk.rename

    def rename(self, old, new):
        nonlocal renamed
        renamed += 1
        plain(self, old, new)

    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, file_delete_delay_ms=0)
        replica = log.broker.replicas.get(NAME)
        for _ in range(300):
            log.append_many("t", [Record(b"k", b"v", (), 1)])
            replica.log.roll(0)
        monkeypatch.setattr(RealDisk, "rename", rename)
        (result,) = log.apply_retention("t")
        assert (result.before.segments, result.after.segments, result.log_start_offset) == (301, 1, 300)
        assert log.start_offset("t") == log.end_offset("t") == 300
        assert renamed < 150
        log.append("t", b"at once")
        before = renamed
        deadline = time.monotonic() + 180
        while [*(tmp_path / "t-0").glob(f"{0:017d}*")][3:]:
            assert time.monotonic() < deadline
            log.step()
            assert renamed - before <= 80, "too many in one go"
            before = renamed
            time.sleep(0.001)
    assert sorted(path.name for path in (tmp_path / "t-0").glob("*.log")) == [f"{300:020d}.log"]


def test_by_the_clock_no_log_start_moves_before_it_is_written_elsewhere(tmp_path, monkeypatch):
    """The sync of the checkpoint is not the loop's, one serves all logs; readers and files wait for it."""
    monkeypatch.setattr(retention, "TURN_MS", 10**9)  # however slow the machine is, one turn looks at all
    never = dict.fromkeys(
        (
            "replica_high_watermark_checkpoint_interval_ms",
            "log_flush_offset_checkpoint_interval_ms",
            "log_flush_start_offset_checkpoint_interval_ms",
        ),
        10**9,
    )
    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False, **never) as log:
        broker = log.broker
        log.create_topic("t", 3)
        for partition in range(3):
            for _ in range(5):
                log.append_many("t", [Record(b"k", b"v", (), 1)], partition=partition)
                broker.replicas.get(TopicPartition("t", partition)).log.roll(0)
        held: list[tuple] = []
        plain, broker.runtime.run_flush = broker.runtime.run_flush, lambda run, done: held.append((run, done))
        broker.retention.drop_all()
        deleted = lambda: len([*tmp_path.glob("t-*/*.log.deleted")])  # noqa: E731
        starts = lambda: [log.start_offset("t", partition) for partition in range(3)]  # noqa: E731
        assert (starts(), deleted()) == ([0, 0, 0], 0)
        assert [record.offset for record in log.read("t", 0)] == [0, 1, 2, 3, 4]
        ((run, done),) = held
        broker.retention.drop_all()
        assert (starts(), deleted()) == ([0, 0, 0], 0)
        broker.runtime.run_flush = plain
        run()
        assert (starts(), deleted()) == ([0, 0, 0], 0)
        done(None)
        assert (starts(), deleted()) == ([5, 5, 5], 15)
        checkpoint = (tmp_path / "log-start-offset-checkpoint").read_text().splitlines()
        assert sorted(checkpoint[2:]) == ["t 0 5", "t 1 5", "t 2 5"]


def test_the_log_start_is_on_the_disk_before_any_file_goes(tmp_path, monkeypatch):
    """Else a crash brought offsets back that readers were told are gone, with holes where files were removed."""
    said: list[bool] = []
    plain = RealDisk.rename

    def rename(self, old, new):
        if new.endswith(".log.deleted"):
            checkpoint = tmp_path / "log-start-offset-checkpoint"
            said.append(checkpoint.exists() and "t 0 40" in checkpoint.read_text().splitlines())
        plain(self, old, new)

    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False) as log:
        log.create_topic("t", 1)
        for _ in range(40):
            log.append_many("t", [Record(b"k", b"v", (), 1)])
            log.broker.replicas.get(NAME).log.roll(0)
        monkeypatch.setattr(RealDisk, "rename", rename)
        log.apply_retention("t")
    assert said
    assert all(said)


def test_dropped_files_are_removed_on_a_thread_and_none_by_the_start(tmp_path, monkeypatch):
    """A request waited behind 64 removals at a time, and whoever closed the log behind all of them: 3 to 20 s for
    10,000 segments. The same for a topic that is deleted."""
    mine = threading.get_ident()
    here: list[str] = []
    plain_remove, plain_tree = RealDisk.remove, RealDisk.remove_tree

    def remove(self, path):
        here.extend([path] if threading.get_ident() == mine else [])
        plain_remove(self, path)

    def remove_tree(self, path):
        here.extend([path] if threading.get_ident() == mine else [])
        plain_tree(self, path)

    def dropped() -> list[Path]:
        files = [path for path in (tmp_path / "t-0").glob("*.*") if path.name[:20].isdigit()]
        return [*(path for path in files if int(path.name[:20]) < 300), *tmp_path.glob("*-delete")]

    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False) as log:
        log.create_topic("t", 1)
        log.create_topic("u", 2)
        for _ in range(300):
            log.append_many("t", [Record(b"k", b"v", (), 1)])
            log.broker.replicas.get(NAME).log.roll(0)
        monkeypatch.setattr(RealDisk, "remove", remove)
        monkeypatch.setattr(RealDisk, "remove_tree", remove_tree)
        log.apply_retention("t")
        log.delete_topic("u")
        wait(log, lambda: not [*tmp_path.glob("u-*")], "the deleted topic's folders are there")
        assert not here
    assert len(here) <= REMOVED_AT_CLOSE
    assert len(dropped()) > 300, "the delay is not over, so most are left"
    here.clear()
    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False) as log:
        assert log.start_offset("t") == log.end_offset("t") == 300
        wait(log, lambda: not dropped(), "files of the last run are there")
        assert len(here) < 10
        log.append("t", b"on")
        assert [record.value for record in log.read("t")] == [b"on"]
