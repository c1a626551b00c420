"""The admin client itself: its operations, deadlines, threads, forks, its end."""

from __future__ import annotations

import inspect
import os
import threading
import time

import pytest
from administering import Bench

import logkernel
from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.admin.client import Admin
from logkernel.errors import ConfigError, LogkernelError, RequestTimedOut

OPERATIONS = [name for name, found in vars(Admin).items() if type(found).__name__ == "_Blocking"]


def test_the_twins_have_the_same_operations() -> None:
    twins = [name for name, found in vars(AsyncAdmin).items() if type(found).__name__ == "_Awaited"]
    assert twins == OPERATIONS
    assert len(OPERATIONS) > 40
    for name in OPERATIONS:
        assert inspect.signature(getattr(Admin, name).plan) == inspect.signature(getattr(AsyncAdmin, name).plan)
        assert getattr(Admin, name).__doc__, name


def test_a_closed_client_says_so(bench: Bench) -> None:
    view = bench.admin.within(5)
    assert view.list_topics() == {}
    bench.admin.close()
    bench.admin.close()
    assert view.closed
    for admin in (bench.admin, view):
        with pytest.raises(LogkernelError, match="closed"):
            admin.list_topics()


def test_a_deadline_ends_an_operation() -> None:
    """Nobody answers at this address."""
    with logkernel.connect("127.0.0.1:1") as log, log.admin(default_api_timeout_ms=300) as admin:
        start_s = time.monotonic()
        with pytest.raises(RequestTimedOut):
            admin.list_topics()
        with pytest.raises(RequestTimedOut):
            admin.within(0.05).describe_topics("a")
        assert time.monotonic() - start_s < 30
        assert admin.metrics()["operations-failed-total"] == 2


def test_operations_of_many_threads(bench: Bench) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for index in range(5):
                bench.admin.create_topics(f"t-{number}-{index}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(bench.admin.list_topics()) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_fork_opens_another() -> None:
    with logkernel.open() as log, logkernel.connect(log.listen()) as remote, remote.admin() as admin:
        admin.list_topics()
        pid = os.fork()
        if pid == 0:
            try:
                admin.list_topics()
            except LogkernelError as error:
                os._exit(0 if "fork" in str(error) else 3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        admin.create_topics("still-alive")


def test_an_interrupt_gives_the_operation_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with logkernel.open() as log, log.admin() as admin:
        with monkeypatch.context() as patch:

            def interrupted(*_: object) -> bool:
                raise KeyboardInterrupt

            patch.setattr(admin._driver, "wait", interrupted)
            with pytest.raises(KeyboardInterrupt):
                admin.list_topics()
        assert admin._machine._operations == []
        assert admin.list_topics() == {}


def test_an_unknown_setting_is_refused() -> None:
    with logkernel.open() as log, pytest.raises(ConfigError, match=r"default\.api\.timeout\.ms"):
        log.admin(default_api_timeout=5)
