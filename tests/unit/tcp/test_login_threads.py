"""Logins that block are answered in time; those that hang take nobody else's place for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from logkernel.errors import RequestTimedOut
from logkernel.plugins.transport.tcp.login_threads import LoginThreads, on_thread

LONG_MS, SHORT_MS = 60_000, 1
Answer = tuple[bytes, BaseException | None]


def ask(threads: LoginThreads, work: Callable[[], bytes], limit_ms: int = LONG_MS) -> asyncio.Future[Answer]:
    found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    threads.run(work, lambda result, error: found.set_result((result, error)), limit_ms)
    return found


def run(go: Callable[[threading.Event], Any]) -> None:
    """`go` gets an event at which what hangs ends."""
    end = threading.Event()
    try:
        asyncio.run(go(end))
    finally:
        end.set()


def hanging(end: threading.Event, result: bytes = b"") -> Callable[[], bytes]:
    def work() -> bytes:
        end.wait()
        return result

    return work


def failing() -> bytes:
    raise ZeroDivisionError("a bug")


def test_what_it_returns_or_raises_comes_back_on_the_loop() -> None:
    async def go(_: threading.Event) -> None:
        threads, home, seen = LoginThreads(asyncio.get_running_loop()), threading.get_ident(), list[int]()
        ended = asyncio.Event()

        def done(result: bytes, error: BaseException | None) -> None:
            seen.append(threading.get_ident())
            ended.set()

        threads.run(lambda: b"yes", done, LONG_MS)
        await ended.wait()
        assert seen == [home]
        assert await ask(threads, lambda: b"yes") == (b"yes", None)
        _, error = await ask(threads, failing)
        assert isinstance(error, ZeroDivisionError)

    run(go)


def test_one_that_hangs_is_refused_and_its_place_is_another_ones() -> None:
    async def go(end: threading.Event) -> None:
        threads = LoginThreads(asyncio.get_running_loop(), most_at_once=1)
        late = ask(threads, hanging(end, b"too late"), SHORT_MS)
        next_one = ask(threads, lambda: b"yes")
        _, error = await late
        assert isinstance(error, RequestTimedOut)
        assert await next_one == (b"yes", None)
        end.set()

    run(go)


def test_no_more_than_some_run_at_once() -> None:
    async def go(end: threading.Event) -> None:
        threads, lock, running, most = LoginThreads(asyncio.get_running_loop(), most_at_once=2), threading.Lock(), 0, 0
        two = threading.Barrier(2)

        def work() -> bytes:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            two.wait(LONG_MS / 1000)
            end.wait(0.01)  # for a third
            with lock:
                running -= 1
            return b""

        await asyncio.gather(*(ask(threads, work) for _ in range(12)))
        assert most == 2

    run(go)


def test_where_too_many_hang_others_are_refused_until_one_returns() -> None:
    async def go(end: threading.Event) -> None:
        threads, ran = LoginThreads(asyncio.get_running_loop(), most_given_up=2), list[int]()
        for _ in range(2):
            await ask(threads, hanging(end), SHORT_MS)
        _, error = await ask(threads, lambda: bytes(ran.append(1) or b""), SHORT_MS)
        assert isinstance(error, RequestTimedOut)
        assert not ran
        waiting = ask(threads, lambda: b"yes")
        end.set()
        assert await waiting == (b"yes", None)

    run(go)


def test_a_listener_that_closes_answers_nobody() -> None:
    async def go(end: threading.Event) -> None:
        threads = LoginThreads(asyncio.get_running_loop(), most_at_once=1)
        asked = [ask(threads, hanging(end)), ask(threads, failing)]
        threads.close()
        end.set()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED), 0.05)

    run(go)


def test_a_thread_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    async def go(end: threading.Event) -> None:
        threads = LoginThreads(asyncio.get_running_loop())
        await ask(threads, hanging(end), SHORT_MS)
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "logkernel-authenticate")
        end.set()

    run(go)


def test_a_clients_login_ends_with_its_loop_and_not_the_loop_with_it() -> None:
    async def go(end: threading.Event) -> None:
        def hang() -> bytes:
            hung.append(threading.current_thread())
            return hanging(end)()

        loop = asyncio.get_running_loop()
        assert await on_thread(loop, lambda: b"yes") == b"yes"
        with pytest.raises(ZeroDivisionError, match="a bug"):
            await on_thread(loop, failing)
        late = on_thread(loop, hang)
        while not hung:
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await late

    hung: list[threading.Thread] = []
    run(go)
    (thread,) = hung
    assert thread.daemon
    thread.join()
