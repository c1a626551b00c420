"""The table room: a log as Arrow, for Spark's plugin, `log.table()` and `logkernel query`.

`source` is the door: `open_source(path=…)` reads the segments of a broker's folder, `open_source(bootstrap=…)` fetches
whole batches from any Kafka cluster. `folder`, `remote` and `embedded` are the sources behind it, `arrow` makes Arrow's
arrays of what `record.columns` decodes, `reader` is `log.table()`, `query` DuckDB over topics.
"""

from logkernel.table.source import COLUMNS, HEADERS, Bounds, Source, open_source

__all__ = ["COLUMNS", "HEADERS", "Bounds", "Source", "open_source"]
