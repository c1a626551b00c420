"""Rows to Arrow, for a Spark that hands rows to writers (4.0)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def batches_of(rows: Iterable[Any], schema: Any, count: int) -> Iterator[Any]:
    """`pyarrow.RecordBatch`es of up to `count` rows; `schema` is Spark's."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema)
    waiting: list[Any] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == count:
            yield _batch(waiting, arrow)
            waiting = []
    if waiting:
        yield _batch(waiting, arrow)


def _batch(rows: list[Any], schema: Any) -> Any:
    import pyarrow as pa

    columns = [pa.array([_plain(row[index]) for row in rows], field.type) for index, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain(cell: Any) -> Any:
    """Nested rows as dictionaries, bytearrays as bytes."""
    if hasattr(cell, "asDict"):
        return {name: _plain(inner) for name, inner in cell.asDict().items()}
    if isinstance(cell, list):
        return [_plain(inner) for inner in cell]
    return bytes(cell) if isinstance(cell, bytearray) else cell
