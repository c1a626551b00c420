"""Produce interceptor `mask`: masks fields of JSON records, and refuses records that it cannot read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from logkernel.config.definitions import TOPIC, Setting
from logkernel.config.values import LIST
from logkernel.contracts import ProduceInterceptor, Refusal, WriteFacts
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Record

FIELDS = "acme.mask.fields"
SHOWN = 4
"""Characters at the end of a field that stay readable."""


class Mask:
    """`logkernel.contracts.ProduceInterceptor`; one object for each partition."""

    def __init__(self, fields: Collection[str]) -> None:
        self._fields = fields

    def on_record(self, record: Record, write: WriteFacts) -> Record | Refusal:
        if record.value is None:
            return record
        try:
            row = json.loads(record.value)
        except ValueError as error:
            return Refusal(f"the value is not JSON: {error}")
        if not isinstance(row, dict):
            return Refusal("the value is not a JSON object")
        found = [name for name in self._fields if isinstance(row.get(name), str)]
        if not found:
            return record
        for name in found:
            row[name] = "*" * max(0, len(row[name]) - SHOWN) + row[name][-SHOWN:]
        return Record(record.key, json.dumps(row).encode(), record.headers, record.timestamp_ms)


@hookimpl
def logkernel_produce_interceptor(name: str, settings: Mapping[str, Any]) -> ProduceInterceptor | None:
    return Mask(settings[FIELDS]) if name == "mask" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("produce interceptor", "mask")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [Setting(FIELDS, LIST, "card", None, "Fields of JSON records that are masked.", scope=TOPIC)]
