"""The table room: a log as Arrow, for Spark's plugin, `log.table()` and `logkernel query`.

`open_source(path=…)` reads the segments of a data directory, `open_source(bootstrap=…)` fetches batches from any Kafka
cluster. `source` is the contract of a source; `folder`, `remote` and `embedded` implement it. `reader` is
`log.table()`, `query` is DuckDB over topics.
"""

from logkernel.table.opening import open_source
from logkernel.table.source import COLUMNS, HEADERS, Bounds, Source

__all__ = ["COLUMNS", "HEADERS", "Bounds", "Source", "open_source"]
