"""The core's settings, of all tables together. Loaded at first use: see `loading`. Services bring their own."""

from __future__ import annotations

from functools import cache

from logkernel.config import table_broker, table_log, table_producers, table_security, table_topic
from logkernel.config.definitions import Definitions, Setting


@cache
def tables() -> Definitions:
    """The core's settings, checked for names given twice."""
    broker: dict[str, Setting] = {}
    for row in (*table_broker.ROWS, *table_log.ROWS, *table_producers.ROWS, *table_security.ROWS):
        assert row.name not in broker, row.name
        broker[row.name] = row
    return Definitions(broker, {row.name: row for row in table_topic.ROWS})
