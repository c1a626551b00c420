"""Workers on threads and those that a simulation steps: one contract."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from logkernel.broker.workers import SteppedWorkers, ThreadWorkers, Workers


@pytest.fixture(params=[lambda: ThreadWorkers("test", 2), SteppedWorkers], ids=["threads", "stepped"])
def workers(request: pytest.FixtureRequest) -> Workers:
    made: Callable[[], Workers] = request.param
    return made()


def heard(workers: Workers, told: list[object], count: int) -> list[object]:
    for _ in range(1_000):
        if len(told) >= count:
            break
        workers.wait(0.01)
        workers.poll()
    return told


def test_what_came_of_a_job_is_told_when_its_owner_listens(workers: Workers) -> None:
    order: list[object] = []
    rang: list[None] = []
    workers.set_wakeup(lambda: rang.append(None))
    workers.run(lambda: order.append("work"), lambda error: order.append(error))
    assert heard(workers, order, 2) == ["work", None]
    assert rang == [None]
    workers.close()


def test_what_a_job_raises_is_told(workers: Workers) -> None:
    told: list[object] = []
    fault = OSError("the disk")

    def work() -> None:
        raise fault

    workers.run(work, told.append)
    assert heard(workers, told, 1) == [fault]
    workers.close()


def test_after_close_nobody_is_told(workers: Workers) -> None:
    told: list[object] = []
    workers.run(lambda: None, told.append)
    workers.hurry()
    workers.pause(60)
    workers.close()
    workers.poll()
    assert told == []


def test_a_pause_of_a_thread_ends_in_a_hurry() -> None:
    workers, told, begun = ThreadWorkers("test", 1), [], threading.Event()

    def work() -> None:
        begun.set()
        workers.pause(60)

    workers.run(work, told.append)
    begun.wait(60)
    workers.hurry()
    assert heard(workers, told, 1) == [None]
    workers.close()


def test_jobs_run_in_the_order_that_their_owner_wants() -> None:
    workers, done = SteppedWorkers(), []
    for name in "abc":
        workers.run(lambda name=name: done.append(name), lambda error: None)  # type: ignore[misc]
    assert [workers.run_one(1), workers.run_one(), workers.run_one(), workers.run_one()] == [True, True, True, False]
    assert done == ["b", "a", "c"]


def test_a_power_cut_in_a_job_ends_the_machine() -> None:
    def work() -> None:
        raise KeyboardInterrupt

    workers = SteppedWorkers()
    workers.run(work, lambda error: None)
    with pytest.raises(KeyboardInterrupt):
        workers.run_one()


def test_a_stepped_job_pauses_without_time() -> None:
    workers = SteppedWorkers()
    workers.run(lambda: workers.pause(3_600), lambda error: None)
    assert workers.run_one()
    assert workers.paused_s == 3_600


def test_what_another_thread_calls_is_done_when_the_owner_listens(workers: Workers) -> None:
    told: list[object] = []
    caller = threading.Thread(target=lambda: workers.call(lambda: told.append("called")))
    caller.start()
    caller.join()
    assert heard(workers, told, 1) == ["called"]
    workers.close()
