"""Fetch filters that break a promise."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import ReadFacts
from logkernel.vocabulary import Record
from wrong_plugins import Wrong, made


class Passes:
    """A filter that keeps its promises: all records pass."""

    def __init__(self) -> None:
        self.seen = 0

    def passes(self, record: Record, read: ReadFacts) -> Any:
        return True


class Truthy(Passes):
    def passes(self, record: Record, read: ReadFacts) -> Any:
        return record.key


class NeedsName(Passes):
    def passes(self, record: Record, read: ReadFacts) -> Any:
        return read.client.client_id.startswith("a")  # type: ignore[union-attr]


class Sample(Passes):
    def passes(self, record: Record, read: ReadFacts) -> Any:
        self.seen += 1
        return self.seen % 2 == 0


ANY = "test_every_record_passes_or_not_for_every_reader"
WRONG = [
    Wrong(ANY, "answered .* for offset 0; return True or False", made(lambda _: Truthy())),
    Wrong(ANY, "failed in fetch filter .*AttributeError", made(lambda _: NeedsName())),
    Wrong("test_equal_questions_get_equal_answers", "depend on the arguments only", made(lambda _: Sample())),
]
