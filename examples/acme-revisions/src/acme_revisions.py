"""Compaction strategy `revision`: of each key the record stays whose JSON value has the highest revision."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import STRING, NonEmpty
from logkernel.contracts import BatchView, CompactionStrategy
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Record

FIELD = "acme.revision.field"
NONE = -(2**63)
LAST = 2**63 - 1


class ByRevision:
    """`logkernel.contracts.CompactionStrategy`."""

    def __init__(self, field: str) -> None:
        self._field = field

    def versions(self, batch: BatchView) -> Sequence[int]:
        return [self._revision(record) for record in batch.records()]

    def _revision(self, record: Record) -> int:
        if record.value is None:
            return LAST
        try:
            row = json.loads(record.value)
        except (ValueError, RecursionError):
            return NONE
        found = row.get(self._field) if isinstance(row, dict) else None
        return found if type(found) is int and NONE < found < LAST else NONE


@hookimpl
def logkernel_compaction_strategy(name: str, settings: Mapping[str, Any]) -> CompactionStrategy | None:
    return ByRevision(settings[FIELD]) if name == "revision" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("compaction strategy", "revision")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [Setting(FIELD, STRING, "rev", NonEmpty(), "The field that holds a value's revision.", scope=TOPIC)]
