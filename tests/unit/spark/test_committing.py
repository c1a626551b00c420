"""Offsets of a stream as a group's: what is committed, and that a failure stops nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import logkernel
from logkernel.errors import NetworkException
from logkernel.plugins.spark.committing import GroupCommits
from logkernel.plugins.spark.options import parse
from logkernel.vocabulary import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**given: str) -> Any:
    return parse({"bootstrap.servers": "host:1", "subscribe": "t", **given})


def test_nothing_is_committed_without_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[object] = []
    monkeypatch.setattr(logkernel, "connect", lambda *given, **more: connected.append(given))
    commits = GroupCommits(options())
    commits.commit({A: 5})
    commits.close()
    assert connected == []


def test_what_changed_is_committed(caplog: pytest.LogCaptureFixture) -> None:
    with logkernel.open() as log:
        log.create_topic("t", 2)
        address = log.listen("127.0.0.1:0")
        found = {"commitGroup": "g", "kafka.group.id": "other", "kafka.request.timeout.ms": "9000"}
        commits = GroupCommits(parse({"bootstrap.servers": address, "subscribe": "t", **found}))
        commits.commit({A: 5, B: 7})
        commits.commit({A: 5, B: 9})
        commits.close()
        commits.close()
        with logkernel.connect(address).consumer(group="g") as consumer:
            rows = consumer.committed([A, B])
    assert {name: row.offset for name, row in rows.items()} == {A: 5, B: 9}


def test_a_failure_is_told_and_made_good(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Any] = []

    class Consumer:
        broken = True

        def commit(self, offsets: Any, timeout_s: float) -> None:
            asked.append(offsets)
            if self.broken:
                raise NetworkException("away")

    commits = GroupCommits(options(commitgroup="g"))
    consumer: Any = Consumer()
    commits._consumer = consumer
    with caplog.at_level(logging.WARNING, "logkernel.spark"):
        commits.commit({A: 5, B: 7})
    assert "group=g" in caplog.text
    consumer.broken = False
    commits.commit({A: 6, B: 7})
    commits.commit({A: 6, B: 7})
    assert asked == [{A: 5, B: 7}, {A: 6, B: 7}]
