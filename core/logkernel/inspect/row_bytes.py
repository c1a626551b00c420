"""Bytes in a row for JSON: text where they are UTF-8, else base64 under the name with `Base64` at its end."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any


def bytes_field(name: str, data: bytes | None) -> dict[str, str | None]:
    """The field of a row that says `data`."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(data).decode()}


def shown_field(row: Mapping[str, Any], name: str) -> str | None:
    """What `bytes_field` said, as text to look at; None for no bytes."""
    if f"{name}Base64" in row:
        return base64.b64decode(row[f"{name}Base64"]).decode(errors="replace")
    found: str | None = row.get(name)
    return found
