"""How a consumer's poll ends: by wrong use, a wakeup, a signal, a task that is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from typing import Any

import pytest
from consuming import QUICK, take
from doors import Bench

import logkernel
from logkernel import aio
from logkernel.client.vocabulary import WakeupError
from logkernel.errors import (
    ConfigError,
    InvalidRegularExpression,
    InvalidTopicException,
    LogkernelError,
)


def test_wrong_use_is_told(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="did you mean fetch"):
        bench.consumer("t", fetch_min_byte=1)
    with pytest.raises(InvalidTopicException):
        bench.consumer("")
    topic = bench.topic()
    consumer = bench.consumer(topic)
    consumer.close()
    consumer.close()
    with pytest.raises(LogkernelError, match="closed"):
        consumer.poll(0)
    with bench.consumer() as other:
        with pytest.raises(ValueError, match="not a regular expression"):
            other.subscribe(pattern="(")
        with pytest.raises(ValueError, match="not both"):
            other.subscribe("t", pattern="t")
    with bench.consumer(group="g", group_protocol="consumer") as other:
        other.subscribe(pattern="(")
        with pytest.raises(InvalidRegularExpression):
            take(other, 1)


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_wakeup_ends_a_poll_from_another_thread(kind: str) -> None:
    with logkernel.open() as log:
        log.create_topic("t", 1)
        remote = logkernel.connect(log.listen()) if kind == "tcp" else log
        with remote.consumer("t", auto_offset_reset="earliest") as consumer:
            consumer.poll(0.1)
            timer = threading.Timer(0.2, consumer.wakeup)
            timer.start()
            with pytest.raises(WakeupError):
                consumer.poll(None)
            timer.join()
            log.append("t", b"v")
            assert len(take(consumer, 1)) == 1, "once is once"
            consumer.wakeup()
            log.append("t", b"w")
            time.sleep(0.1)
            with pytest.raises(WakeupError):
                next(iter(consumer))
            assert [row.value for row in take(consumer, 1)] == [b"w"], "nothing was taken"
        if kind == "tcp":
            remote.close()


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_a_signal_handler_may_wake(kind: str) -> None:
    with logkernel.open() as log:
        log.create_topic("t", 1)
        remote = logkernel.connect(log.listen()) if kind == "tcp" else log
        with remote.consumer("t") as consumer:
            before = signal.signal(signal.SIGALRM, lambda *_: consumer.wakeup())
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                with pytest.raises(WakeupError):
                    consumer.poll(30)
            finally:
                signal.signal(signal.SIGALRM, before)
        if kind == "tcp":
            remote.close()


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_a_task_s_poll_is_cancelled_and_loses_nothing(kind: str) -> None:
    async def work(log: logkernel.EmbeddedLog) -> None:
        far: Any = aio.AsyncLog(log) if kind == "embedded" else aio.connect(log.listen())
        consumer = far.consumer("t", group="g", auto_offset_reset="earliest")
        poll = asyncio.ensure_future(consumer.poll(None))
        await asyncio.sleep(0.5)
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll
        found: list[Any] = []
        for number in range(40):
            await asyncio.to_thread(log.append, "t", b"%d" % number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(number % 5 / 1000):
                    found += await consumer.poll(None)
        while len(found) < 40:
            found += await consumer.poll(20)
        assert [row.offset for row in found] == list(range(40))
        await consumer.close()
        if kind == "tcp":
            await far.close()

    with logkernel.open(**QUICK) as log:
        log.create_topic("t", 1)
        asyncio.run(work(log))
