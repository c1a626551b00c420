"""The core's settings, of all tables together. Loaded at first use: see `loading`."""

from __future__ import annotations

from functools import cache

from logkernel.config import table_broker, table_group, table_log, table_services, table_share, table_topic
from logkernel.config.definitions import Definitions, Setting


@cache
def tables() -> Definitions:
    """The core's settings, checked for names given twice."""
    broker: dict[str, Setting] = {}
    for row in (*table_broker.ROWS, *table_log.ROWS, *table_services.ROWS, *table_share.ROWS):
        assert row.name not in broker, row.name
        broker[row.name] = row
    topic = {row.name: row for row in table_topic.ROWS}
    own = (*table_group.ROWS, *table_share.GROUP_ROWS)
    group = {row.name: row for row in own if all(name in broker for name in row.synonyms)}
    return Definitions(broker, topic, group=group)
