"""Every file of a data folder as rows: dicts with a `kind`, ready for JSON; `columns` makes lines of them.

    .log                          segment, batch, record, trailing
    .index .timeindex .txnindex   offset, time, aborted
    .snapshot                     producer
    checkpoints                   checkpoint, epoch
    partition.metadata            partition
    meta.properties               directory
    .kafka_cleanshutdown          shutdown

Bytes are as `row_bytes` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from logkernel.contracts import Buffer, RecordDecoder
from logkernel.errors import CorruptMessage, KafkaError, LogkernelError
from logkernel.inspect.row_bytes import bytes_field
from logkernel.record.batch import (
    BASE_TIMESTAMP_OFFSET,
    DELETE_HORIZON,
    LEGACY_HEADER,
    LEGACY_MIN_BYTES,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    parse_header,
    stored_crc,
)
from logkernel.record.bounds import CodecFor
from logkernel.record.control import control_type, parse_marker
from logkernel.record.decode import decode_batch
from logkernel.record.validate import check_stored
from logkernel.storage import checkpoints, snapshot, txnindex
from logkernel.storage.disk import Disk, File
from logkernel.storage.index import OffsetIndex, TimeIndex
from logkernel.storage.names import CLEANED, DELETED, INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, TXN_INDEX, offset_of
from logkernel.vocabulary import BatchFacts, Record, format_id

Row = dict[str, Any]
CHUNK_BYTES = 1 << 20
MAX_BATCH_BYTES = 1 << 30
OFFSET_CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_STARTS,
    "cleaner-offset-checkpoint",
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NO_LIMIT = 2**63 - 1


class UnknownFile(LogkernelError):
    """A file whose name says nothing that a data folder holds."""


def plain_name(path: str) -> str:
    """The file's name, without what a removal or a rewrite has added to it."""
    name = path.rpartition("/")[2]
    for suffix in (DELETED, CLEANED, SWAP):
        name = name.removesuffix(suffix)
    return name


def base_of(path: str, suffix: str) -> int:
    """The base offset in a segment file's name; 0 where it holds none."""
    return offset_of(plain_name(path), suffix) or 0


# ---------------------------------------------------------------- log


def batch_at(file: File, position: int) -> tuple[BatchFacts, bytes] | None:
    """The batch at `position`, with all of its bytes; None where the file ends within it.

    Its facts are at position 0. Raises `CorruptMessage` for bytes that are no batch.
    """
    if file.size - position < LEGACY_MIN_BYTES:
        return None
    head = file.read(position, LOG_OVERHEAD)
    size = LOG_OVERHEAD + int.from_bytes(head[LENGTH_OFFSET:], "big", signed=True)
    if not LEGACY_MIN_BYTES <= size <= MAX_BATCH_BYTES:
        raise CorruptMessage(f"batch at {position}: length {size - LOG_OVERHEAD} makes no sense")
    if size > file.size - position:
        return None
    data = file.read(position, size)
    try:
        facts = parse_header(data, 0)
    except CorruptMessage as error:
        raise CorruptMessage(f"byte {position} of the file: {error}") from None
    return facts, data


def log_rows(
    disk: Disk,
    path: str,
    codec_for: CodecFor,
    *,
    records: bool = False,
    payload: bool = False,
    decoder: RecordDecoder | None = None,
    max_bytes: int = NO_LIMIT,
) -> Iterator[Row]:
    """A segment's batches, with `records` also what is in them, with `payload` their keys and values too; those that
    end within the first `max_bytes`."""
    yield {"kind": "segment", "startOffset": base_of(path, LOG)}
    file = disk.open(path, write=False)
    position = 0
    while position < min(file.size, max_bytes):
        try:
            found = batch_at(file, position)
        except CorruptMessage as error:
            yield _trailing(path, position, file.size) | {"error": str(error)}
            return
        if found is None:
            yield _trailing(path, position, file.size)
            return
        facts, data = found
        if position + facts.size > max_bytes:
            return
        yield batch_row(facts, data, position)
        if records:
            yield from _record_rows(facts, data, codec_for, payload, decoder)
        position += facts.size


def _trailing(path: str, position: int, size: int) -> Row:
    return {"kind": "trailing", "file": path.rpartition("/")[2], "position": position, "bytes": size - position}


