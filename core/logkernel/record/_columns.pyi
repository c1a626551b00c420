from logkernel.contracts import Buffer
from logkernel.record.pure_columns import Rows

class ColumnScan:
    wanted: int
    start: int
    end: int
    why: int
    needed: int
    at: int
    next_offset: int
    rows: int
    def __init__(
        self,
        wanted: int,
        start: int,
        end: int,
        first_ms: int | None,
        last_ms: int | None,
        max_rows: int,
        max_bytes: int,
        verify_crc: bool,
    ) -> None: ...
    @property
    def size(self) -> int: ...
    def abort(self, producer_id: int, first: int, last: int = ...) -> None: ...
    def forget_aborted(self) -> None: ...
    def feed(self, buf: Buffer, start: int, stop: int) -> int: ...
    def section(
        self,
        plain: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        last_offset: int,
        base_timestamp_ms: int,
        append_time_ms: int | None,
        timestamp_type: int,
    ) -> bool: ...
    def take(self) -> Rows | None: ...

def kept_memory() -> tuple[int, int]: ...
