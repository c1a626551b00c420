"""The data source `logkernel`: what Spark asks, and which room answers.

Spark pickles the source by its name and makes it anew in every worker that plans, reads or writes, so nothing is kept
here but the options. Everything else is imported where it is needed: each worker needs one room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from . import options as option

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from .rows import Layout
    from .typed import Typing


class LogkernelSource(DataSource):
    """Topics as tables and streams; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "logkernel"

    def schema(self) -> str:
        """DDL, as parsing it here would need a session. Raises `ConfigError`, `SchemaUnavailable`."""
        from .rows import ddl

        options = option.parse(self.options)
        return ddl(options, self._typed(options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from .batch import reader

        options = option.for_batch(option.parse(self.options))
        return reader(options, self._layout(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .stream import reader

        options = option.for_stream(option.parse(self.options))
        return reader(options, self._layout(options, schema))

    def _layout(self, options: option.Options, schema: StructType) -> Layout:
        from .rows import Layout

        return Layout.of(schema, self._typed(options))

    def _typed(self, options: option.Options) -> Typing | None:
        """Asked for once: the source is pickled with what was found, so that a registry is not asked again."""
        from .typed import resolved

        if "_typing" not in self.__dict__:
            self._typing = resolved(options.value_format, options.subscription)
        return self._typing

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .writing import batch_writer

        return batch_writer(option.parse(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .writing import stream_writer

        return stream_writer(option.parse(self.options), schema, overwrite)
