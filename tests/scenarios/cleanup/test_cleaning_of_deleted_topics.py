"""A topic is deleted while it is cleaned or flushed, and made anew."""

from __future__ import annotations

import logging
import shutil

from filling import NAME, SEGMENT, fill, wait

import logkernel
from logkernel.vocabulary import Record


def test_a_topic_is_deleted_while_it_is_rewritten(tmp_path, caplog):
    options = {"log_cleaner_backoff_ms": 1, "log_cleaner_io_max_bytes_per_second": 2e6}
    with logkernel.open(tmp_path, **options) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log, rounds=6)
        wait(log, lambda: log.broker.replicas.get(NAME).log.rewriting is not None, "nothing begins")
        log.delete_topic("t")
        log.broker.runtime.workers.hurry()
        wait(log, lambda: not log.broker.cleaner.under_way, "the job does not end")
        assert log.topics() == {}
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_topic_is_deleted_while_two_wait_for_its_rewrite(tmp_path, caplog):
    """Whoever waited for a rewrite went on with a log that was gone, and took the whole directory offline."""
    with logkernel.open(tmp_path, log_cleaner_enable=False, log_cleaner_io_max_bytes_per_second=2e6) as log:
        log.create_topic("t", 2, cleanup_policy="compact", segment_bytes=SEGMENT)
        log.create_topic("other", 1)
        fill(log, rounds=6)
        told: list[object] = []
        log.broker.cleaner.compact("t", told.append)
        log.broker.cleaner.compact("t", told.append)
        rewritten = [replica for replica in log.broker.replicas.led.values() if replica.log.rewriting is not None]
        assert rewritten
        log.delete_topic("t")
        log.broker.runtime.workers.hurry()
        wait(log, lambda: len(told) == 2, "nobody is told")
        assert all(isinstance(each, Exception) for each in told)
        assert not log.broker.logs.directories.offline()
        log.append("other", b"served on")
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_topic_that_could_not_be_cleaned_is_deleted_and_made_anew(tmp_path):
    """What was wrong with the old log is nothing that the new one has."""
    with logkernel.open(tmp_path, log_cleaner_backoff_ms=1) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        log.broker.cleaner.uncleanable[NAME] = "rotten"
        log.delete_topic("t")
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        wait(log, lambda: log.broker.replicas.get(NAME).log.clean_offset, "it is not compacted")


def test_a_topic_is_deleted_and_made_anew_while_a_flush_of_the_old_one_is_under_way(tmp_path, caplog):
    """The flush missed its files, and the new topic's directory went offline for it."""
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        broker = log.broker
        log.create_topic("t", 1)
        held: list[tuple] = []
        broker.runtime.run_flush = lambda run, done: held.append((run, done))
        log.append("t", b"old")
        broker.replicas.get(NAME).flush()
        log.delete_topic("t")
        log.create_topic("t", 1)
        log.append("t", b"new")
        ((run, done),) = held
        try:
            run()
        except OSError as error:
            done(error)
        else:
            done(None)
        assert not broker.logs.directories.offline()
        assert [record.value for record in log.read("t")] == [b"new"]
        assert not (tmp_path / "t-0" / "leader-epoch-checkpoint").exists(), "the old log's epochs"
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_topic_made_anew_takes_over_no_checkpoint_of_the_deleted_one(tmp_path):
    """A kill right after lost what the new topic had acknowledged: the old log's start lay above all of it."""
    with logkernel.open(tmp_path / "a", log_cleaner_enable=False) as log:
        broker = log.broker
        log.create_topic("t", 1, cleanup_policy="compact,delete", segment_bytes=SEGMENT, retention_ms=1000)
        log.append_many("t", [Record(b"k%d" % n, b"old", (), 1) for n in range(100)])
        log.compact("t")
        assert log.apply_retention("t") or log.start_offset("t") == 100
        for write in (broker.scheduler.checkpoint_log_starts, broker.scheduler.checkpoint_recovery_points,
                      broker.scheduler.checkpoint_watermarks):  # fmt: skip
            write()
        log.delete_topic("t")
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        for n in range(10):
            log.append("t", b"%d" % n, key=b"k")
        passing = shutil.ignore_patterns("*.sock", "*-delete")  # the old log's folder is being removed
        shutil.copytree(tmp_path / "a", tmp_path / "killed", ignore=passing)
    with logkernel.open(tmp_path / "killed", log_cleaner_enable=False) as log:
        assert [record.value for record in log.read("t")] == [b"%d" % n for n in range(10)]
        assert log.broker.replicas.get(NAME).log.clean_offset is None
        log.compact("t")
        assert [record.value for record in log.read("t")] == [b"9"]
