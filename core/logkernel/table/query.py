"""SQL on a log with DuckDB. Topics are tables; only the columns, partitions, offsets and times that a query needs are
read (`dataset`). Needs the extra `logkernel[query]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

from logkernel.errors import ConfigError, LogkernelError
from logkernel.table.source import READ_UNCOMMITTED, Source, check_isolation

STRING, JSON, BINARY = FORMATS = ("string", "json", "binary")
"""Formats of keys and values: text; text keys and JSON values; bytes."""
RESULT_ROWS: Final = 10_000
NAMED: Final = 20
"""Maximum number of topics that an error names."""


class QueryError(LogkernelError):
    """DuckDB refused a query; the text is DuckDB's."""


class _Query:
    """A DuckDB connection with the topics that `sql` names as tables, or all topics if it names none."""

    def __init__(self, source: Source, sql: str, isolation: str, value_format: str) -> None:
        check_isolation(isolation)
        if value_format not in FORMATS:
            raise ConfigError(f"value_format={value_format!r} is not known; use one of {', '.join(FORMATS)}")
        try:
            import duckdb

            from logkernel.table.dataset import TopicDataset
        except ImportError as error:
            raise ConfigError(f"queries need DuckDB and pyarrow ({error}); pip install 'logkernel[query]'") from error
        self._topics = topics = source.topics()
        self._failures: list[LogkernelError] = []
        self._sql = sql
        self._connection = duckdb.connect()
        try:
            for name in _named(topics, sql):
                text = value_format != BINARY
                tell = self._failures.append
                found = TopicDataset(source, name, topics[name], isolation=isolation, text=text, on_error=tell)
                self._register(name, found, value_format == JSON)
        except BaseException:
            self._connection.close()
            raise

    def _register(self, name: str, found: Any, as_json: bool) -> None:
        if not as_json:
            self._connection.register(name, found)
            return
        self._connection.register(f"{name} as text", found)
        self._connection.execute(
            f"create view {quoted(name)} as select * replace (try_cast(value as json) as value)"
            f" from {quoted(f'{name} as text')}"
        )

    def reader(self) -> Any:
        """Return the result as a `pyarrow.RecordBatchReader`; None for a statement without a result."""
        result = self._refusing(lambda: self._connection.sql(self._sql))
        if result is None:
            return None
        make = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch
        return self._refusing(lambda: make(RESULT_ROWS))

    def rows(self, reader: Any) -> Iterator[list[Any]]:
        while True:
            batch = self._refusing(lambda: next(reader, None))
            if batch is None:
                return
            columns = [column.to_pylist() for column in batch.columns]
            for row in range(batch.num_rows):
                yield [column[row] for column in columns]

    def close(self) -> None:
        """Wait for DuckDB's threads: they run Python, and may not outlive the interpreter."""
        self._connection.close()

    def _refusing(self, work: Callable[[], Any]) -> Any:
        """Run `work`. Raises errors of reading the log as they are, DuckDB's and Arrow's refusals as `QueryError`."""
        import duckdb
        import pyarrow

        try:
            return work()
        except (duckdb.Error, pyarrow.ArrowException) as error:
            if self._failures:
                raise self._failures[0] from None
            raise QueryError(self._text(str(error))) from error

    def _text(self, refusal: str) -> str:
        """Return DuckDB's text; for an unknown table with the topics, where DuckDB would suggest its own tables."""
        if "Table with name" not in refusal:
            return refusal
        problem = refusal.splitlines()[0].rstrip("!")
        if not self._topics:
            return f"{problem}; there is no topic, or none that you may describe"
        return f"{problem}; the topics are {', '.join(sorted(self._topics)[:NAMED])}"


def _named(topics: Iterable[str], sql: str) -> list[str]:
    """Return the topics whose names occur in the query. Raises `ConfigError` for two that SQL cannot tell apart."""
    lowered = sql.lower()
    found = [name for name in topics if name.lower() in lowered] or list(topics)
    by_name: dict[str, list[str]] = {}
    for name in found:
        by_name.setdefault(name.lower(), []).append(name)
    chosen = []
    for names in by_name.values():
        exact = [name for name in names if name in sql] if len(names) > 1 else names
        if len(exact) > 1:
            raise ConfigError(
                f"SQL cannot tell {' and '.join(exact)} apart, as their names differ only in case; query them one by"
                " one"
            )
        chosen += exact
    return chosen


def quoted(name: str) -> str:
    """Return a name quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def run(
    source: Source, sql: str, *, isolation: str = READ_UNCOMMITTED, value_format: str = STRING
) -> Iterator[tuple[list[str], Iterator[list[Any]]]]:
    """Run a query; give (column names, rows), which are read as DuckDB produces them.

    Raises `QueryError` if DuckDB refuses the query, and the errors of reading the log."""
    with closing(_Query(source, sql, isolation, value_format)) as made:
        reader = made.reader()
        yield (list(reader.schema.names), made.rows(reader)) if reader is not None else ([], iter(()))
