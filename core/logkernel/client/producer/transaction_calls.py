"""The transaction calls of one producer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from logkernel.client.base import ClientState
from logkernel.client.drivers.driver import Driver
from logkernel.client.producer.transactions import IN_TRANSACTION, Operation, Transactions
from logkernel.client.steps import Steps, Wait, deadline_of
from logkernel.client.vocabulary import GroupMetadata, Offsets
from logkernel.errors import LogkernelError, RequestTimedOut


class TransactionCalls:
    """See the module."""

    def __init__(self, driver: Driver, settings: Mapping[str, Any], state: ClientState) -> None:
        self._driver = driver
        self._machine: Transactions = driver.machine.transactions
        self._max_block_ms: int = settings["max.block.ms"]
        self._transactional: bool = settings["transactional.id"] is not None
        self._state = state

    @property
    def under_way(self) -> bool:
        return self._transactional and self._machine.state == IN_TRANSACTION

    def init(self) -> Steps[None]:
        yield from self._operate(self._machine.init)

    def begin(self) -> None:
        with self._driver.lock:
            self._check_transactional()
            self._machine.begin()

    def send_offsets(self, offsets: Offsets, group: str | GroupMetadata) -> Steps[None]:
        member = GroupMetadata(group) if isinstance(group, str) else group
        yield from self._operate(lambda: self._machine.send_offsets(offsets, member))

    def end(self, *, commit: bool, deadline_s: float | None = None) -> Steps[None]:
        yield from self._operate(lambda: self._machine.end(commit=commit), deadline_s)

    def commit_or_abort(self) -> Steps[None]:
        """End a transaction: commit it, or abort it if a record failed."""
        try:
            yield from self.end(commit=True)
        except Exception:
            with contextlib.suppress(Exception):
                yield from self.end(commit=False)
            raise

    def _operate(self, start: Callable[[], Operation], deadline_s: float | None = None) -> Steps[None]:
        """Start an operation, and wait for its result, by default up to max.block.ms."""
        with self._driver.lock:
            self._check_transactional()
            operation = start()
        limit_s = deadline_of(self._max_block_ms / 1000) if deadline_s is None else deadline_s
        if not (yield Wait(lambda: operation.done, limit_s)):
            raise RequestTimedOut(
                f"the transaction coordinator did not answer within max.block.ms={self._max_block_ms}; try again"
            )
        if operation.error is not None:
            raise operation.error

    def _check_transactional(self) -> None:
        self._state.check_open()
        if not self._transactional:
            raise LogkernelError("transactions need a transactional.id; set it")
