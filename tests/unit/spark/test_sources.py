"""Sources between tasks: one waits for the next, unless something went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from logkernel.plugins.spark import sources
from logkernel.plugins.spark.options import parse


class Source:
    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    monkeypatch.setattr(sources, "_waiting", found)
    monkeypatch.setattr(sources, "opened", lambda options: Source())
    return found


def options(path: str = "a", **given: str) -> Any:
    return parse({"path": path, "subscribe": "t", **given})


def test_the_next_task_finds_it_open() -> None:
    with sources.borrowed(options()) as first:
        pass
    with sources.borrowed(options(startingoffsets="earliest")) as second, sources.borrowed(options()) as third:
        assert second is first
        assert third is not first
    with sources.borrowed(options("b")) as other:
        assert other not in (first, third)
    assert [first.closed, third.closed, other.closed] == [1, 0, 0]  # one of a kind waits


def test_settings_make_another_kind() -> None:
    with sources.borrowed(options()) as first:
        pass
    with sources.borrowed(options(**{"kafka.fetch.max.bytes": "5"})) as second:
        assert second is not first


def test_a_failed_or_forsaken_task_closes_it(waiting: dict[Any, Any]) -> None:
    with pytest.raises(ValueError), sources.borrowed(options()) as first:
        raise ValueError

    def rows() -> Iterator[Any]:
        with sources.borrowed(options()) as found:
            yield found
            yield found

    task = rows()
    second = next(task)
    task.close()
    assert [first.closed, second.closed] == [1, 1]
    assert not waiting


def test_only_some_wait(waiting: dict[Any, Any]) -> None:
    for number in range(sources.MOST + 2):
        with sources.borrowed(options(str(number))):
            pass
    assert len(waiting) == sources.MOST


def test_a_forked_worker_takes_none_of_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    with sources.borrowed(options()) as first:
        pass
    monkeypatch.setattr(sources.os, "getpid", lambda: -1)
    with sources.borrowed(options()) as second:
        assert second is not first
