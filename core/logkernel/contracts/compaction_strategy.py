"""A compaction strategy says which record of a key stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from logkernel.contracts.common import Buffer
from logkernel.errors import PluginError
from logkernel.vocabulary import Record


class BatchView(Protocol):
    """A batch of data as a keep-rule or compaction strategy sees it: magic 2, decompressed, not of an aborted
    transaction.

    `section[start:end]` holds its `count` encoded records, in the form that `record.loops` takes.
    """

    base_offset: int
    last_offset: int
    count: int
    section: Buffer
    start: int
    end: int
    base_timestamp_ms: int

    def columns(self) -> Any:
        """Return the records as `record.loops.Columns`: offsets, timestamps, keys, values, headers as in Arrow."""
        ...

    def records(self) -> list[Record]: ...


@runtime_checkable
class CompactionStrategy(Protocol):
    """Says which record of a key stays when a log is compacted: the one with the highest version, and the last of
    those with equal ones (KIP-280). One object for each rewrite, used by one worker thread.

    `cleanup.policy=compact` asks for the one that the topic's `compaction.strategy` names."""

    def versions(self, batch: BatchView) -> Sequence[int] | bytes:
        """Return the version of each record of the batch, an int64; or all of them as bytes in native order.

        A record's version depends on the record only: it is asked for twice, and again in the next rewrite, where
        other records of its batch may be gone. An exception ends the rewrite; the log stays as it is, and is served."""
        ...


def no_strategy(name: str) -> CompactionStrategy:
    """Raise `PluginError`: where there is no kernel, no plugin has a compaction strategy."""
    raise PluginError(f"no plugin provides the compaction strategy {name!r}; ask a kernel for it")
