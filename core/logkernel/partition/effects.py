"""What a partition machine wants done, as data.

The fields of `Effects` stand in the order in which the shell carries them out. What came of them returns to the machine
as events: `on_truncated`, `on_restarted`, `on_appended`, `on_append_failed`, `on_flushed`, `on_isr_accepted`,
`on_isr_refused`.
"""

from __future__ import annotations

from typing import Any

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import AbortedTxn, BatchFacts, IsrProposal


@mutable
class Outcome:
    """What became of one produce of one partition."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """(index in the batch, why) of each record at fault (KIP-467)."""


@mutable
class Effects:
    truncate: int | None = None
    """First: cut the log to this end offset."""
    restart: int | None = None
    """Or throw every record away: the log starts and ends at this offset."""
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
    """Last: readers that wait at the end of the log may find more now."""
