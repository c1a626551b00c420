"""Arrow's arrays of decoded rows, without a copy: the buffers stay where the decoder put them.

pyarrow is imported when the first array is made (`pip install 'logkernel[arrow]'`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from logkernel.config.nearest import nearest
from logkernel.errors import ConfigError
from logkernel.record import columns as decoded
from logkernel.record.columns import FULL, Blobs, ColumnReader, HeaderRows, Rows
from logkernel.vocabulary import TopicPartition

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""The columns of Spark's Kafka connector, in its order."""
HEADERS: Final = "headers"
"""The column on request."""
BITS: Final = {
    "key": decoded.KEY,
    "value": decoded.VALUE,
    "topic": 0,
    "partition": 0,
    "offset": decoded.OFFSET,
    "timestamp": decoded.TIMESTAMP,
    "timestampType": decoded.TIMESTAMP_TYPE,
    HEADERS: decoded.HEADERS,
}
"""Column → what the decoder is asked for; the others are the same in every row of a partition."""
NUMBERS: Final = {"offset": "offsets", "timestamp": "timestamps", "timestampType": "timestamp_types"}
"""Column of numbers → where `Rows` has it."""


def load() -> Any:
    """Return the module pyarrow. Raises `ConfigError` with the remedy if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise ConfigError(f"tables need pyarrow: pip install 'logkernel[arrow]' ({error})") from error
    return pyarrow


def wanted_bits(columns: Sequence[str]) -> int:
    """What the decoder must give for these columns. Raises `ConfigError` for one that there is not, or twice."""
    for index, name in enumerate(columns):
        if name not in BITS:
            near = nearest(name, BITS)
            hint = f"; did you mean {near!r}?" if near else ""
            raise ConfigError(f"there is no column {name!r}{hint} (known: {', '.join((*COLUMNS, HEADERS))})")
        if name in columns[:index]:
            raise ConfigError(f"column {name!r} is named twice")
    bits = 0
    for name in columns:
        bits |= BITS[name]
    return bits


@cache
def types() -> dict[str, Any]:
    pa = load()
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        HEADERS: pa.list_(header),
    }


def schema(columns: Sequence[str] = COLUMNS) -> Any:
    """The Arrow schema of these columns; every field is nullable, as in Spark's connector."""
    wanted_bits(columns)
    known = types()
    return load().schema([(name, known[name]) for name in columns])


class Shape:
    """Makes record batches of `columns` for one partition, of at most `batch_rows` rows each."""

    __slots__ = ("_constants", "_pa", "_partition", "_types", "batch_rows", "columns", "schema")

    def __init__(self, columns: Sequence[str], partition: TopicPartition, batch_rows: int) -> None:
        self._pa = load()
        self._types = types()
        self._partition = partition
        self._constants: dict[str, Any] = {}
        self.columns = tuple(columns)
        self.schema = schema(columns)
        self.batch_rows = max(1, batch_rows)

    def batches(self, rows: Rows) -> Iterator[Any]:
        """The record batches of what one `take` gave."""
        arrays = {name: self._array(name, rows) for name in self.columns if BITS[name]}
        for start in range(0, rows.rows, self.batch_rows):
            count = min(self.batch_rows, rows.rows - start)
            whole = count == rows.rows
            yield self._batch(
                [
                    self._constant(name, count)
                    if name not in arrays
                    else arrays[name]
                    if whole
                    else arrays[name].slice(start, count)
                    for name in self.columns
                ],
                count,
            )

    def whole(self, rows: Rows) -> Any:
        """All of what one `take` gave as one record batch."""
        count = rows.rows
        return self._batch(
            [self._array(name, rows) if BITS[name] else self._constant(name, count) for name in self.columns], count
        )

    def _batch(self, arrays: list[Any], count: int) -> Any:
        pa = self._pa
        if arrays:
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        # Rows without a column: only a struct's length says how many.
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), count, [None]))

    def _constant(self, name: str, count: int) -> Any:
        """A column that is the same in every row, made once and cut to measure."""
        found = self._constants.get(name)
        if found is None or len(found) < count:
            value = self._partition.topic if name == "topic" else self._partition.partition
            size = count if count == self.batch_rows else min(self.batch_rows, 2 * count)
            found = self._constants[name] = self._pa.repeat(self._pa.scalar(value, self._types[name]), size)
        return found.slice(0, count)

    def _array(self, name: str, rows: Rows) -> Any:
        if name == HEADERS:
            assert rows.headers is not None
            return self._headers(rows.rows, rows.headers)
        blobs = rows.keys if name == "key" else rows.values if name == "value" else None
        if blobs is not None:
            return self._blobs(self._types[name], rows.rows, blobs)
        numbers = self._pa.py_buffer(getattr(rows, NUMBERS[name]))
        return self._pa.Array.from_buffers(self._types[name], rows.rows, [None, numbers], 0)

    def _blobs(self, kind: Any, rows: int, blobs: Blobs) -> Any:
        pa = self._pa
        validity = None if blobs.validity is None else pa.py_buffer(blobs.validity)
        parts = [validity, pa.py_buffer(blobs.ends), pa.py_buffer(blobs.data)]
        return pa.Array.from_buffers(kind, rows, parts, blobs.nulls)

    def _headers(self, rows: int, headers: HeaderRows) -> Any:
        pa = self._pa
        kind = self._types[HEADERS]
        names = self._names(headers)
        values = self._blobs(pa.binary(), headers.pairs, headers.values)
        pairs = pa.Array.from_buffers(kind.value_type, headers.pairs, [None], 0, children=[names, values])
        validity = None if headers.validity is None else pa.py_buffer(headers.validity)
        return pa.Array.from_buffers(
            kind, rows, [validity, pa.py_buffer(headers.ends)], headers.nulls, children=[pairs]
        )

    def _names(self, headers: HeaderRows) -> Any:
        """Header names; what is no UTF-8 in them is replaced, as Arrow's strings hold nothing else."""
        pa = self._pa
        if bytes(headers.names.data).isascii():
            return self._blobs(pa.string(), headers.pairs, headers.names)
        raw = self._blobs(pa.binary(), headers.pairs, headers.names)
        return pa.array([name.decode("utf-8", "replace") for name in raw.to_pylist()], pa.string())


def batches_of(rows: ColumnReader, data: Any, shape: Shape) -> Iterator[Any]:
    """The record batches that get full while `data`, whole batches and perhaps a part of one, is read."""
    at = 0
    while True:
        at = rows.read(data, at, len(data))
        if rows.why != FULL:
            return
        full = rows.take()
        assert full is not None
        yield from shape.batches(full)
