"""What a partition machine wants done, as data.

The fields of `Effects` stand in the order in which the shell carries them out. What came of them
returns to the machine as events: `on_appended`, `on_flushed`, `on_append_failed`.
"""

from __future__ import annotations

from typing import Any

from logkernel.vocabulary import AbortedTxn, BatchFacts


class Outcome:
    """The answer to one produce of one partition."""

    __slots__ = (
        "base_offset",
        "error_code",
        "error_message",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(
        self,
        error_code: int = 0,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        error_message: str | None = None,
        record_errors: tuple[tuple[int, str], ...] = (),
    ) -> None:
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.error_message = error_message
        self.record_errors = record_errors
        """(index in the batch, why) of each record at fault (KIP-467)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outcome) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.error_code, self.base_offset))

    def __repr__(self) -> str:
        return f"Outcome({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


class Effects:
    __slots__ = ("aborted", "answer", "append", "persist", "truncate", "wake")

    def __init__(self) -> None:
        self.truncate: int | None = None
        """First: cut the log to this end offset."""
        self.append: list[BatchFacts] | None = None
        """Then append these batches, their offsets and epoch already assigned; report `on_appended`."""
        self.aborted: AbortedTxn | None = None
        """Then note this transaction, which the marker in `append` aborts, in the log's index."""
        self.persist: int | None = None
        """Then make all below this offset durable; report `on_flushed`."""
        self.answer: list[tuple[Any, Outcome]] = []
        """Then answer these tickets."""
        self.wake = False
        """Last: readers that wait at the end of the log may find more now."""
