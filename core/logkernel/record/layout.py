"""The layout of a batch's records, what may be wrong with them, and the shapes that plain Python and C share.

One record of a v2 batch ("varint" is zigzag, 1 to 5 bytes; "varlong" 1 to 10):

    length varint | attributes i8 = 0 | timestamp delta varlong | offset delta varint
    | key length varint (-1: null) | key | value length varint (-1: null) | value
    | header count varint | { name length varint | name UTF-8 | value length varint (-1: null) | value } ...

What reads or writes it is there twice: compiled in `_loops`, and in plain Python in `pure_decode`, `pure_encode` and
the other `pure_` files; `codec` chooses. All raise `InvalidRecord` for records that break this; none believes a length
or count before it is bounded by the bytes at hand.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Final, NamedTuple

from logkernel.errors import InvalidRecord

Headers = tuple[tuple[str, bytes | None], ...]

MIN_RECORD_BYTES: Final = 7
"""Length, attributes, two deltas, two null lengths and a header count, of one byte each."""

FAULTS: Final = (
    "",
    "a varint is cut off or too long",
    "its length passes the end of the batch",
    "its fields do not end where its length says",
    "a header count or header length makes no sense",
    "its timestamp overflows",
    "its offset delta is not its place in the batch",
    "bytes follow the last record",
    "the batch is too short for its count",
    "its size passes 2**31 - 1 bytes",
    "the length of its key or value is negative, and not the -1 of null",
)
"""What may be wrong with a record; `_loops` returns indexes into it."""
(
    _,
    BAD_VARINT,
    BAD_LENGTH,
    BAD_END,
    BAD_HEADERS,
    BAD_TIMESTAMP,
    BAD_DELTA,
    TRAILING,
    BAD_COUNT,
    TOO_LARGE,
    BAD_NULL,
) = range(len(FAULTS))

MAX_LONG: Final = 2**63 - 1
MIN_LONG: Final = -(2**63)
MAX_INT: Final = 2**31 - 1


class Columns(NamedTuple):
    """A batch's records as columns in Arrow's memory layout (native byte order).

    `offsets`, `timestamps`: int64 each record. Keys, values and headers: int32 end offsets (rows + 1 of
    them, from 0) and the bytes back to back; validity bitmaps have a set bit where the key or value is
    not null, least significant bit first. A record's headers stay encoded (count, then pairs): see
    `pure_decode.decode_headers`.
    """

    rows: int
    offsets: bytes
    timestamps: bytes
    key_validity: bytes
    key_ends: bytes
    keys: bytes
    value_validity: bytes
    value_ends: bytes
    values: bytes
    header_ends: bytes
    headers: bytes


@lru_cache(maxsize=256)
def even_ends(rows: int, stride: int) -> bytes:
    """The ends in `Columns` of fields of `stride` bytes each; empty where such a column would be too large."""
    if rows * stride > MAX_INT:
        return b""
    return array("i", range(0, (rows + 1) * stride, stride)).tobytes()


def fault(index: int, code: int) -> InvalidRecord:
    return InvalidRecord(f"record {index} of its batch: {FAULTS[code]}")
