"""The guard of `contracts.FetchFilter`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logkernel.contracts import FetchFilter, ReadFacts
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard
from logkernel.vocabulary import Record


class GuardedFetchFilter(TimedGuard[FetchFilter]):
    """`contracts.FetchFilter`; `mark` asks it for a batch at a time."""

    __slots__ = ()
    kind = "fetch filter"

    def passes(self, record: Record, read: ReadFacts) -> bool:
        mask = bytearray(b"\1")
        self.mark([record], read, mask)
        return bool(mask[0])

    def mark(self, records: Sequence[Record], read: ReadFacts, mask: bytearray) -> None:
        """Set the byte of each record that does not pass to 0; records whose byte is 0 are not asked about."""

        def decide() -> None:
            passes = self._plugin.passes
            for index, record in enumerate(records):
                if mask[index]:
                    answer: Any = passes(record, read)
                    if answer is False:
                        mask[index] = 0
                    elif answer is not True:
                        raise PluginError(
                            f"{self._origin()}: {self._place} answered {answer!r:.200} for offset {record.offset};"
                            f" return True or False"
                        )

        self._call(f"{read.topic}-{read.partition} cannot be read", decide)
