"""An open log in the children of a fork: it stays the parent's, and a child is refused before anything is written."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel import aio
from logkernel.errors import DataDirectoryLocked, LogkernelError
from logkernel.requests.cluster import MetadataRequest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

CALLS: dict[str, Callable[[logkernel.EmbeddedLog], Any]] = {
    "append": lambda log: log.append("t", b"the child's"),
    "append_many": lambda log: log.append_many("t", []),
    "read": lambda log: list(log.read("t")),
    "read_some": lambda log: log.read_some("t", 0, 0),
    "start_offset": lambda log: log.start_offset("t"),
    "end_offset": lambda log: log.end_offset("t"),
    "topics": lambda log: log.topics(),
    "create_topic": lambda log: log.create_topic("u"),
    "delete_topic": lambda log: log.delete_topic("t"),
    "step": lambda log: log.step(),
    "listen": lambda log: log.listen(),
    "producer": lambda log: log.producer(),
    "consumer": lambda log: log.consumer("t"),
    "admin": lambda log: log.admin(),
    "table": lambda log: log.table("t"),
    "compact": lambda log: log.compact("t"),
    "apply_retention": lambda log: log.apply_retention("t"),
    "request": lambda log: log.request(MetadataRequest()),
}


def in_child(work: Callable[[], None]) -> None:
    """Run `work` in a forked child; fail where it raises or does not end."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(120)
    if process.exitcode is None:
        process.kill()
    assert process.exitcode == 0


def test_children_of_a_fork_lose_nothing_of_the_parents_log(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    acknowledged = 0
    with logkernel.open(folder) as log:
        log.create_topic("t")
        fork = multiprocessing.get_context("fork")
        told = fork.Queue()

        def child() -> None:
            count = 0
            for number in range(100):
                try:
                    log.append("t", b"child %d" % number)
                    count += 1
                except LogkernelError:
                    break
            told.put(count)

        children = [fork.Process(target=child) for _ in range(4)]
        for process in children:
            process.start()
        log.append("t", b"parent")
        acknowledged += 1
        for process in children:
            acknowledged += told.get(timeout=60)
            process.join(120)
            assert process.exitcode == 0
    with logkernel.open(folder) as again:
        assert len(list(again.read("t"))) == acknowledged == 1
    checked = subprocess.run([sys.executable, "-m", "logkernel", "check", str(folder)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("listening", [False, True], ids=["alone", "listening"])
def test_every_call_is_refused_in_the_child(listening: bool) -> None:
    with logkernel.open() as log:
        log.create_topic("t")
        log.append("t", b"before")
        producer, consumer, admin = log.producer(), log.consumer("t"), log.admin()
        if listening:
            log.listen()

        def child() -> None:
            for name, call in CALLS.items():
                print(name)  # shown where it is not refused
                with pytest.raises(LogkernelError, match="fork"):
                    call(log)
            for use in (lambda: producer.send("t", b"x"), lambda: consumer.poll(1), lambda: admin.list_topics()):
                with pytest.raises(LogkernelError, match="fork"):
                    use()

        in_child(child)
        log.append("t", b"after")
        assert [record.value for record in log.read("t")] == [b"before", b"after"]


def test_a_child_may_close_the_log_and_the_parent_keeps_its_lock(tmp_path: Path) -> None:
    with logkernel.open(tmp_path) as log:
        log.create_topic("t")

        def child() -> None:
            with log:
                pass
            log.close()
            with pytest.raises(DataDirectoryLocked):
                logkernel.open(tmp_path)

        in_child(child)
        with pytest.raises(DataDirectoryLocked):
            logkernel.open(tmp_path)
        log.append("t", b"after")
    with logkernel.open(tmp_path) as again:
        assert [record.value for record in again.read("t")] == [b"after"]


def test_a_child_may_open_the_log_once_the_parent_has_closed_it(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    closed = fork.Event()

    def child() -> None:
        assert closed.wait(120)
        with logkernel.open(tmp_path) as own:
            own.append("t", b"the child's")

    with logkernel.open(tmp_path) as log:
        log.create_topic("t")
        process = fork.Process(target=child)
        process.start()
    closed.set()
    process.join(120)
    assert process.exitcode == 0
    with logkernel.open(tmp_path) as again:
        assert [record.value for record in again.read("t")] == [b"the child's"]


def test_a_log_for_asyncio_is_refused_too() -> None:
    async def refused(log: aio.AsyncLog) -> None:
        for use in (lambda: log.append("t", b"x"), lambda: log.topics(), lambda: log.listen()):
            with pytest.raises(LogkernelError, match="fork"):
                await use()
        for make in (log.producer, log.consumer, log.admin):
            with pytest.raises(LogkernelError, match="fork"):
                make()
        with pytest.raises(LogkernelError, match="fork"):
            _ = [record async for record in log.read("t")]
        await log.close()

    async def main() -> None:
        async with await aio.open() as log:
            await log.create_topic("t")
            await log.append("t", b"before")
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    await refused(log)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            await log.append("t", b"after")
            assert [record.value async for record in log.read("t")] == [b"before", b"after"]

    asyncio.run(main())
