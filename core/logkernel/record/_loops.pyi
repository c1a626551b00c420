from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from logkernel.contracts import Buffer
from logkernel.record.layout import Columns, Headers
from logkernel.vocabulary import Record

R = TypeVar("R", bound=tuple[Any, ...])
P = TypeVar("P", bound="Place")
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

def walk(buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int) -> tuple[int, int, int]: ...
def last_batch(buf: Buffer) -> int | None: ...
def decode_records(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    append_time_ms: int | None = None,
) -> list[Record]: ...

class RowDecoder(Generic[R]):
    left: int
    def __init__(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        kind: type[R],
        topic: str,
        partition: int,
        leader_epoch: int,
        from_offset: int,
    ) -> None: ...
    def next(self, most: int) -> list[R]: ...

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

class Place:
    batch: Any
    index: int
    timestamp_ms: int
    def __init__(self, batch: Any, index: int, timestamp_ms: int) -> None: ...

class BatchBuilder:
    count: int
    size: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    def __init__(self, limit: int, head: int) -> None: ...
    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int: ...
    def put(
        self,
        kind: type[P],
        owner: Any,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> P | None: ...
    def finish(self) -> bytearray: ...

def murmur2(data: bytes) -> int: ...

class Lane:
    batch: Any
    due_ms: int
    def open(self, batch: Any, builder: Any) -> None: ...
    def close(self) -> None: ...

class Route:
    keyed: bool
    lanes: list[Lane]
    sticky: Lane

class SendPath:
    routes: dict[str, Route]
    kind: type[Any]
    def __init__(self, kind: type[Any], overdue: Callable[[Lane], None]) -> None: ...

def fast_send(send: F) -> F: ...

class Unread(Generic[T]):
    def __len__(self) -> int: ...
    def fill(self, rows: Iterable[T]) -> None: ...
    def rest(self) -> list[T]: ...
    def pop(self) -> T: ...

class Handing(Generic[T]):
    def __init__(self, unread: Unread[T], more: Callable[[], T]) -> None: ...
    def __iter__(self) -> Handing[T]: ...
    def __next__(self) -> T: ...

class Strings:
    count: int
    def __init__(self, valid: Buffer | None, offsets: Buffer, data: Buffer | None, first: int, count: int) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> bytes | None: ...

class HeaderLists:
    count: int
    def __init__(
        self, valid: Buffer | None, offsets: Buffer, names: Strings, values: Strings, first: int, count: int
    ) -> None: ...
    def pairs(self, index: int) -> tuple[tuple[str, bytes | None], ...]: ...

def encode_rows(
    keys: Strings | None,
    values: Strings,
    headers: HeaderLists | None,
    rows: Buffer | None,
    start: int,
    end: int,
    limit: int,
    head: int,
) -> tuple[bytearray, int]: ...
def place_rows(keys: Strings, partitions: int) -> bytearray: ...
def group_rows(places: Buffer, count: int, partitions: int, sticky: int) -> tuple[bytearray, list[int]]: ...
def survey_records(
    buf: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp_ms: int,
    mask: bytearray,
    tombstones_before: int,
) -> tuple[int, int, int]: ...
def copy_records(
    buf: Buffer, start: int, end: int, count: int, base_timestamp_ms: int, mask: Buffer, new_base_timestamp_ms: int
) -> bytes: ...
def small_batches(buf: Buffer, start: int, end: int, most_bytes: int, barriers: Buffer) -> tuple[bytes, int]: ...

class OffsetMap:
    slots: int
    capacity: int
    size: int
    def __init__(self, memory_bytes: int, load_factor: float, seed: bytes, versioned: bool = False) -> None: ...
    def digest(self, key: bytes) -> bytes: ...
    def add(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        from_offset: int,
        versions: Buffer | None = None,
    ) -> int: ...
    def keep(
        self,
        buf: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        before_offset: int,
        versions: Buffer | None = None,
    ) -> bytearray: ...
    def add_batches(self, buf: Buffer, rows: bytes, from_offset: int) -> int: ...
    def keep_batches(self, buf: Buffer, rows: bytes, before_offset: int) -> bytearray: ...
