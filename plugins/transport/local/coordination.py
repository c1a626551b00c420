"""The metadata log of one broker, as records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from logkernel.contracts import MetadataChange, StateLog
from logkernel.errors import CorruptMessage, KafkaStorageError
from logkernel.vocabulary import Record


class LocalCoordination:
    """`contracts.Coordination` over a lent log."""

    def __init__(self, log: StateLog) -> None:
        self._log: StateLog | None = log
        self._kept: int | None = None
        """Counted when it is first asked for, kept up from then on."""

    def changes(self) -> Iterator[MetadataChange]:
        """Every change kept, in order; raises CorruptMessage for a record that is none."""
        for record in self._open().records():
            yield _change(record)

    def kept(self) -> int:
        if self._kept is None:
            self._kept = sum(1 for _ in self._open().records())
        return self._kept

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        """On disk (fsync) when it returns."""
        log = self._open()
        if changes:
            log.append([_record(change) for change in changes], sync=True)
            if self._kept is not None:
                self._kept += len(changes)

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        """On disk (fsync), and what was there before is gone, when it returns."""
        self._open().replace([_record(change) for change in changes])
        self._kept = len(changes)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _open(self) -> StateLog:
        if self._log is None:
            raise KafkaStorageError("the metadata log is closed; open the broker again")
        return self._log


def _record(change: MetadataChange) -> Record:
    value = None
    if change.value is not None:
        value = json.dumps(change.value, ensure_ascii=False, separators=(",", ":")).encode()
    return Record(f"{change.kind}\x00{change.key}".encode(), value)


def _change(record: Record) -> MetadataChange:
    try:
        kind, separator, key = (record.key or b"").decode().partition("\x00")
        if not separator:
            raise ValueError("the key has no NUL")
        value = None if record.value is None else json.loads(record.value)
        if not isinstance(value, dict | None):
            raise ValueError("the value is no object")
    except (ValueError, RecursionError) as error:
        raise CorruptMessage(
            f"offset {record.offset} of the metadata log holds no change of metadata ({error});"
            f" restore the folder's metadata log from a copy"
        ) from None
    return MetadataChange(kind, key, value)
