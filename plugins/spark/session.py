"""What a Spark session is built with, and how it learns of the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

RECOMMENDED: Final[Mapping[str, str]] = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
}
"""What a session should be built with: rows by UNIX domain sockets, filters on offset and time by the log's indexes,
and Arrow batches to writers that fit the memory which the batch before has left."""


def register(spark: Any) -> None:
    """Make the format `logkernel` known to the session `spark`."""
    from pyspark.errors import AnalysisException

    from .source import LogkernelSource

    try:
        spark.dataSource.register(LogkernelSource)
    except AnalysisException as error:  # Spark 4.0 takes no name again that it has found by itself
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
