"""The guard of `contracts.ProduceInterceptor`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from logkernel.contracts import ProduceInterceptor, Refusal, WriteFacts
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard
from logkernel.vocabulary import Record

T = TypeVar("T")

MAX_REFUSALS = 1_000
"""Refused records of one batch that its client is told of."""
MAX_REASON = 500
"""Characters of a refusal that are sent to the client."""


class GuardedProduceInterceptor(TimedGuard[ProduceInterceptor]):
    """`contracts.ProduceInterceptor`; `intercept` asks it for a batch at a time."""

    __slots__ = ()
    kind = "produce interceptor"

    def on_record(self, record: Record, write: WriteFacts) -> Record | Refusal:
        return self._guarded(write, lambda: self._judged(record, write))

    def intercept(self, records: list[Record], write: WriteFacts) -> list[tuple[int, str]]:
        """Replace `records` by what the plugin makes of them; return (index, reason) of those that it refuses."""
        return self._guarded(write, lambda: self._ask_for_each(records, write))

    def _guarded(self, write: WriteFacts, decide: Callable[[], T]) -> T:
        return self._call(f"the batch for {write.topic}-{write.partition} was not written", decide)

    def _ask_for_each(self, records: list[Record], write: WriteFacts) -> list[tuple[int, str]]:
        refused: list[tuple[int, str]] = []
        for index, record in enumerate(records):
            answer = self._judged(record, write)
            if isinstance(answer, Record):
                records[index] = answer
                continue
            refused.append((index, answer.reason[:MAX_REASON]))
            if len(refused) == MAX_REFUSALS:
                break
        return refused

    def _judged(self, record: Record, write: WriteFacts) -> Record | Refusal:
        index = record.offset
        answer: Any = self._plugin.on_record(record, write)
        if _is_record(answer) or (isinstance(answer, Refusal) and isinstance(answer.reason, str)):
            found: Record | Refusal = answer
            return found
        raise PluginError(
            f"{self._origin()}: {self._place} returned {answer!r:.200} for record {index}; return a Record of bytes, or"
            f" a Refusal with a text"
        )


def _is_record(value: Any) -> bool:
    """Whether the record is one that a batch can hold."""
    return (
        isinstance(value, Record)
        and isinstance(value.key, bytes | None)
        and isinstance(value.value, bytes | None)
        and type(value.timestamp_ms) is int
        and -1 <= value.timestamp_ms < 2**63
        and isinstance(value.headers, tuple)
        and all(
            isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], bytes | None)
            for row in value.headers
        )
    )
