"""Error messages for arguments of which no record can be made. Used only after encoding failed, or if it may fail."""

from __future__ import annotations

from typing import Any

from logkernel.errors import PluginError

SERIALIZER = '; pass text.encode(), or set {}_serializer="string"'
"""The remedy that a producer has beside."""


def check_fields(key: Any, value: Any, headers: Any, remedy: str = "; pass text.encode()") -> None:
    """Raise `TypeError` that names the field, what it is and what to pass; `remedy` may name the field by `{}`."""
    for name, given in (("value", value), ("key", key)):
        if given is not None and type(given) is not bytes:
            _check_bytes(given, f"the {name} is", remedy.format(name))
    if not headers:
        return
    pairs = "headers are {name: bytes} or (name, bytes) pairs"
    try:
        rows = list(headers.items() if hasattr(headers, "items") else headers)
    except TypeError:
        raise TypeError(f"{pairs}, not {type(headers).__name__}") from None
    for row in rows:
        if not isinstance(row, tuple | list) or len(row) != 2:
            raise TypeError(f"{pairs}, not {row!r}")
        name, given = row
        if not isinstance(name, str):
            raise TypeError(f"a header's name is text, not {type(name).__name__}: {name!r}")
        if given is not None:
            _check_bytes(given, f"the value of header {name!r} is", "; pass text.encode()")


def explained(error: Exception, key: Any, value: Any, headers: Any, remedy: str) -> Exception:
    """The error of `check_fields` for an encoding that failed by its fields; else the error itself."""
    if isinstance(error, AttributeError | TypeError | ValueError | PluginError):
        try:
            check_fields(key, value, headers, remedy)
        except TypeError as found:
            return found
    return error


def _check_bytes(given: Any, what: str, remedy: str) -> None:
    try:
        memoryview(given).release()
    except TypeError:
        remedy = remedy if isinstance(given, str) else ""
        raise TypeError(f"{what} bytes or None, not {type(given).__name__}{remedy}") from None
