"""The cleaner by the clock: which log comes first, and how much a turn of the loop does."""

from __future__ import annotations

import pytest
from filling import NAME, SEGMENT, wait

import logkernel
from logkernel.broker import cleaner, retention
from logkernel.broker.cleanup_policies import CleanupPolicies
from logkernel.contracts import DropBefore, Rewrite
from logkernel.storage.disk import RealDisk
from logkernel.vocabulary import Record, TopicPartition


def test_the_clock_compacts_the_dirtiest_first_and_remembers(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_backoff_ms=10) as log:
        log.create_topic("t", 2, cleanup_policy="compact", segment_bytes=SEGMENT)
        for partition in (0, 1):
            for number in range(200):
                log.append("t", bytes(20_000), key=b"%d" % (number % 10), partition=partition)
        checkpoint = tmp_path / "cleaner-offset-checkpoint"
        clean = lambda n: log.broker.replicas.get(TopicPartition("t", n)).log.clean_offset or 0  # noqa: E731
        wait(log, lambda: min(clean(0), clean(1)) > 100, "the clock does not compact")
        assert len(list(log.read("t", 0))) < 150  # 10 keys, and what is not clean yet
        assert checkpoint.read_text().splitlines()[0] == "0"
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        assert log.broker.replicas.get(TopicPartition("t", 1)).log.clean_offset > 100


def test_the_clock_asks_so_many_logs_in_a_turn_and_the_dirtiest_of_all_comes_first(tmp_path, monkeypatch):
    """A thousand compacted logs were asked in one go, every time that a rewrite ended."""
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        broker = log.broker
        log.create_topic("t", 12, cleanup_policy="compact", segment_bytes=SEGMENT)
        for partition in range(12):
            log.append("t", b"v", key=b"k", partition=partition)
            broker.replicas.get(TopicPartition("t", partition)).log.roll(0)
        log.compact("t")
        log.append("t", bytes(3000), key=b"k", partition=9)
        broker.replicas.get(TopicPartition("t", 9)).log.roll(0)
        asked: list[str] = []
        plans = CleanupPolicies.plans

        def noted(self, replica, **how):
            asked.append(replica.name)
            return plans(self, replica, **how)

        monkeypatch.setattr(CleanupPolicies, "plans", noted)
        now = broker.runtime.clock.mono_ms()
        monkeypatch.setattr(type(broker.runtime.clock), "mono_ms", lambda self: now)
        monkeypatch.setattr(cleaner, "TURN_MS", 0)
        broker.cleaner.start_dirtiest()
        for turn in range(60):  # some go by with reading what is to be known of closed segments
            assert len(asked) <= turn + 2
            now += 1
            broker.runtime.timers.run(now)
            if asked[12:]:
                break
        assert asked[-1] == ("t", 9)
        wait(log, lambda: broker.replicas.get(TopicPartition("t", 9)).log.clean_offset == 2, "not compacted")


