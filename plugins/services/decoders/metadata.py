"""The log in which the coordination `local` keeps the cluster's metadata: key `kind NUL key`, value JSON."""

from __future__ import annotations

import json
from typing import Any

from logkernel.errors import CorruptMessage
from logkernel.vocabulary import Record


class MetadataDecoder:
    def decode(self, record: Record) -> tuple[Any, Any]:
        try:
            kind, _, key = (record.key or b"").decode().partition("\x00")
            value = None if record.value is None else json.loads(record.value)
        except (ValueError, RecursionError) as error:
            raise CorruptMessage(f"no change of metadata: {error}") from None
        return {"type": kind, "data": {"key": key}}, value