def batch_row(facts: BatchFacts, data: Buffer, position: int) -> Row:
    row: Row = {"kind": "batch", "baseOffset": facts.base_offset, "lastOffset": facts.last_offset}
    if facts.magic >= 2:
        horizon = facts.attributes & DELETE_HORIZON
        first = int.from_bytes(data[BASE_TIMESTAMP_OFFSET : BASE_TIMESTAMP_OFFSET + 8], "big", signed=True)
        row |= {
            "count": facts.count,
            "baseSequence": facts.base_sequence,
            "lastSequence": facts.last_sequence,
            "producerId": facts.producer_id,
            "producerEpoch": facts.producer_epoch,
            "partitionLeaderEpoch": facts.leader_epoch,
            "isTransactional": facts.is_transactional,
            "isControl": facts.is_control,
            "deleteHorizonMs": first if horizon else None,
        }
    crc = stored_crc(data, 0) if facts.magic >= 2 else LEGACY_HEADER.unpack_from(data, 0)[2]
    return row | {
        "position": position,
        "timestampType": _timestamp_type(facts),
        "timestamp": facts.max_timestamp_ms,
        "size": facts.size,
        "magic": facts.magic,
        "compresscodec": CODECS[facts.codec_id] if facts.codec_id < len(CODECS) else f"unknown {facts.codec_id}",
        "crc": crc,
        "isvalid": _is_valid(data),
    }


def _is_valid(data: Buffer) -> bool:
    try:
        check_stored(data, 0)
    except KafkaError:
        return False
    return True


def _timestamp_type(facts: BatchFacts) -> str:
    if facts.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if facts.is_log_append_time else "CreateTime"


def _record_rows(
    facts: BatchFacts, data: bytes, codec_for: CodecFor, payload: bool, decoder: RecordDecoder | None
) -> Iterator[Row]:
    crcs: list[tuple[int, bool]] = []
    try:
        if facts.magic < 2:
            from logkernel.record.legacy import decode_message, message_crcs

            records = decode_message(data, facts, codec_for, verify_crc=False)
            crcs = message_crcs(data, facts, codec_for)
        else:
            records = decode_batch(data, facts, codec_for)
    except LogkernelError as error:
        yield {"kind": "error", "offset": facts.base_offset, "error": str(error)}
        return
    for number, record in enumerate(records):
        row: Row = {
            "kind": "record",
            "offset": record.offset,
            "timestampType": _timestamp_type(facts),
            "timestamp": record.timestamp_ms,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
        }
        if facts.magic >= 2:
            sequence = facts.base_sequence
            if sequence >= 0:
                sequence = (sequence + record.offset - facts.base_offset) & 0x7FFFFFFF
            row |= {"sequence": sequence, "headerKeys": [name for name, _ in record.headers]}
        else:
            row["crc"], row["isvalid"] = crcs[number]
        if facts.is_control:
            yield row | _control(record)
        else:
            yield row | _content(record, decoder) if payload else row


def _control(record: Record) -> Row:
    try:
        marker = parse_marker(record)
        if marker is None:
            return {"controlType": control_type(record.key)}
    except KafkaError as error:
        return {"error": str(error)}
    return {"endTxnMarker": "COMMIT" if marker.committed else "ABORT", "coordinatorEpoch": marker.coordinator_epoch}


def _content(record: Record, decoder: RecordDecoder | None) -> Row:
    row: Row = {}
    if decoder is not None:
        try:
            row["key"], row["value"] = decoder.decode(record)
        except LogkernelError as error:
            row["error"] = str(error)
        else:
            return row | {"decoded": True}
    row |= bytes_field("key", record.key) | bytes_field("value", record.value)
    if record.headers:
        row["headers"] = [{"name": name} | bytes_field("value", value) for name, value in record.headers]
    return row


# ---------------------------------------------------------------- the other files


def index_rows(disk: Disk, path: str) -> Iterator[Row]:
    """An active segment's index ends in zeros, which are no entries."""
    data, base = disk.read(path), base_of(path, INDEX)
    whole = len(data) - len(data) % OffsetIndex.ENTRY.size
    for number, (relative, position) in enumerate(OffsetIndex.ENTRY.iter_unpack(data[:whole])):
        if relative == 0 and number:
            return
        if (relative, position) != (0, 0) or len(data) == OffsetIndex.ENTRY.size:
            yield {"kind": "offset", "offset": base + relative, "position": position}


def is_empty_index(disk: Disk, path: str) -> bool:
    """Of offsets: of the other indexes Kafka's tool does not say so."""
    return offset_of(plain_name(path), INDEX) is not None and disk.size(path) == 0


