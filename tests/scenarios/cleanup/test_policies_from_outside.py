"""Cleanup policies of a stranger: his rules, and his bugs."""

from __future__ import annotations

import threading

import pytest
from filling import NAME, SEGMENT, fill, wait

from logkernel.broker.workers import ThreadWorkers
from logkernel.contracts import DropBefore, LogFacts, Rewrite
from logkernel.errors import InvalidConfig
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import TopicPartition


class KeepsHeader:
    """A stranger's rule: records stay that have a header."""

    def learn(self, batch) -> int | None:
        return None

    def keep(self, batch, end) -> bytearray:
        return bytearray(bool(record.headers) or record.offset >= end for record in batch.records())


class Stranger:
    def plan(self, log: LogFacts):
        closed = [each for each in log.segments if not each.active]
        if not closed or log.clean_offset == closed[-1].next_offset:
            return []
        return [Rewrite(closed[0].base_offset, closed[-1].next_offset, KeepsHeader(), "headers", tombstones=False)]


class Plugin:
    @hookimpl
    def logkernel_cleanup(self, name):
        return {"headers": Stranger(), "broken": Broken()}.get(name)

    @hookimpl
    def logkernel_names(self):
        return [("cleanup policy", "headers"), ("cleanup policy", "broken")]


class Broken:
    def plan(self, log: LogFacts):
        raise RuntimeError("a bug of its author")


def opened(folder, *plugins):
    from logkernel.broker.broker import Broker
    from logkernel.broker.runtime import Runtime
    from logkernel.config.broker import BrokerConfig
    from logkernel.embed import EmbeddedLog
    from logkernel.kernel import Kernel

    kernel = Kernel(plugins=plugins)
    given = [f"log.dirs={folder}", "log.cleaner.backoff.ms=10"]
    config = BrokerConfig.load(None, given, kernel.declarations())
    runtime = Runtime(config, kernel)
    return EmbeddedLog(Broker(runtime))


@pytest.fixture
def with_plugin(tmp_path):
    with opened(tmp_path, Plugin()) as log:
        yield log


def test_a_stranger_brings_his_own_policy(with_plugin):
    log = with_plugin
    log.create_topic("t", 1, cleanup_policy="headers")
    for number in range(20):
        log.append("t", None if number == 4 else b"v", headers={"h": b"1"} if number % 4 == 0 else {})
    log.compact("t")
    assert [record.offset for record in log.read("t")] == [0, 4, 8, 12, 16]
    assert DropBefore  # the contract has both kinds of steps


def test_what_a_rule_learned_is_given_back_on_the_workers_thread(with_plugin, monkeypatch):
    """128 MB of keys take milliseconds to free, and the loop did it."""
    log, threads, waits, original = with_plugin, [], threading.Event(), ThreadWorkers.wait

    class Learned:
        def __del__(self):
            threads.append(threading.get_ident())

    def waiting(workers, seconds):
        waits.set()
        original(workers, seconds)

    def learn(rule, batch):
        assert waits.wait(120), "whoever began the rewrite has no more to do with the rule"
        rule.learned = Learned()

    monkeypatch.setattr(ThreadWorkers, "wait", waiting)
    monkeypatch.setattr(KeepsHeader, "learn", learn)
    log.create_topic("t", 1, cleanup_policy="headers")
    log.append("t", b"v", headers={"h": b"1"})
    log.compact("t")
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_a_broken_policy_costs_only_its_own_topic(with_plugin, caplog):
    log = with_plugin
    log.create_topic("bad", 1, cleanup_policy="broken")
    log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
    log.append("bad", b"v")
    fill(log)
    wait(log, lambda: (log.broker.replicas.get(NAME).log.clean_offset or 0) > 0, "the other topic is not compacted")
    wait(log, lambda: TopicPartition("bad", 0) in log.broker.cleaner.uncleanable, "not marked")
    assert "a bug of its author" in caplog.text
    assert [record.value for record in log.read("bad")] == [b"v"]


def test_a_policy_whose_plugin_is_gone_cleans_nothing_and_its_topic_is_served(tmp_path, caplog):
    """The broker did not start."""
    with opened(tmp_path, Plugin()) as log:
        log.create_topic("t", 1, cleanup_policy="headers")
        log.append("t", b"before")
    with opened(tmp_path) as log:
        log.append("t", b"after")
        assert log.compact("t") == []
        assert "no plugin provides the cleanup policy 'headers'" in caplog.text
        assert [record.value for record in log.read("t")] == [b"before", b"after"]
        with pytest.raises(InvalidConfig, match="String must be one of: compact, delete"):
            log.create_topic("other", 1, cleanup_policy="headers")
    with opened(tmp_path, Plugin()) as log:
        log.append("t", b"with a header", headers={"h": b"1"})
        log.compact("t")
        assert [record.offset for record in log.read("t")] == [2]
