"""Records to batches."""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.contracts import Codec
from logkernel.errors import InvalidRecord
from logkernel.record import loops
from logkernel.record.batch import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, join_batch
from logkernel.vocabulary import NO_TIMESTAMP, BatchFacts, Record


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type_log_append: bool = False,
    codec: Codec | None = None,
    preserve_offsets: bool = False,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """One v2 batch of `records`, which lie at `base_offset`, `base_offset` + 1 and so on.

    With `preserve_offsets` they lie where their `offset` says, ascending from `base_offset` or above;
    `last_offset` then says where the batch ends (compaction keeps what a batch covers). `codec` None
    stores them plain. `delete_horizon_ms` is the time from which a cleaner may drop the batch's
    tombstones (KIP-534). With `timestamp_type_log_append` every record takes the largest timestamp.

    Raises `InvalidRecord` for no records (see `encode_empty`) and for what a batch cannot hold.
    """
    if not records:
        raise InvalidRecord("a batch holds one record or more")
    base_timestamp_ms = records[0].timestamp_ms if delete_horizon_ms is None else delete_horizon_ms
    section, max_timestamp_ms, delta = loops.encode_records(records, base_offset, base_timestamp_ms, preserve_offsets)
    if last_offset is not None:
        if not delta <= last_offset - base_offset < 2**31:
            raise InvalidRecord(f"last offset {last_offset} does not close records up to {base_offset + delta}")
        delta = last_offset - base_offset
    attributes = (
        (LOG_APPEND_TIME if timestamp_type_log_append else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    if codec is not None:
        attributes |= codec.codec_id
        section = codec.compress(section)
    return join_batch(
        base_offset,
        leader_epoch,
        attributes,
        delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
        section,
    )


def encode_empty(facts: BatchFacts) -> bytes:
    """A batch without records that covers the offsets and keeps the producer state of `facts`.

    What a cleaner leaves of a producer's last batch: the sequence must outlive the records.
    """
    return join_batch(
        facts.base_offset,
        facts.leader_epoch,
        facts.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        facts.last_offset - facts.base_offset,
        NO_TIMESTAMP,
        facts.max_timestamp_ms,
        facts.producer_id,
        facts.producer_epoch,
        facts.base_sequence,
        0,
        b"",
    )
