from collections.abc import Sequence

from logkernel.contracts import Buffer
from logkernel.record.pure import Columns, Headers
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
class BatchBuilder:
    count: int
    size: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    def __init__(self, limit: int, head: int) -> None: ...
    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int: ...
    def finish(self) -> bytearray: ...

def murmur2(data: bytes) -> int: ...
