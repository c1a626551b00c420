"""The data source `logkernel`: what Spark asks, and which room answers.

Spark pickles the source by its name and makes it anew in every worker that plans, reads or writes, so nothing is kept
here but the options. Everything else is imported where it is needed: each worker needs one room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

from . import options as option

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class LogkernelSource(DataSource):
    """Topics as tables and streams; see docs/spark.md."""

    @classmethod
    def name(cls) -> str:
        return "logkernel"

    def schema(self) -> str:
        """DDL, as parsing it here would need a session. Raises `ConfigError`, and what a schema registry fails with."""
        from .rows import ddl

        return ddl(option.parse(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        from .batch import reader

        return reader(option.for_batch(option.parse(self.options)), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .stream import reader

        return reader(option.for_stream(option.parse(self.options)), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .writing import batch_writer

        made: Any = batch_writer(option.parse(self.options), schema, overwrite)
        return made  # type: ignore[no-any-return]

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .writing import stream_writer

        made: Any = stream_writer(option.parse(self.options), schema, overwrite)
        return made  # type: ignore[no-any-return]
