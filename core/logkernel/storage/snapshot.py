"""Producer state on disk (`.snapshot`): what idempotent and transactional producers need after a restart.

| version i16 = 1 | CRC-32C u32 of all that follows it | count i32 | entries |

entry: producer id i64 | epoch i16 | last sequence i32 | last offset i64 | offset delta i32 |
       timestamp i64 | coordinator epoch i32 | first offset of the open transaction i64, -1 for none
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

from logkernel.errors import CorruptMessage
from logkernel.record.crc import crc32c
from logkernel.vocabulary import ProducerEntry

HEAD = Struct(">hI")
COUNT = Struct(">i")
ENTRY = Struct(">qhiqiqiq")
VERSION = 1


class CorruptSnapshot(CorruptMessage):
    """A snapshot file cannot be read; an older one, or the log, gives the same state."""


def encode(entries: Iterable[ProducerEntry]) -> bytes:
    """The file for `entries`; of each only the newest batch is kept, as Kafka does."""
    rows = []
    for entry in entries:
        sequence, offset, delta, _ = entry.batches[-1] if entry.batches else (-1, -1, 0, -1)
        rows.append(
            ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                sequence,
                offset,
                delta,
                entry.last_timestamp_ms,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = COUNT.pack(len(rows)) + b"".join(rows)
    return HEAD.pack(VERSION, crc32c(body)) + body


def decode(data: bytes) -> list[ProducerEntry]:
    """The entries of a file. Raises `CorruptSnapshot`."""
    try:
        version, crc = HEAD.unpack_from(data)
        (count,) = COUNT.unpack_from(data, HEAD.size)
    except error:
        raise CorruptSnapshot(f"{len(data)} bytes are no snapshot") from None
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is not {VERSION}")
    body = memoryview(data)[HEAD.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("the checksum is wrong")
    rows = body[COUNT.size :]
    if count < 0 or len(rows) != count * ENTRY.size:
        raise CorruptSnapshot(f"{count} entries do not fit {len(rows)} bytes")
    return [_entry(row) for row in ENTRY.iter_unpack(rows)]


def _entry(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = row
    batches = [(sequence, offset, delta, timestamp)] if offset >= 0 else []
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, first, batches)
