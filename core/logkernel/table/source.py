"""The contract of a source.

A source gives topics, bounds and Arrow record batches of partitions. It may be used by several threads; each `scan`
by one. pyarrow is imported when the first batch is made (`pip install 'logkernel[arrow]'`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError
from logkernel.record.arrow import COLUMNS as COLUMNS
from logkernel.record.arrow import HEADERS as HEADERS
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    import pyarrow

ISOLATIONS: Final = ("read_uncommitted", "read_committed")
READ_UNCOMMITTED: Final = ISOLATIONS[0]
BATCH_ROWS: Final = 65_536
BATCH_BYTES: Final = 1 << 20
EVERYTHING: Final[Mapping[str, Any]] = {}
NOTHING_SEEN: Final[Mapping[TopicPartition, int]] = {}


@frozen
class Bounds:
    """What can be read of a partition: `start <= offset < end`."""

    start: int
    """The log start."""
    end: int
    """The high watermark, or the last stable offset for a reader of what is committed."""


class Source(Protocol):
    @property
    def arguments(self) -> Mapping[str, Any]:
        """`open_source(**source.arguments)` makes another one, in another process too; a source pickles by them."""
        ...

    def topics(self) -> dict[str, int]:
        """Topic → number of partitions, internal topics included."""
        ...

    def bounds(self, partition: TopicPartition, isolation: str = READ_UNCOMMITTED) -> Bounds:
        """Raises `UnknownTopicOrPartition`."""
        ...

    def bounds_of(
        self,
        partitions: Sequence[TopicPartition],
        isolation: str = READ_UNCOMMITTED,
        seen: Mapping[TopicPartition, int] = NOTHING_SEEN,
    ) -> dict[TopicPartition, Bounds]:
        """Of many at once, in as few questions as that takes. `seen` are ends that were given before: a folder whose
        broker is away may know less by now, and gives them again where the log still reaches so far. Raises
        `UnknownTopicOrPartition`."""
        ...

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        """The first record at or after a time; None where there is none."""
        ...

    def cuts(self, partition: TopicPartition, start: int, end: int, parts: int) -> list[int]:
        """Up to `parts - 1` ascending offsets strictly between `start` and `end` that cut it into about equal bytes."""
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
        """The records with `start <= offset < end`, by offset, in batches of at most `batch_rows` rows and about
        `batch_bytes` bytes (at least what one batch of the log holds). `timestamps` are ms: first, and behind the last.

        What compaction left out is no loss. Raises `OffsetOutOfRange` where records from `start` on are gone, also
        while they are read; `CorruptRecord`, which names the place; `ConfigError` for a column that there is not.
        """
        ...

    def close(self) -> None:
        """May be called twice; scans that are under way end as they like."""
        ...


def check_isolation(isolation: str) -> bool:
    """Whether only what is committed is read. Raises `ConfigError`."""
    if isolation not in ISOLATIONS:
        raise ConfigError(f"isolation={isolation!r} is not one of {', '.join(ISOLATIONS)}")
    return isolation == "read_committed"


def even_cuts(start: int, end: int, parts: int) -> list[int]:
    """Offsets that cut a range of offsets into equal parts."""
    found = {start + (end - start) * part // parts for part in range(1, parts)}
    return sorted(offset for offset in found if start < offset < end)
