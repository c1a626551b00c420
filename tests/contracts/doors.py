"""Every way into one log, with the face of the synchronous clients: so one suite runs over all of them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import logkernel
from logkernel import aio
from logkernel.client.admin.aio_client import AsyncAdmin
from logkernel.client.producer.aio_producer import AsyncDelivery
from logkernel.vocabulary import Record

WAYS = ["embedded", "tcp", "embedded-aio", "tcp-aio"]


class Bridged:
    """Something of asyncio's whose loop runs in a thread: its methods are called there, and waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, made: Any) -> None:
        self._loop = loop
        self._made = made

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        if not callable(found):
            return found

        async def inside(*arguments: Any, **details: Any) -> Any:
            result = found(*arguments, **details)
            return await result if inspect.isawaitable(result) else result

        def call(*arguments: Any, **details: Any) -> Any:
            result = self._run(inside(*arguments, **details))
            return Bridged(self._loop, result) if isinstance(result, AsyncAdmin | AsyncDelivery) else result

        return call

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self._run(self._made.__anext__())

    def __enter__(self) -> Bridged:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BridgedLog:
    """A log of `logkernel.aio`; clients are made on its loop, and closed with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: aio.AsyncLog | aio.AsyncRemoteLog) -> None:
        self._loop = loop
        self._log = log
        self._clients: list[Bridged] = []

    def _make(self, kind: str, *arguments: Any, **settings: Any) -> Bridged:
        async def inside() -> Any:
            return getattr(self._log, kind)(*arguments, **settings)

        made = Bridged(self._loop, asyncio.run_coroutine_threadsafe(inside(), self._loop).result(60))
        self._clients.append(made)
        return made

    def producer(self, **settings: Any) -> Bridged:
        return self._make("producer", **settings)

    def consumer(self, *topics: str, **settings: Any) -> Bridged:
        return self._make("consumer", *topics, **settings)

    def admin(self, **settings: Any) -> Bridged:
        return self._make("admin", **settings)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@contextmanager
def running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def way_into(log: logkernel.EmbeddedLog, way: str) -> Iterator[Any]:
    """What has `producer()`, `consumer()` and `admin()` as `way` says."""
    if way == "embedded":
        yield log
    elif way == "tcp":
        with logkernel.connect(log.listen()) as remote:
            yield remote
    else:
        far = aio.connect(log.listen()) if way == "tcp-aio" else aio.AsyncLog(log)
        with running_loop() as loop:
            bridged = BridgedLog(loop, far)
            yield bridged
            bridged.close()
            if isinstance(far, aio.AsyncRemoteLog):
                asyncio.run_coroutine_threadsafe(far.close(), loop).result(60)


class Bench:
    """A log, read and written by the kernel itself, and clients that come to it as `far` does."""

    def __init__(self, log: logkernel.EmbeddedLog, far: Any) -> None:
        self.log = log
        self.producer = far.producer
        self._consumer = far.consumer
        self._topics = 0

    def topic(self, partitions: int = 1, records: int = 0, **settings: Any) -> str:
        self._topics += 1
        name = f"t{self._topics}"
        self.log.create_topic(name, partitions, **settings)
        for index in range(partitions):
            self.put(name, index, records)
        return name

    def put(self, topic: str, partition: int, count: int) -> None:
        for start in range(0, count, 10):
            rows = [Record(b"k", b"%d" % number) for number in range(start, min(count, start + 10))]
            self.log.append_many(topic, rows, partition=partition)

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        return list(self.log.read(topic, partition))

    def consumer(self, *topics: str, **settings: Any) -> Any:
        return self._consumer(*topics, **{"auto_offset_reset": "earliest", **settings})
