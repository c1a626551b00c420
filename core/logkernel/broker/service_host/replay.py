"""Builds machines of services from the log that they share: the fold of all its records, as fast as it can be had."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence

from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.service_host.shard import Shard
from logkernel.contracts import Codec
from logkernel.errors import KafkaStorageError
from logkernel.record.batch import batches
from logkernel.record.decode import check_crc, decode_batch, decode_columns
from logkernel.vocabulary import BatchFacts, Record

LOAD_CHUNK_BYTES = 4 << 20
LOAD_RECORDS = 10_000
"""About so many are folded at once."""
COLUMNS_FROM_RECORDS = 8
"""A smaller batch is not worth columns of its own."""


def load(shards: Sequence[Shard]) -> None:
    """Build the fresh machines of shards that share one log from that log alone. Raises what reading it raises, and
    `KafkaStorageError` where it is offline."""
    host, number = shards[0].host, shards[0].number
    replica = host.replica(number)
    if replica is not None:
        with no_collector():
            for _ in replay_in_steps(shards, replica):
                pass
        for shard in shards:
            shard.rests_on(replica, replica.log.end_offset)
    elif host.is_offline(number):
        raise KafkaStorageError(f"shard {number} of service {host.declared.name}: its log is offline")
    for shard in shards:
        if shard.is_there:
            shard.tell(shard.machine.on_loaded)


def replay_in_steps(shards: Sequence[Shard], replica: LeaderReplica) -> Iterator[None]:
    """Fold a log into machines, a chunk of it a step.

    What belongs to no transaction is folded many records at once: a large batch by its columns, where a machine can do
    that, and many small ones together, as most commits are."""
    codec_for = shards[0].host.runtime.kernel.codec_for
    reads_columns = any(shard.reads_columns for shard in shards)
    plain: list[Record] = []
    chunk: bytes | None = None
    for data, facts, start in _stored(replica):
        if data is not chunk and chunk is not None:
            yield
        chunk = data
        special = facts.is_control or facts.is_transactional
        columnar: list[Shard] = []
        whole = not special and facts.magic == 2 and facts.base_offset >= start
        if reads_columns and whole and facts.count >= COLUMNS_FROM_RECORDS:
            _fold(shards, plain)
            check_crc(data, facts)
            columns = decode_columns(data, facts, codec_for)
            columnar = [shard for shard in shards if shard.replay_columns(columns)]
        if len(columnar) < len(shards):
            records = _records(data, facts, start, codec_for)
            if special:
                _fold(shards, plain)
                for shard in shards:
                    shard.replay_batch(facts, records)
            elif columnar:
                _fold([shard for shard in shards if shard not in columnar], records)
            else:
                plain += records
        if len(plain) >= LOAD_RECORDS:
            _fold(shards, plain)
    _fold(shards, plain)


def _fold(shards: Sequence[Shard], records: list[Record]) -> None:
    """Fold records of no transaction, and forget them."""
    if not records:  # before every large batch that follows one
        return
    for shard in shards:
        shard.replay(records, None)
    records.clear()


def _records(data: bytes, facts: BatchFacts, start: int, codec_for: Callable[[int], Codec]) -> list[Record]:
    """The records of a batch from `start` on."""
    if facts.magic < 2:  # a folder of an old Kafka
        from logkernel.record.legacy import decode_message

        records = decode_message(data, facts, codec_for)
    else:
        records = decode_batch(data, facts, codec_for, verify_crc=True)
    if facts.base_offset < start:
        records = [record for record in records if record.offset >= start]
    return records


_keeps_frozen = False
"""Whether what there is was frozen, as a server that is ready does, and is to be kept so. Once known it is not asked
again, shard by shard: Python goes through all that is frozen to count it."""


@contextlib.contextmanager
def no_collector() -> Iterator[None]:
    """Disable the garbage collector: loading allocates much and frees little."""
    global _keeps_frozen
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        _keeps_frozen = _keeps_frozen or gc.get_freeze_count() > 0
        gc.freeze()  # all that is new counts as old, and is not looked through at once
        if not _keeps_frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()


def _stored(replica: LeaderReplica) -> Iterator[tuple[bytes, BatchFacts, int]]:
    """Every batch of a log, in the bytes that its facts speak of, and the log's start.

    Up to the log's end: what is not committed yet stays in the log, and a machine may have decided by it before.
    """
    start = offset = replica.log.start_offset
    while True:
        found = replica.log.read(offset, LOAD_CHUNK_BYTES)
        if found is None:
            return
        data = found.read()
        before = offset
        for facts in batches(data):
            yield data, facts, start
            offset = facts.last_offset + 1
        if offset == before:
            return
