"""A topic as a `pyarrow.dataset.Dataset`: it can be scanned any number of times, and reads only what a scan needs.

The scanning engine (DuckDB, polars) passes the columns it wants and a filter. Arrow tells which partitions, offsets and
times may match the filter: a filter that cannot hold below an offset, for example, cannot be satisfied under that
guarantee. The rest of the filter is applied to the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs

from logkernel.errors import LogkernelError
from logkernel.record.arrow import types
from logkernel.table.source import READ_UNCOMMITTED, Bounds, Source
from logkernel.vocabulary import TopicPartition

ORDER: Final = ("partition", "offset", "timestamp", "key", "value", "headers", "timestampType", "topic")
"""The columns in reading order. Rows are counted by the first one, which costs nothing."""
MICROS: Final = (-(2**62), 2**62)
"""The range of times that a filter is searched in."""
Kinds = dict[str, Any]


class TopicDataset(ds.Dataset):  # type: ignore[misc]
    """See the module. Bounds are fixed at the first scan, so that a query that names a topic twice sees one state.

    With `text`, keys and values are strings, and invalid UTF-8 is replaced. `on_error` is called with errors of reading
    the log, as a query engine reports them only as its own text."""

    def __init__(
        self,
        source: Source,
        topic: str,
        partitions: int,
        *,
        isolation: str = READ_UNCOMMITTED,
        text: bool = False,
        on_error: Callable[[LogkernelError], None] | None = None,
    ) -> None:
        self._source = source
        self._topic = topic
        self._count = partitions
        self._isolation = isolation
        self._text = text
        self._on_error = on_error
        self._bounds: dict[int, Bounds] = {}
        known = types()
        kinds = {name: pa.string() if text and name in ("key", "value") else known[name] for name in ORDER}
        self._schema = pa.schema(list(kinds.items()))

    @property
    def schema(self) -> Any:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> Any:
        """Return a scan of these columns of the rows that match `filter`, an Arrow expression."""
        names = list(self._schema.names if columns is None else columns)
        said = set() if filter is None else set(re.findall(r"\w+", str(filter)))
        needed = [name for name in self._schema.names if name in names or name in said]
        schema = pa.schema([self._schema.field(name) for name in needed])
        return TopicScan(self._reporting(self._batches(schema, filter, said)), names, schema, filter)

    def _reporting(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from batches
        except LogkernelError as error:
            if self._on_error is not None:
                self._on_error(error)
            raise

    # ------------------------------------------------------------ what a filter needs

    def _batches(self, schema: Any, expression: Any, said: set[str]) -> Iterator[Any]:
        times = self._times(expression) if "timestamp" in said else None
        for index in range(self._count):
            here = ds.field("partition") == pa.scalar(index, pa.int32())
            if expression is not None and not self._may_hold(expression, here):
                continue
            bounds = self._bounds.get(index)
            name = TopicPartition(self._topic, index)
            if bounds is None:
                bounds = self._bounds[index] = self._source.bounds(name, self._isolation)
            start, end = bounds.start, bounds.end
            if "offset" in said:
                start, end = self._limits(expression, "offset", pa.int64(), start, end, here)
            if start < end:
                for batch in self._source.scan(
                    name, start, end, columns=schema.names, isolation=self._isolation, timestamps=times
                ):
                    yield as_text(batch, schema) if self._text else batch

    def _may_hold(self, expression: Any, guarantee: Any) -> bool:
        """Whether a row for which `guarantee` holds may match the filter."""
        made = ds.FileSystemDataset.from_paths(
            ["/nowhere"],  # no file is looked at: a fragment is asked for by what is known of its rows
            schema=self._schema,
            format=ds.IpcFileFormat(),
            filesystem=pyarrow.fs.LocalFileSystem(),
            partitions=[guarantee],
        )
        return next(iter(made.get_fragments(filter=expression)), None) is not None

    def _limits(
        self, expression: Any, column: str, kind: Any, low: int, high: int, here: Any = None
    ) -> tuple[int, int]:
        """Return the smallest range of a column within `low <= value < high` outside of which no row matches."""
        field = ds.field(column)

        def known(comparison: Any) -> bool:
            return self._may_hold(expression, comparison if here is None else here & comparison)

        first = _first(low, high, lambda value: known(field <= pa.scalar(value, kind)))
        if first == high:
            return high, high
        behind = _first(first, high, lambda value: not known(field >= pa.scalar(value, kind)))
        return first, behind

    def _times(self, expression: Any) -> tuple[int, int] | None:
        """Return the range of times in ms in which rows may match; None where the filter sets no bound."""
        first, behind = self._limits(expression, "timestamp", types()["timestamp"], *MICROS)
        if (first, behind) == MICROS:
            return None
        return first // 1000, -(-behind // 1000)


class TopicScan:
    """The part of `pyarrow.dataset.Scanner` that DuckDB, polars and `Dataset` use. It can be used once.

    Arrow's own scanner runs the Python generator `batches` ahead, on a thread that nothing joins. If a query ends early
    (`limit`), that thread is still in Python when the interpreter exits, and aborts the process. Here, the thread that
    asks for a batch makes it.
    """

    def __init__(self, batches: Iterator[Any], columns: Sequence[str], schema: Any, expression: Any) -> None:
        self._batches = batches
        self._columns = columns
        self._expression = expression
        self.dataset_schema = schema
        self.projected_schema = pa.schema([schema.field(name) for name in columns])

    def to_reader(self) -> Any:
        """Return a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[Any]:
        """Yield record batches, none of them empty."""
        for batch in self._batches:
            if self._expression is None:
                yield batch.select(self._columns)
                continue
            scanned = ds.dataset(batch).scanner(columns=self._columns, filter=self._expression, use_threads=False)
            yield from (found for found in scanned.to_table().to_batches() if found.num_rows)

    def to_table(self) -> Any:
        """Return all rows as a `pyarrow.Table`."""
        return self.to_reader().read_all()

    def take(self, indices: Any) -> Any:
        """Return the rows with these numbers as a `pyarrow.Table`; reads all rows."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """Return the number of rows; reads them."""
        return sum(batch.num_rows for batch in self.to_batches())

    def head(self, num_rows: int) -> Any:
        """Return the first rows as a `pyarrow.Table`."""
        found, left = [], num_rows
        batches = self.to_batches()
        while left > 0 and (batch := next(batches, None)) is not None:
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
        return pa.Table.from_batches(found, self.projected_schema)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first value in `low <= value < high` for which `holds`, which is monotone; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def as_text(batch: Any, schema: Any) -> Any:
    """Return the batch with keys and values as strings, without a copy if they are UTF-8."""
    arrays = [
        _strings(column) if field.type == pa.string() and column.type == pa.binary() else column
        for field, column in zip(schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _strings(column: Any) -> Any:
    found = column.view(pa.string())
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode("utf-8", "replace") for one in column.to_pylist()], pa.string()
        )
    return found
