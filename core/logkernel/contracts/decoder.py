"""A decoder shows the records of a service's topic to tools."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from logkernel.vocabulary import Record


@runtime_checkable
class RecordDecoder(Protocol):
    """Decodes the records of one topic for tools. A service's plugin provides one for its topic."""

    def decode(self, record: Record) -> tuple[Any, Any]:
        """Return (key, value) as JSON values; None for a null.

        Raises `CorruptMessage` for bytes that it cannot decode; a tool reports and skips the record.
        """
        ...
