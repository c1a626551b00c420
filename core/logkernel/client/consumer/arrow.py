"""What was fetched, as Arrow record batches: whole batches of the log become columns, and no record an object.

A record batch is of one partition: partitions take turns, as with records. Where a batch of the log cannot be
read, what lies before it is given first; then the error comes, again and again until there is a seek.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from logkernel.client.consumer.fetcher import Fetcher
from logkernel.client.consumer.positions import Chunk, Part
from logkernel.errors import KafkaError
from logkernel.record.arrow import COLUMNS
from logkernel.record.columns import FULL, ColumnReader, Rows
from logkernel.vocabulary import TopicPartition

__all__ = ["COLUMNS", "MAX_ROWS", "ArrowTaker"]

MAX_ROWS: Final = 65_536
MAX_BYTES: Final = 2**30
"""A chunk is bounded by what a fetch brings; its plain bytes by what a codec may make of that."""
WHOLE: Final = 2**31 - 1


class _Columns:
    """Takes one chunk as columns, in parts where it has more rows than are wanted at once.

    The chunk has it, so that it has not the chunk: what refers to itself would keep fetched bytes until the garbage
    collector comes by.
    """

    __slots__ = ("_at", "_max_rows", "_part", "_reader", "wanted")

    def __init__(self, part: Part, chunk: Chunk, wanted: int, max_rows: int) -> None:
        self.wanted = wanted, max_rows
        self._part = part
        self._max_rows = max_rows
        self._at = 0
        self._reader = self._made(chunk)

    def _made(self, chunk: Chunk) -> ColumnReader:
        reader = ColumnReader(
            chunk.codec_for,
            self.wanted[0],
            start=self._part.position,
            max_rows=self._max_rows,
            max_bytes=MAX_BYTES,
            verify_crc=chunk.verify_crc,
            where=self._part.name,
        )
        for producer_id, first in chunk.aborted:
            reader.abort(producer_id, first)
        return reader

    def next(self, chunk: Chunk) -> tuple[Rows | None, bool]:
        """(the next rows, whether there may be more); the position moves behind them. Raises `CorruptMessage` …"""
        part, reader, data = self._part, self._reader, chunk.data
        reader.skip_to(part.position)
        before = self._at
        try:
            self._at = reader.read(data, before, len(data))
        except KafkaError:
            # What a reader took before an error is gone with it: another one takes that alone, from the start, as
            # it must see again which transactions were aborted.
            rotten, self._at = reader.at, 0
            self._reader = self._made(chunk)
            if rotten > before:
                self._at = self._reader.read(data, 0, rotten)
                rows = self._passed(chunk)
                if rows is not None:
                    return rows, True
            raise
        more = reader.why == FULL
        return self._passed(chunk), more

    def _passed(self, chunk: Chunk) -> Rows | None:
        part, reader = self._part, self._reader
        rows = reader.take()
        next_offset = reader.next_offset
        if next_offset > part.position:
            part.position, part.epoch = next_offset, chunk.epoch_before(self._at)
        return rows


class ArrowTaker:
    """See the module. pyarrow is imported when it is first asked."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._shapes: dict[tuple[TopicPartition, tuple[str, ...]], Any] = {}
        self._good: tuple[str, ...] | None = None
        """The columns that were last found to be there ..."""
        self._wanted = 0
        """... and what the decoder must give for them."""

    def check(self, columns: Sequence[str]) -> int:
        """What the decoder must give for these columns. Raises `ConfigError`."""
        if tuple(columns) != self._good:
            from logkernel.record.arrow import schema, wanted_bits

            schema(columns)
            self._good, self._wanted = tuple(columns), wanted_bits(columns)
        return self._wanted

    def nothing(self, columns: Sequence[str]) -> Any:
        """A record batch without rows."""
        from logkernel.record.arrow import load, schema

        found = schema(columns)
        return load().RecordBatch.from_pylist([], schema=found)

    def take(self, columns: Sequence[str], max_rows: int) -> Any:
        """The next rows of some partition; None where there are none. Raises as `Fetcher.take`."""
        fetcher = self._fetcher
        fetcher.raise_error()
        wanted = self.check(columns)
        for part in list(fetcher.line):
            if part.paused:
                continue
            rows = self._rows_of(part, wanted, max_rows)
            fetcher.had_its_turn(part)
            if rows is not None:
                fetcher.records_total += rows.rows
                return self._shape(columns, part.name).whole(rows)
        return None

    def _rows_of(self, part: Part, wanted: int, max_rows: int) -> Rows | None:
        while part.chunks:
            chunk = part.chunks[0]
            taker: _Columns | None = chunk.columns
            if taker is None or taker.wanted != (wanted, max_rows):
                taker = chunk.columns = _Columns(part, chunk, wanted, max_rows)
            chunk.rewind()
            rows, more = taker.next(chunk)
            if not more:
                part.buffered_bytes -= chunk.bytes
                part.chunks.popleft()
            if rows is not None:
                return rows
        return None

    def _shape(self, columns: Sequence[str], partition: TopicPartition) -> Any:
        from logkernel.record.arrow import Shape

        key = partition, tuple(columns)
        found = self._shapes.get(key)
        if found is None:
            self._shapes = {made: shape for made, shape in self._shapes.items() if made[0] in self._fetcher.parts}
            found = self._shapes[key] = Shape(columns, partition, WHOLE)
        return found
