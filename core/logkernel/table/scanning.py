"""The arguments of a scan, and the base of all sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from logkernel.attrs_lite import frozen
from logkernel.record.arrow import Shape, wanted_bits
from logkernel.record.bounds import CodecFor
from logkernel.record.columns import ColumnReader
from logkernel.table.source import BATCH_BYTES, BATCH_ROWS, COLUMNS, READ_UNCOMMITTED, check_isolation
from logkernel.vocabulary import TopicPartition


@frozen
class Scan:
    """One call of `Source.scan`."""

    partition: TopicPartition
    start: int
    end: int
    columns: Sequence[str]
    committed: bool
    """Read only committed records."""
    first_ms: int | None
    last_ms: int | None
    """The end, exclusive."""
    batch_rows: int
    batch_bytes: int

    def shape(self) -> Shape:
        """Raises `ConfigError` for an unknown column."""
        return Shape(self.columns, self.partition, self.batch_rows)

    def reader(self, codec_for: CodecFor, *, where: object = "batches", verify_crc: bool = True) -> ColumnReader:
        """Return the decoder of the rows; its errors name the place `where`."""
        return ColumnReader(
            codec_for,
            wanted_bits(self.columns),
            start=self.start,
            end=self.end,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            max_rows=self.batch_rows,
            max_bytes=self.batch_bytes,
            where=where,
            verify_crc=verify_crc,
        )


class ScanningSource(ABC):
    """A `Source` that answers a `Scan`."""

    def scan(
        self,
        partition: TopicPartition,
        start: int,
        end: int,
        *,
        columns: Sequence[str] = COLUMNS,
        isolation: str = READ_UNCOMMITTED,
        timestamps: tuple[int, int] | None = None,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[Any]:
        """See `Source.scan`."""
        first_ms, last_ms = timestamps if timestamps is not None else (None, None)
        committed = check_isolation(isolation)
        name = TopicPartition(*partition)
        return self._scan(Scan(name, start, end, columns, committed, first_ms, last_ms, batch_rows, batch_bytes))

    @abstractmethod
    def _scan(self, scan: Scan) -> Iterator[Any]: ...