def time_rows(disk: Disk, path: str) -> Iterator[Row]:
    data, base = disk.read(path), base_of(path, TIME_INDEX)
    whole = len(data) - len(data) % TimeIndex.ENTRY.size
    last = -1
    for timestamp, relative in TimeIndex.ENTRY.iter_unpack(data[:whole]):
        if (timestamp, relative) == (0, 0) and (last >= 0 or whole > TimeIndex.ENTRY.size):
            return
        last = timestamp
        yield {"kind": "time", "timestamp": timestamp, "offset": base + relative}


def aborted_rows(disk: Disk, path: str) -> Iterator[Row]:
    for row in txnindex.parse_rows(disk.read(path), path):
        yield {
            "kind": "aborted",
            "version": txnindex.VERSION,
            "producerId": row.producer_id,
            "firstOffset": row.first_offset,
            "lastOffset": row.last_offset,
            "lastStableOffset": row.last_stable_offset,
        }


def snapshot_rows(disk: Disk, path: str) -> Iterator[Row]:
    for entry in snapshot.decode(disk.read(path)):
        first = entry.current_txn_first_offset
        row: Row = {
            "kind": "producer",
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": first if first >= 0 else None,
            "lastTimestamp": entry.last_timestamp_ms,
        }
        for sequence, offset, delta, timestamp in entry.batches:
            row |= {
                "firstSequence": (sequence - delta) & 0x7FFFFFFF if sequence >= 0 else sequence,
                "lastSequence": sequence,
                "lastOffset": offset,
                "offsetDelta": delta,
                "timestamp": timestamp,
            }
        yield row


def checkpoint_rows(disk: Disk, path: str) -> Iterator[Row]:
    data = disk.read(path)
    if not data:
        return  # Kafka makes the file before there is anything to write
    for name, offset in checkpoints.parse_offsets(data, path).items():
        yield {"kind": "checkpoint", "topic": name.topic, "partition": name.partition, "offset": offset}


def epoch_rows(disk: Disk, path: str) -> Iterator[Row]:
    for epoch, start in checkpoints.parse_epochs(disk.read(path), path):
        yield {"kind": "epoch", "epoch": epoch, "startOffset": start}


def partition_rows(disk: Disk, path: str) -> Iterator[Row]:
    topic_id = checkpoints.parse_partition_metadata(disk.read(path), path)
    yield {"kind": "partition", "version": 0, "topicId": format_id(topic_id)}


def meta_rows(disk: Disk, path: str) -> Iterator[Row]:
    meta = checkpoints.parse_meta(disk.read(path), path)
    yield {
        "kind": "directory",
        "nodeId": meta.node_id,
        "clusterId": meta.cluster_id,
        "directoryId": meta.directory_id,
    }


def shutdown_rows(disk: Disk, path: str) -> Iterator[Row]:
    yield {"kind": "shutdown", "brokerEpoch": checkpoints.parse_clean_shutdown(disk.read(path))}


BY_SUFFIX: dict[str, Callable[[Disk, str], Iterator[Row]]] = {
    TXN_INDEX: aborted_rows,
    TIME_INDEX: time_rows,
    INDEX: index_rows,
    SNAPSHOT: snapshot_rows,
}
BY_NAME: dict[str, Callable[[Disk, str], Iterator[Row]]] = {
    **dict.fromkeys(OFFSET_CHECKPOINTS, checkpoint_rows),
    checkpoints.LEADER_EPOCHS: epoch_rows,
    checkpoints.PARTITION_METADATA: partition_rows,
    checkpoints.META_PROPERTIES: meta_rows,
    checkpoints.CLEAN_SHUTDOWN: shutdown_rows,
}


def rows_of(disk: Disk, path: str, codec_for: CodecFor, **options: Any) -> Iterator[Row]:
    """The rows of any file; `options` are those of `log_rows`, which others ignore.

    Raises `UnknownFile`, and what the file's own reader raises for one that cannot be read.
    """
    name = plain_name(path)
    if name.endswith(LOG) and offset_of(name, LOG) is not None:
        return log_rows(disk, path, codec_for, **options)
    reader = BY_NAME.get(name) or next(
        (found for suffix, found in BY_SUFFIX.items() if offset_of(name, suffix) is not None), None
    )
    if reader is None:
        raise UnknownFile(f"{path}: no file of a data folder has such a name")
    return reader(disk, path)
