from collections.abc import Sequence

from logkernel.contracts import Buffer
from logkernel.record.pure import Columns
from logkernel.vocabulary import Record

def walk(buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int) -> tuple[int, int, int]: ...
def decode_records(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> list[Record]: ...
def columns(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> Columns: ...
def encode_records(
    records: Sequence[Record], base_offset: int, base_timestamp_ms: int, preserve_offsets: bool
) -> tuple[bytes, int, int]: ...
def murmur2(data: bytes) -> int: ...