def test_a_turn_of_the_loop_looks_at_so_many_logs_and_no_more(tmp_path, monkeypatch):
    """A thousand logs were asked and dropped from in one go."""
    with logkernel.open(tmp_path, log_retention_ms=1000, log_cleaner_enable=False) as log:
        broker = log.broker
        log.create_topic("t", 20)
        for partition in range(20):
            log.append_many("t", [Record(b"k", b"v", (), 1)], partition=partition)
        now = broker.runtime.clock.mono_ms()
        monkeypatch.setattr(type(broker.runtime.clock), "mono_ms", lambda self: now)
        monkeypatch.setattr(retention, "TURN_MS", 0)
        broker.retention.drop_all()
        gone = lambda: sum(log.start_offset("t", partition) for partition in range(20))  # noqa: E731
        assert gone() == 1
        broker.retention.drop_all()  # the next look comes before the first is through: it starts over, once
        for turn in range(40):
            now += 1
            broker.runtime.timers.run(now)
            assert gone() <= 2 + turn
        assert gone() == 20


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_the_first_look_at_a_log_of_many_segments_takes_turns(policy, tmp_path, monkeypatch):
    """Of 10,000 segments it opened 10,000 files or more in one go, while every request waited."""
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy=policy, retention_ms=1000, min_cleanable_dirty_ratio=0.0)
        for _ in range(100):
            log.append_many("t", [Record(b"k", b"v", (), 1)])
            log.broker.replicas.get(NAME).log.roll(0)
    opened = 0
    plain_open, plain_map = RealDisk.open, RealDisk.map

    def count(plain):
        def counted(self, path, *args, **options):
            nonlocal opened
            opened += "/t-0/" in path
            return plain(self, path, *args, **options)

        return counted

    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        broker = log.broker
        now = broker.runtime.clock.mono_ms()
        monkeypatch.setattr(type(broker.runtime.clock), "mono_ms", lambda self: now)
        monkeypatch.setattr(retention, "TURN_MS", 0)
        monkeypatch.setattr(cleaner, "TURN_MS", 0)
        monkeypatch.setattr(retention, "DROPPED_IN_A_TURN", 10)
        monkeypatch.setattr(RealDisk, "open", count(plain_open))
        monkeypatch.setattr(RealDisk, "map", count(plain_map))
        through = lambda: log.start_offset("t") == 100  # noqa: E731
        if policy == "delete":
            broker.retention.drop_all()
        else:
            broker.cleaner.compact("t", lambda results: None)
            through = lambda: broker.cleaner.job_of(broker.replicas.get(NAME)) is not None  # noqa: E731
        turns = left = 0
        while not through() or (policy == "delete" and log.broker.replicas.get(NAME).log.segment_count > 1):
            before, opened_before = broker.replicas.get(NAME).log.segment_count, opened
            now += 1
            broker.runtime.timers.run(now)
            assert opened - opened_before <= 3 or through(), "files are opened in one go"
            left = max(left, before - broker.replicas.get(NAME).log.segment_count)
            turns += 1
            assert turns < 300
        assert turns > 90
        assert left == (10 if policy == "delete" else 0)
        monkeypatch.undo()
        wait(log, lambda: not broker.cleaner.under_way, "the rewrite does not end")


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_logs_as_there_are_threads_are_rewritten_side_by_side_the_dirtiest_first(
    threads, tmp_path, monkeypatch
):
    monkeypatch.setattr(cleaner, "TURN_MS", 10**9)  # however slow the machine is, one turn asks all
    with logkernel.open(tmp_path, log_cleaner_enable=False, log_cleaner_threads=threads) as log:
        broker = log.broker
        log.create_topic("t", 4, cleanup_policy="compact", segment_bytes=SEGMENT)
        for fill_bytes in ([5000] * 4, [6000, 60_000, 7000, 30_000]):
            for partition, size in enumerate(fill_bytes):
                log.append("t", bytes(size), key=b"%d" % size, partition=partition)
                broker.replicas.get(TopicPartition("t", partition)).log.roll(0)
            if size == 5000:
                log.compact("t")
        works: list[tuple] = []
        plain, broker.runtime.workers.run = broker.runtime.workers.run, lambda *work: works.append(work)
        broker.cleaner.start_dirtiest()
        assert [name.partition for name in broker.cleaner.under_way] == [1, 3][:threads]
        broker.cleaner.start_dirtiest()
        assert len(broker.cleaner.under_way) == threads
        monkeypatch.setitem(broker.runtime.config._values, "log.cleaner.enable", True)
        broker.runtime.workers.run = plain
        for work in works:
            plain(*work)
        cleans = lambda: [broker.replicas.get(TopicPartition("t", n)).log.clean_offset for n in range(4)]  # noqa: E731
        wait(log, lambda: cleans() == [2, 2, 2, 2], "those that come next do not")


def test_of_several_policies_the_most_urgent_rewrites_and_none_where_there_is_no_need_any_more(opened, monkeypatch):
    plans = [[("a", Rewrite(0, 1, None, "", 0.2)), ("b", Rewrite(0, 1, None, "", 0.9)), ("a", DropBefore(0, ""))], []]
    monkeypatch.setattr(CleanupPolicies, "plans", lambda self, replica: plans.pop(0))
    found = []
    plain = cleaner.Cleaner._rewrite_of
    monkeypatch.setattr(cleaner.Cleaner, "_rewrite_of", lambda *one: found.append(plain(*one)) or found[-1])
    opened.broker.cleaner.start_dirtiest()
    assert [each and each[0] for each in found] == ["b", None]
    assert opened.broker.cleaner.under_way == []
    assert opened.broker.cleaner.uncleanable == {}


def test_a_new_limit_of_what_cleaners_read_and_write_holds_at_once(tmp_path):
    with logkernel.open(tmp_path, log_cleaner_backoff_ms=1) as log:
        log.create_topic("t", 1, cleanup_policy="compact")
        throttle = log.broker.cleaner._throttle
        with log.admin() as admin:
            for limit, begin in ((1e9, lambda: log.compact("t")), (2e9, lambda: None)):
                admin.alter_configs({("broker", "1"): {"log.cleaner.io.max.bytes.per.second": str(limit)}})
                begin()
                if limit == 2e9:
                    wait(log, lambda: throttle.bytes_per_s == 2e9, "the clock has the old limit")
                assert throttle.bytes_per_s == limit
