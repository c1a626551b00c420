"""The effects that a partition machine asks for, as data.

The shell carries out the fields of `Effects` in their order, and reports the results to the machine as events:
`on_truncated`, `on_restarted`, `on_appended`, `on_append_failed`, `on_flushed`, `on_isr_accepted`, `on_isr_refused`.
"""

from __future__ import annotations

from typing import Any

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import AbortedTxn, BatchFacts, IsrProposal


@mutable
class Outcome:
    """The result of one produce of one partition."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """(index in the batch, message) of each invalid record (KIP-467)."""


@mutable
class Effects:
    truncate: int | None = None
    """First: cut the log to this end offset."""
    restart: int | None = None
    """Or empty the log: it starts and ends at this offset."""
    append: list[BatchFacts] | None = None
    """Then append these batches, their offsets and epoch already assigned; report `on_appended`."""
    aborted: AbortedTxn | None = None
    """Then note this transaction, which the marker in `append` aborts, in the log's index."""
    persist: int | None = None
    """Then make all below this offset durable; report `on_flushed`."""
    propose: IsrProposal | None = None
    """Then ask the controller for this ISR; report `on_isr_accepted` or `on_isr_refused`."""
    answer: list[tuple[Any, Outcome]] = field(factory=list)
    """Then answer these receivers."""
    wake: bool = False
    """Last: wake readers that wait for a change of this partition."""
