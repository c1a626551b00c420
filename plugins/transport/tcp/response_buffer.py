"""Where a client receives responses: in buffers that come back once nobody holds a view of them.

Records are not copied out of a large response: whoever has it holds a view of the bytes where they were received. A
buffer that is held so is lent: the next response goes to another, and nothing that was handed out is ever written to
again. The first touch of new memory can cost more than all that is done with it, so that lent buffers are used again,
as soon as they are free; what is kept for it is at most `SPARE_BYTES`, and nothing once only small responses come.

A response of less than `SMALL_BYTES`, or of less than a quarter of its buffer, is better copied: it would hold far
more memory than it has bytes.
"""

from __future__ import annotations

from typing import Final

from .request_buffer import FIRST_BYTES
from .wire import I32

SMALL_BYTES: Final = 64 << 10
KEEP_BYTES: Final = 16 << 20
"""A larger buffer serves one response: at 1 MiB a partition, which is what a consumer asks for, few are larger."""
EAGER_BYTES: Final = 1 << 20
"""What a broker is believed of a response's size before its bytes come."""
SPARE_BYTES: Final = 16 << 20
"""Memory that waits to be free again, for the next responses."""
STEP_BYTES: Final = 64 << 10
"""Buffers are multiples of it, so that one fits responses of nearly the same size."""
QUIET_RESPONSES: Final = 16
"""So many small responses in a row, and large buffers are given back."""


def is_held(buffer: bytearray) -> bool:
    """Whether somebody has a view of it: a bytearray with views refuses to change its size."""
    try:
        last = buffer.pop()
    except BufferError:
        return True
    buffer.append(last)
    return False


class ResponseBuffer:
    """`room` → receive → `received` → handle → `consumed`, in this order. `0 <= start <= end <= capacity`."""

    __slots__ = ("_end", "_lent", "_own", "_quiet", "_start")

    def __init__(self) -> None:
        self._own = bytearray(FIRST_BYTES)
        self._start = 0
        self._end = 0
        self._lent: list[bytearray] = []
        """Buffers of which somebody held a view, the oldest first."""
        self._quiet = 0

    @property
    def capacity(self) -> int:
        """Bytes of the buffer that is received into."""
        return len(self._own)

    @property
    def spare_bytes(self) -> int:
        """Bytes of the buffers that may be used again."""
        return sum(map(len, self._lent))

    @property
    def least_kept(self) -> int:
        """A response of fewer bytes is to be copied."""
        return max(SMALL_BYTES, len(self._own) >> 2)

    @property
    def missing(self) -> int:
        """How many bytes the frame at hand still lacks; 0 where none has begun."""
        left = self._end - self._start
        return max(0, self._claimed() - left) if left >= 4 else 0

    def _claimed(self) -> int:
        return 4 + max(0, int(I32.unpack_from(self._own, self._start)[0]))

    def room(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._start and self._start == self._end:
            self._begin()
        return memoryview(self._own)[self._end :]

    def _begin(self) -> None:
        """All was handled: from the start again, in this buffer or in another one."""
        self._start = self._end = 0
        if is_held(self._own):
            self._replace(len(self._own) if len(self._own) <= KEEP_BYTES else FIRST_BYTES)
        elif len(self._own) > KEEP_BYTES:
            self._own = bytearray(FIRST_BYTES)
        elif self._quiet >= QUIET_RESPONSES:
            self._lent.clear()
            if len(self._own) > STEP_BYTES:
                self._own = bytearray(FIRST_BYTES)

    def received(self, size: int) -> memoryview:
        """All unhandled bytes, after `size` bytes were put into `room`."""
        self._end += size
        return memoryview(self._own)[self._start : self._end]

    def consumed(self, size: int) -> None:
        """The first `size` pending bytes were handled; the rest is kept, with room for its frame."""
        if size:
            self._quiet = 0 if size >= SMALL_BYTES else self._quiet + 1
        self._start += size
        left = self._end - self._start
        if left:
            self._make_room(left)

    def _make_room(self, left: int) -> None:
        claimed = self._claimed() if left >= 4 else 0
        wanted = max(FIRST_BYTES, left + 1, min(claimed, max(EAGER_BYTES + STEP_BYTES, 2 * left)))
        if self._start + wanted <= len(self._own):
            return
        old, start = self._own, self._start
        self._replace(wanted)
        self._own[:left] = memoryview(old)[start : start + left]
        self._start, self._end = 0, left

    def _replace(self, wanted: int) -> None:
        """Go on in another buffer, of at least `wanted` bytes."""
        lent = self._lent
        if len(self._own) > FIRST_BYTES and len(self._own) <= KEEP_BYTES:
            lent.append(self._own)
        for index, buffer in enumerate(lent):
            if buffer is not self._own and wanted <= len(buffer) <= 4 * wanted and not is_held(buffer):
                self._own = lent.pop(index)
                break
        else:
            size = wanted if wanted <= FIRST_BYTES else -(-wanted // STEP_BYTES) * STEP_BYTES
            self._own = bytearray(size)
        while self.spare_bytes > SPARE_BYTES:
            del lent[0]
