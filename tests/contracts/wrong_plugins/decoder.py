"""Decoders that break a promise. Records are a number as a key and JSON as a value."""

from __future__ import annotations

import json
from typing import Any

from logkernel.errors import CorruptMessage
from logkernel.vocabulary import Record
from wrong_plugins import Wrong, made


class Right:
    """As it should be."""

    def decode(self, record: Record) -> Any:
        try:
            return self.key(record), None if record.value is None else json.loads(record.value)
        except (ValueError, TypeError) as error:
            raise CorruptMessage(str(error)) from error

    def key(self, record: Record) -> Any:
        return int(record.key or b"")


class Hasty(Right):
    def decode(self, record: Record) -> Any:
        return int(record.key or b"0"), json.loads(record.value or b"null")


class RawKeys(Right):
    def key(self, record: Record) -> Any:
        return record.key


class ValueOnly(Right):
    def decode(self, record: Record) -> Any:
        return super().decode(record)[1]


class Filling(Right):
    def decode(self, record: Record) -> Any:
        key, value = super().decode(record)
        return key, value or {}


class Splitting(Right):
    """It splits before it looks."""

    def decode(self, record: Record) -> Any:
        if record.value is not None and not record.value.endswith(b"}"):
            raise IndexError("no end")
        return super().decode(record)


GOOD = {"samples": (Record(b"7", b'{"a": 1}'), Record(b"7", None))}
WRONG = [
    Wrong("test_records_of_its_topic_become_json", "JSON cannot hold", {**made(lambda _: RawKeys()), **GOOD}),
    Wrong("test_records_of_its_topic_become_json", r"return \(key, value\)", {**made(lambda _: ValueOnly()), **GOOD}),
    Wrong("test_records_of_its_topic_become_json", "for a tombstone", {**made(lambda _: Filling()), **GOOD}),
    Wrong("test_noise_becomes_json_or_is_refused", "raise only CorruptMessage there", made(lambda _: Hasty())),
    Wrong(
        "test_records_that_are_cut_off_become_json_or_are_refused",
        "raised IndexError: no end; raise only CorruptMessage",
        {**made(lambda _: Splitting()), **GOOD},
    ),
]
