"""Produce interceptors that break a promise."""

from __future__ import annotations

import json
from typing import Any

from logkernel.contracts import Refusal, WriteFacts
from logkernel.vocabulary import Record
from wrong_plugins import Wrong, made


class Passes:
    """An interceptor that keeps its promises: all records pass."""

    def __init__(self) -> None:
        self.seen = 0

    def on_record(self, record: Record, write: WriteFacts) -> Any:
        return record


class Forgetful(Passes):
    def on_record(self, record: Record, write: WriteFacts) -> Any:
        record.key = record.key or b"none"


class Trusting(Passes):
    def on_record(self, record: Record, write: WriteFacts) -> Any:
        json.loads(record.value or b"{}")
        return record


class Texts(Passes):
    def on_record(self, record: Record, write: WriteFacts) -> Any:
        return Record(record.key, "text", record.headers, record.timestamp_ms)  # type: ignore[arg-type]


class Mute(Passes):
    def on_record(self, record: Record, write: WriteFacts) -> Any:
        return Refusal(None)  # type: ignore[arg-type]


class Counts(Passes):
    def on_record(self, record: Record, write: WriteFacts) -> Any:
        self.seen += 1
        return record if self.seen % 2 else Refusal("every second one")


ANY = "test_any_record_gets_a_record_or_a_refusal"
WRONG = [
    Wrong(ANY, "returned None for record 0; return a Record of bytes, or a Refusal", made(lambda _: Forgetful())),
    Wrong(ANY, "failed in produce interceptor .*DecodeError", made(lambda _: Trusting())),
    Wrong(ANY, "return a Record of bytes, or a Refusal", made(lambda _: Texts())),
    Wrong(ANY, "or a Refusal with a text", made(lambda _: Mute())),
    Wrong("test_equal_records_get_equal_answers", "depend on the arguments only", made(lambda _: Counts())),
]
