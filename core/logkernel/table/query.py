"""SQL on a log, by DuckDB: topics are tables, and of each only the columns, partitions, offsets and times are read that
a query needs (`dataset`). Needs the extra `logkernel[query]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from logkernel.errors import ConfigError, LogkernelError
from logkernel.table.source import READ_UNCOMMITTED, Source, check_isolation

STRING, JSON, BINARY = FORMATS = ("string", "json", "binary")
"""What keys and values are: text; text, and the values JSON; bytes."""
RESULT_ROWS: Final = 10_000


class QueryError(LogkernelError):
    """DuckDB refused a query; the text is its own."""


@contextmanager
def connection(
    source: Source, sql: str, *, isolation: str = READ_UNCOMMITTED, value_format: str = STRING
) -> Iterator[Any]:
    """A DuckDB connection in which the topics that `sql` names are tables; all of them, where it names none."""
    check_isolation(isolation)
    if value_format not in FORMATS:
        raise ConfigError(f"value format {value_format!r} is not one of {', '.join(FORMATS)}")
    try:
        import duckdb

        from logkernel.table.dataset import TopicDataset
    except ImportError as error:
        raise ConfigError(f"queries need DuckDB and pyarrow: pip install 'logkernel[query]' ({error})") from error
    topics = source.topics()
    made = duckdb.connect()
    try:
        for name in _named(topics, sql):
            found = TopicDataset(source, name, topics[name], isolation=isolation, text=value_format != BINARY)
            if value_format == JSON:
                made.register(f"{name} as text", found)
                made.execute(
                    f"create view {quoted(name)} as select * replace (try_cast(value as json) as value)"
                    f" from {quoted(f'{name} as text')}"
                )
            else:
                made.register(name, found)
        yield made
    finally:
        made.close()


def _named(topics: Iterable[str], sql: str) -> list[str]:
    """Topics whose names occur in the query. Raises `ConfigError` for two that SQL cannot tell apart."""
    lowered = sql.lower()
    found = [name for name in topics if name.lower() in lowered] or list(topics)
    by_name: dict[str, list[str]] = {}
    for name in found:
        by_name.setdefault(name.lower(), []).append(name)
    chosen = []
    for names in by_name.values():
        exact = [name for name in names if name in sql] if len(names) > 1 else names
        if len(exact) > 1:
            raise ConfigError(f"SQL does not tell {' and '.join(exact)} apart: their names differ in case alone")
        chosen += exact
    return chosen


def quoted(name: str) -> str:
    """A name as SQL takes it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def run(
    source: Source, sql: str, *, isolation: str = READ_UNCOMMITTED, value_format: str = STRING
) -> Iterator[tuple[list[str], Iterator[list[Any]]]]:
    """(column names, rows) of a query's result, which is read as it is made. Raises `QueryError`."""
    with connection(source, sql, isolation=isolation, value_format=value_format) as made:
        reader = _refusing(lambda: _reader(made.sql(sql)))
        yield (list(reader.schema.names), _rows(reader)) if reader is not None else ([], iter(()))


def _reader(result: Any) -> Any:
    """The result as a `pyarrow.RecordBatchReader`; None for a statement without one."""
    if result is None:
        return None
    make = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch
    return make(RESULT_ROWS)


def _rows(reader: Any) -> Iterator[list[Any]]:
    while True:
        batch = _refusing(lambda: next(reader, None))
        if batch is None:
            return
        columns = [column.to_pylist() for column in batch.columns]
        for row in range(batch.num_rows):
            yield [column[row] for column in columns]


def _refusing(work: Any) -> Any:
    """DuckDB's and Arrow's refusals as ours; what our own reading raised comes through them as it was."""
    import duckdb
    import pyarrow

    try:
        return work()
    except (duckdb.Error, pyarrow.ArrowException) as error:
        raise QueryError(str(error)) from error
