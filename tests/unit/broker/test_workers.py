"""Threads for long work: what they tell, and that they make way for requests."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator

import pytest

from logkernel.broker.workers import NICENESS, Workers

WAIT_S = 10


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers("test-worker", 2)
    yield made
    made.close()


def done(workers: Workers, work: object) -> BaseException | None:
    told: list[BaseException | None] = []
    workers.run(work, told.append)  # type: ignore[arg-type]
    assert workers.news.wait(WAIT_S)
    assert told == []  # on the broker's thread alone
    workers.hear()
    (error,) = told
    return error


def test_what_the_work_raised_is_told(workers: Workers) -> None:
    def fail() -> None:
        raise OSError("gone")

    assert done(workers, lambda: None) is None
    assert repr(done(workers, fail)) == "OSError('gone')"


@pytest.mark.skipif(sys.platform != "linux", reason="threads share a priority here")
def test_work_makes_way_for_requests(workers: Workers) -> None:
    found: list[int] = []
    before = os.getpriority(os.PRIO_PROCESS, 0)
    assert done(workers, lambda: found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))) is None
    assert found == [max(before, NICENESS)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
