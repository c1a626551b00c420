"""Control records: the markers that end a transaction on a partition (KIP-98).

    key:   version i16 = 0 | type i16: 0 ABORT, 1 COMMIT
    value: version i16 = 0 | coordinator epoch i32

A marker is the only record of its batch, which is a control batch of the transaction's producer and
has no sequence. Readers skip versions and types that they do not know, and bytes behind the fields.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.errors import InvalidRecord
from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record

ABORT: Final = 0
COMMIT: Final = 1

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")


@frozen
class EndTxnMarker:
    """How a producer's transaction ended here, and the epoch of the coordinator that said so."""

    committed: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> int:
    """The type in a control record's key; raises `InvalidRecord` where the key has none."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(f"a control record's key has {_KEY.size} bytes or more, not {len(key or b'')}")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"a control record's key has version {version}")
    return int(kind)


def marker_record(committed: bool, coordinator_epoch: int, timestamp_ms: int) -> Record:
    key = _KEY.pack(0, COMMIT if committed else ABORT)
    return Record(key, _VALUE.pack(0, coordinator_epoch), timestamp_ms=timestamp_ms)


def encode_marker(
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The control batch that ends a producer's transaction."""
    return encode_batch(
        [marker_record(committed, coordinator_epoch, timestamp_ms)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def parse_marker(record: Record) -> EndTxnMarker | None:
    """The marker that a control record holds; None for a control record of another type.

    Raises `InvalidRecord` for a rotten one.
    """
    kind = control_type(record.key)
    if kind not in (ABORT, COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise InvalidRecord(f"an end-transaction marker's value has {_VALUE.size} bytes or more")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise InvalidRecord(f"an end-transaction marker has version {version}")
    return EndTxnMarker(kind == COMMIT, coordinator_epoch)
