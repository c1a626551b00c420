"""What goes over the coordination's socket: frames of JSON, each behind its length (4 bytes, big-endian).

| from a session | what comes back |
|---|---|
| `{"call": "hello", "id": 0, "v": 1, "timeout_ms": 9000}` | its answer; every connection begins so |
| `{"call": NAME, "id": N, …}` | one answer, after the events that happened before it |
| `{"beat": 1}` | nothing |

| from the coordination | meaning |
|---|---|
| `{"id": N, "result": …}`, `{"id": N, "error": NAME, "message": …}` | the answer to call N |
| `{"event": "changes", "changes": […]}` | `SessionEvents.on_changes` |
| `{"event": "controller", "node": 1, "term": 3}` | `SessionEvents.on_controller` |

A change is `[kind, key, value]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, Final

from logkernel import errors
from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest, KafkaError, KafkaStorageError

SOCKET: Final = "sessions.sock"
"""In the coordination's folder."""
VERSION: Final = 1
MAX_FRAME_BYTES: Final = 256 << 20
"""Room for the facts of a million partitions, which a new controller reads as one answer."""
LENGTH: Final = Struct(">I")

Message = dict[str, Any]


def pack(message: Message) -> bytes:
    """A frame. Raises `InvalidRequest` for one that is too long."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise InvalidRequest(
            f"a message to or from the coordination has {len(body)} bytes, more than {MAX_FRAME_BYTES}; change less"
            " at once"
        )
    return LENGTH.pack(len(body)) + body


class Frames:
    """Cuts received bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[Message]:
        """The messages that are complete now. Raises `InvalidRequest` for bytes that are none."""
        buffer = self._buffer
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= LENGTH.size:
                (size,) = LENGTH.unpack_from(buffer, position)
                if size > MAX_FRAME_BYTES:
                    raise InvalidRequest(
                        f"a frame of {size} bytes is longer than {MAX_FRAME_BYTES}; speak version"
                        f" {VERSION} of the coordination's protocol"
                    )
                end = position + LENGTH.size + size
                if len(buffer) < end:
                    return
                body, position = bytes(buffer[position + LENGTH.size : end]), end
                yield _message(body)
        finally:
            del buffer[:position]


def _message(body: bytes) -> Message:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"a frame holds no JSON ({error})") from None
    if not isinstance(found, dict):
        raise InvalidRequest(f"a frame holds a {type(found).__name__}, not an object")
    return found


# ---------------------------------------------------------------- changes


def rows_of(changes: Sequence[MetadataChange]) -> list[list[Any]]:
    return [[change.kind, change.key, change.value] for change in changes]


def changes_of(rows: Any) -> list[MetadataChange]:
    """Raises `InvalidRequest`."""
    if not isinstance(rows, list):
        raise InvalidRequest(f"changes are a list, not a {type(rows).__name__}")
    return [_change(row) for row in rows]


def _change(row: Any) -> MetadataChange:
    match row:
        case [str(kind), str(key), dict() | None as value]:
            return MetadataChange(kind, key, value)
    raise InvalidRequest("a change is [kind, key, value]; the value is an object or null")


# ---------------------------------------------------------------- errors


def error_row(number: int, error: Exception) -> Message:
    """The answer to a call that raised."""
    kind = type(error).__name__
    if not isinstance(error, KafkaError):  # a disk that failed, above all
        kind, error = KafkaStorageError.__name__, KafkaStorageError(f"the coordination failed: {error}")
    return {"id": number, "error": kind, "message": str(error)}


def error_of(row: Message) -> KafkaError:
    kind = getattr(errors, str(row.get("error")), None)
    if not (isinstance(kind, type) and issubclass(kind, KafkaError)):
        kind = KafkaStorageError
    return kind(str(row.get("message")))
