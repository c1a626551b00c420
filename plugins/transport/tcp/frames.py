"""Frames and headers, as they lie on the wire.

    frame            int32 size | size bytes

    request header   int16 api_key | int16 api_version | int32 correlation_id            header v0
                     int16 length | client_id                                            header v1
                     uvarint count | tagged fields                                       header v2

    response header  int32 correlation_id                                                header v0
                     uvarint count | tagged fields                                       header v1

A flexible API version has request header v2 and response header v1; ApiVersions answers with v0 always.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from .wire import I16, Cursor, WireError, put_string

REQUEST_HEAD: Final = Struct(">hhi")
MIN_REQUEST: Final = REQUEST_HEAD.size
REQUEST_FRAME_HEAD: Final = Struct(">ihhi")
"""The frame's size, and the same."""
FRAME_HEAD: Final = Struct(">ii")
FLEXIBLE_FRAME_HEAD: Final = Struct(">iix")
"""With the count of its tagged fields, of which there are none."""

_HTTP: Final = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC", b"PRI ")
_ELSEWHERE: Final = "connect a client of Kafka here, or use the port of"
_CHECK: Final = "check what is connected there"


def read_client_id(body: memoryview, pos: int) -> tuple[str | None, int]:
    """The client id of header v1 and v2 at `pos`, and the position behind it."""
    size = I16.unpack_from(body, pos)[0]
    pos += 2
    if size == -1:
        return None, pos
    if size < 0 or pos + size > len(body):
        raise WireError(f"a client id of {size} bytes in a frame of {len(body)}")
    return str(body[pos : pos + size], "utf-8"), pos + size


def skip_tags(body: memoryview, pos: int) -> int:
    """The position behind the tagged fields at `pos`."""
    if body[pos] == 0:
        return pos + 1
    cursor = Cursor(body, pos)
    cursor.skip_tags()
    return cursor.pos


def client_part(client_id: str | None, flexible: bool) -> bytes:
    """What is the same in the headers of all of a client's requests: its id, and that nothing is tagged."""
    out = bytearray()
    put_string(out, client_id, False)
    if flexible:
        out.append(0)
    return bytes(out)


def diagnose(start: bytes, size: int, limit: int, setting: str, protocol: str) -> str:
    """What a peer probably speaks whose first four bytes `start` claim a frame of `size` bytes, and the remedy;
    `setting` has the limit, and `protocol` is the listener's, if it has no TLS."""
    if start[:2] == b"\x16\x03":
        return (
            f"a TLS handshake, and this listener has no TLS; set security.protocol={protocol} in the client, or give"
            " the listener TLS in listener.security.protocol.map"
        )
    if start in _HTTP:
        return f"HTTP, and this port speaks the Kafka protocol; {_ELSEWHERE} HTTP"
    if start == b"SSH-":
        return f"SSH, and this port speaks the Kafka protocol; {_ELSEWHERE} SSH"
    if size < 0:
        return f"a frame of {size} bytes, which is not the Kafka protocol; {_CHECK}"
    if size > limit:
        return f"a frame of {size} bytes, more than {setting}={limit}; raise that for a client of Kafka, or {_CHECK}"
    return f"a frame of {size} bytes, too short for a request header; {_CHECK}"
