"""Coordination that keeps nothing beyond the process: a list."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError


class MemoryCoordination:
    """`contracts.Coordination`. Values are copied, as what is kept elsewhere could not be changed by its giver."""

    def __init__(self, kept: list[MetadataChange] | None = None) -> None:
        """`kept` holds the changes of an earlier one, and will hold those of this one."""
        self._kept: list[MetadataChange] = [] if kept is None else kept
        self._closed = False

    def changes(self) -> Iterator[MetadataChange]:
        self._check_open()
        return iter(copy.deepcopy(self._kept))

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._check_open()
        self._kept.extend(copy.deepcopy(list(changes)))

    def kept(self) -> int:
        self._check_open()
        return len(self._kept)

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self._check_open()
        self._kept[:] = copy.deepcopy(list(changes))

    def close(self) -> None:
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise KafkaStorageError("the metadata is closed; open the broker again")
