"""The contract of a source.

A source gives topics, bounds and Arrow record batches of partitions. Several threads may share a source, but not a
`scan`. pyarrow is imported when the first batch is made (`pip install 'logkernel[arrow]'`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from logkernel.attrs_lite import frozen
from logkernel.config.isolation import ISOLATION, isolation_level
from logkernel.record.arrow import COLUMNS as COLUMNS
from logkernel.record.arrow import HEADERS as HEADERS
from logkernel.vocabulary import READ_COMMITTED, TopicPartition

if TYPE_CHECKING:
    import pyarrow

ISOLATIONS: Final = tuple(ISOLATION)
READ_UNCOMMITTED: Final = ISOLATIONS[0]
BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 1 << 20
EVERYTHING: Final[Mapping[str, Any]] = {}
NOTHING_SEEN: Final[Mapping[TopicPartition, int]] = {}


@frozen
class Bounds:
    """The readable range of a partition: `start <= offset < end`."""

    start: int
    """The log start."""
    end: int
    """The high watermark, or the last stable offset for a reader of committed records."""


class Source(Protocol):
    @property
    def arguments(self) -> Mapping[str, Any]:
        """`open_source(**source.arguments)` opens the source again, also in another process; pickle uses them."""
        ...

    def topics(self) -> dict[str, int]:
        """Return topic → number of partitions, internal topics included."""
        ...

    def bounds(self, partition: TopicPartition, isolation: str = READ_UNCOMMITTED) -> Bounds:
        """Return the bounds of a partition. Raises `UnknownTopicOrPartition`."""
        ...

    def bounds_of(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = READ_UNCOMMITTED,
        seen: Mapping[TopicPartition, int] = NOTHING_SEEN,
    ) -> dict[TopicPartition, Bounds]:
        """Return the bounds of many partitions, with as few requests as possible.

        `seen` are ends that were returned before: without its broker a data directory may know less, and returns them
        again as long as the log reaches that far. Raises `UnknownTopicOrPartition`."""
        ...

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        """Return the offset of the first record at or after a time, or None."""
        ...

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        """Return at most `parts - 1` ascending offsets between `start` and `end` that cut it into equal bytes."""
        ...

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
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield the records with `start <= offset < end`, by offset, in record batches of at most `batch_rows` rows and
        about `batch_bytes` bytes (at least one batch of the log). `timestamps` are ms: first, and end (exclusive).

        Raises `OffsetOutOfRange` if records from `start` on were deleted, also during the scan (compacted ones do not
        count); `CorruptRecord`, which names the place; `ConfigError` for an unknown column.
        """
        ...

    def close(self) -> None:
        """Close the source. A second call does nothing; running scans may fail."""
        ...


def check_isolation(isolation: str) -> bool:
    """Return whether only committed records are read. Raises `ConfigError`."""
    return isolation_level(isolation) == READ_COMMITTED


def even_cuts(start: int, end: int, parts: int) -> list[int]:
    """Return offsets that cut a range into equal parts."""
    found = {start + (end - start) * part // parts for part in range(1, parts)}
    return sorted(offset for offset in found if start < offset < end)
