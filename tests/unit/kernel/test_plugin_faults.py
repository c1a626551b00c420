"""A plugin that fails in a hook is named, and costs nobody else anything."""

from __future__ import annotations

import logging

import pytest

from logkernel.errors import PluginError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.plugin_faults import MAX_ROWS, Origin, PluginFaults
from logkernel.plugins.cleanup.delete import Delete


class Observer:
    """Raises in one telling hook, and remembers another."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    @hookimpl
    def logkernel_topic_created(self, topic):
        raise RuntimeError("a bug of its author")

    @hookimpl
    def logkernel_topic_deleted(self, topic):
        self.deleted.append(topic)


class Second(Observer):
    def __init__(self) -> None:
        super().__init__()
        self.created: list[str] = []

    @hookimpl
    def logkernel_topic_created(self, topic, partitions):
        self.created.append(f"{topic}/{partitions}")


class BadProvider:
    @hookimpl
    def logkernel_partitioner(self, name):
        raise ZeroDivisionError("division by zero")

    @hookimpl
    def logkernel_services(self):
        raise RuntimeError("no services today")


def test_an_observer_that_raises_is_named_and_the_others_are_told(caplog):
    first, second = Observer(), Second()
    kernel = Kernel(plugins=[second, first])
    kernel.tell("logkernel_topic_created", topic="t", partitions=3)
    kernel.tell("logkernel_topic_deleted", topic="t")
    assert second.created == ["t/3"]
    assert first.deleted == second.deleted == ["t"]
    (row,) = kernel.faults
    assert (row.place, row.count, row.error) == ("logkernel_topic_created", 1, "RuntimeError: a bug of its author")
    (told,) = [message for message in caplog.messages if "plugin failed" in message]
    assert "in=logkernel_topic_created" in told
    assert f"plugin={row.origin.plugin}" in told


def test_a_provider_that_raises_is_named_in_one_line():
    kernel = Kernel(plugins=[BadProvider()])
    with pytest.raises(PluginError) as refused:
        kernel.partitioner("mine", {}, 0)
    assert "failed in logkernel_partitioner: ZeroDivisionError: division by zero; " in str(refused.value)
    assert f"plugin 'BadProvider' in {__file__!r} failed" in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(PluginError, match="failed in logkernel_services: RuntimeError: no services today"):
        kernel.services()


def test_a_hook_that_takes_long_is_logged(monkeypatch, caplog):
    times = iter([0.0, 10.0])
    monkeypatch.setattr("logkernel.kernel.hooks.monotonic", lambda: next(times))
    kernel = Kernel(plugins=[Second()])
    kernel.tell("logkernel_topic_deleted", topic="t")
    (row,) = kernel.faults
    assert row.error.startswith("took 10,000 ms")
    assert any("plugin misbehaved" in message and "took 10,000 ms" in message for message in caplog.messages)


def test_a_call_is_told_of_without_what_was_told_of_calls_within_it():
    faults = PluginFaults()
    before_ms = faults.told_ms
    assert faults.took(Origin("inner", "d"), "assignor a", 4_000, before_ms) == 4_000
    assert faults.took(Origin("other", "d"), "assignor b", 3_000, before_ms + 4_000) == 3_000
    assert faults.took(Origin("outer", "d"), "service s", 7_900, before_ms) == 900
    assert [row.origin.plugin for row in faults] == ["inner", "other"]
    assert faults.took(Origin("outer", "d"), "service s", 8_500, before_ms) == 1_500
    assert [row.error.split(",")[0] for row in faults] == ["took 4", "took 3", "took 1"]


def test_a_fault_that_repeats_counts_up_and_logs_ever_less(caplog):
    faults = PluginFaults()
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            faults.raised(Origin("p", "d"), "on_timer", ValueError("no"), "ignored")
    (row,) = faults
    assert row.count == 100
    assert len(caplog.records) == 7


def test_the_rows_kept_are_bounded():
    faults = PluginFaults()
    for number in range(MAX_ROWS + 50):
        faults.misbehaved(Origin("p", "d"), f"place {number}", "wrong", "ignored")
    assert len(faults) == MAX_ROWS


def test_the_origin_of_an_object_is_its_plugin():
    kernel = Kernel()
    assert kernel.origin_of(Delete()) == Origin("cleanup-delete", "logkernel")
    assert kernel.origin_of(kernel.codec("gzip")) == Origin("codec-gzip", "logkernel")
    assert kernel.origin_of(object()).distribution == "unknown"
