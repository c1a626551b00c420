"""Where received bytes lie: in a buffer that all connections share, until one holds half a frame.

A connection that is idle, or whose frames come whole, has no buffer of its own. What is left of an
unfinished frame moves to one that grows with what arrives, to twice as much at most: the size that a peer
claims is not believed, as nobody may know yet who that is. It serves the frames that follow while they keep
coming, and is dropped in a pause.

The shared buffer is safe because a BufferedProtocol's bytes are handled in the same turn of the loop
in which they are received; a proactor loop, which has reads under way on many connections, is given
`shared` False.
"""

from __future__ import annotations

from typing import Final

from .wire import I32

SHARED_BYTES: Final = 256 << 10
FIRST_BYTES: Final = 16 << 10
KEEP_BYTES: Final = 4 << 20
"""A larger buffer is dropped as soon as it is empty."""


def new_buffer(size: int) -> memoryview:
    return memoryview(bytearray(size))


class RequestBuffer:
    """`room` → receive → `received` → handle → `consumed`, in this order. `0 <= start <= end <= capacity`."""

    __slots__ = ("_end", "_own", "_shared", "_start", "_used")

    def __init__(self, shared: memoryview | None) -> None:
        self._shared = shared
        self._own: memoryview | None = None
        self._start = 0
        self._end = 0
        self._used = False

    @property
    def capacity(self) -> int:
        """Bytes of the connection's own buffer."""
        return len(self._own) if self._own is not None else 0

    def room(self) -> memoryview:
        """Where the next bytes go; never empty."""
        if self._own is None:
            if self._shared is not None:
                return self._shared
            self._own = new_buffer(FIRST_BYTES)
        return self._own[self._end :]

    def received(self, size: int) -> memoryview:
        """All unhandled bytes, after `size` bytes were put into `room`."""
        self._used = True
        self._end += size
        whole = self._own if self._own is not None else self._shared
        assert whole is not None
        return whole[self._start : self._end]

    def pending(self) -> memoryview:
        whole = self._own if self._own is not None else self._shared
        assert whole is not None
        return whole[self._start : self._end]

    def consumed(self, size: int) -> None:
        """The first `size` pending bytes were handled; the rest is kept, with room for its frame."""
        self._start += size
        left = self._end - self._start
        if left == 0:
            self._start = self._end = 0
            if self.capacity > KEEP_BYTES:
                self._own = None
            return
        self._make_room(left)

    def _make_room(self, left: int) -> None:
        rest = self.pending()
        claimed = 4 + max(0, I32.unpack_from(rest)[0]) if left >= 4 else 0
        wanted = max(FIRST_BYTES, left + 1, min(claimed, 2 * left))
        if self._own is not None and self._start + wanted <= len(self._own):
            return
        if self._own is not None and wanted <= len(self._own):
            self._own[:left] = rest
        else:
            own = new_buffer(wanted)
            own[:left] = rest
            self._own = own
        self._start, self._end = 0, left

    def drop(self) -> None:
        """Nothing more will come: give the buffer back now, whoever still holds this object."""
        self._own = None
        self._start = self._end = 0

    def shrink(self) -> None:
        """Called now and then: gives the buffer back where nothing came since the last call."""
        if not self._used and self._end == 0:
            self._own = None
        self._used = False
