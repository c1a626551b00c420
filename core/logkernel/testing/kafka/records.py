"""Records as a test sees them."""

from __future__ import annotations

import json
from typing import Any

from logkernel.attrs_lite import frozen


@frozen
class KafkaRecord:
    """One record of a topic. `timestamp_ms` is in ms since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int

    @property
    def text(self) -> str | None:
        """The value as UTF-8. Raises `UnicodeDecodeError`."""
        return None if self.value is None else self.value.decode()

    @property
    def json(self) -> Any:
        """The value as JSON. Raises `ValueError` where it is none."""
        return None if self.value is None else json.loads(self.value)


def encoded(given: object, what: str) -> bytes | None:
    """What is written for a key or value: bytes as they are, text as UTF-8, anything else as JSON.

    Raises `TypeError`, which calls it `what`, for what JSON has no form of.
    """
    if given is None or isinstance(given, bytes):
        return given
    if isinstance(given, (bytearray, memoryview)):
        return bytes(given)
    if isinstance(given, str):
        return given.encode()
    try:
        return json.dumps(given, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            f"JSON cannot express the {what}, a {type(given).__name__!r}: {error}; pass bytes, text, None, or a dict,"
            " list, number or bool of such"
        ) from None
