"""The table room: a log as Arrow, for Spark's plugin, `log.table()` and `logkernel query`.

`opening` is the door: `open_source(path=…)` reads the segments of a broker's folder, `open_source(bootstrap=…)` fetches
whole batches from any Kafka cluster. `source` says what a source is; `folder`, `remote` and `embedded` are those behind
the door, `reader` is `log.table()`, `query` DuckDB over topics.
"""

from logkernel.table.opening import open_source
from logkernel.table.source import COLUMNS, HEADERS, Bounds, Source

__all__ = ["COLUMNS", "HEADERS", "Bounds", "Source", "open_source"]
