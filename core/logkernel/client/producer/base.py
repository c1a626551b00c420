"""What the synchronous and the asyncio producer share: their parts, flush and close.

A producer has an appender (`send`), transaction calls, and helpers. A call that may wait is a generator of `steps`,
which a runner carries out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from random import Random
from typing import Any, Generic, TypeVar

from logkernel.client.base import BaseClient
from logkernel.client.helpers import Helpers
from logkernel.client.producer.append import Appender
from logkernel.client.producer.compression import choose_codec
from logkernel.client.producer.deliveries import BaseDelivery
from logkernel.client.producer.outgoing import Preparer
from logkernel.client.producer.sender import Sender
from logkernel.client.producer.topic_partitioners import TopicPartitioners
from logkernel.client.producer.transaction_calls import TransactionCalls
from logkernel.client.steps import End, Steps, WaitForBatch, deadline_of
from logkernel.errors import RequestTimedOut
from logkernel.kernel import Kernel

D = TypeVar("D", bound=BaseDelivery)


def make_sender(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel) -> Sender:
    """Return the machine of one producer."""
    codec = choose_codec(settings, kernel)
    return Sender(settings, bootstrap, Random(os.urandom(8)), codec, kernel.codec_for)


class ProducerBase(BaseClient, Generic[D]):
    """See the module. `kind` is the class of deliveries that `send` returns."""

    __slots__ = ("_path",)
    """For speed: the compiled `send` reads this slot without looking up its name."""

    def __init__(self, kind: type[D], driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, settings)
        self._accumulator = driver.machine.accumulator
        self._accumulator.owner = driver
        self._helpers = Helpers(driver, kernel, settings)
        self._transactions = TransactionCalls(driver, settings, self._state)
        self._appender: Appender[D] = Appender(
            kind,
            driver,
            Preparer(self._helpers, settings),
            settings,
            TopicPartitioners(driver.machine.core, kernel, settings),
            self._state,
        )
        self._path = self._appender.path

    def forked(self) -> None:
        """Called in the child of a fork: send nothing, and wait for no lock of the parent."""
        super().forked()
        self._appender.topics.forget()

    def begin_transaction(self) -> None:
        """Begin a transaction: later records become visible with its commit.

        Raises `LogkernelError` without transactional.id, before `init_transactions`, or if a transaction is open.
        """
        self._transactions.begin()

    def _flush(self, timeout_s: float | None) -> Steps[None]:
        deadline_s = deadline_of(timeout_s)
        with self._lock:
            self._accumulator.flushing += 1
            pending = list(self._accumulator.incomplete)
        try:
            self._driver.wake()
            while pending:
                batch = pending.pop()
                if not (yield WaitForBatch(batch, deadline_s)):
                    raise RequestTimedOut(f"records have no outcome after {timeout_s} s; check the brokers")
                pending.extend(child for _, child in batch.children or ())
        finally:
            with self._lock:
                self._accumulator.flushing -= 1

    def _close(self, timeout_s: float | None) -> Steps[None]:
        if self.closed:
            return
        deadline_s = deadline_of(timeout_s)
        if not self._driver.closed and self._transactions.under_way:
            with contextlib.suppress(Exception):
                yield from self._transactions.end(commit=False, deadline_s=deadline_s)
        with self._lock:
            self._state.closed = True
            self._appender.topics.forget()
            self._accumulator.closing = True
        try:
            yield End(deadline_s)
        finally:
            self._helpers.close()
