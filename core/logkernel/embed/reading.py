"""Batches of a partition into the records that a reader sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.vocabulary import READ_COMMITTED, Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker


def read_from(broker: Broker, name: TopicPartition, offset: int, max_bytes: int, level: int) -> list[Record]:
    """About `max_bytes` of records from `offset` of a partition that the broker leads; on its thread. Raises as
    `EmbeddedLog.read_some`."""
    from logkernel.record.isolation import read_batches

    replica = broker.replicas.get(name)
    while True:  # past stretches that hold nothing for this reader
        found = replica.read(offset, max_bytes, level, min_one=True)
        if found is None:
            return []
        rows = replica.aborted_within(offset, found) if level == READ_COMMITTED else []
        aborted = [(row.producer_id, row.first_offset) for row in rows]
        records, end = read_batches(found.read(), broker.runtime.kernel.codec_for, aborted)
        wanted = [record for record in records if record.offset >= offset]
        if wanted or end is None:
            return wanted
        offset = end
