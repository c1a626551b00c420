"""Compaction strategies that break a promise."""

from __future__ import annotations

import json
from typing import Any

from logkernel.contracts import BatchView
from wrong_plugins import Wrong, made


class Longest:
    """A strategy that keeps its promises: the longest value of a key stays."""

    def versions(self, batch: BatchView) -> Any:
        return [len(record.value or b"") for record in batch.records()]


class OneForAll(Longest):
    def versions(self, batch: BatchView) -> Any:
        return [batch.base_timestamp_ms] if batch.count > 1 else [0]


class Fractions(Longest):
    def versions(self, batch: BatchView) -> Any:
        return [0.5 for _ in batch.records()]


class Trusting(Longest):
    def versions(self, batch: BatchView) -> Any:
        return [json.loads(record.value or b"0") for record in batch.records()]


class Places(Longest):
    def versions(self, batch: BatchView) -> Any:
        return list(range(batch.count))


ANY = "test_every_record_has_one_version"
WRONG = [
    Wrong(
        ANY, r"returned 1 versions for the \d records from offset 0; return one for each", made(lambda _: OneForAll())
    ),
    Wrong(ANY, "TypeError.*the log is not compacted", made(lambda _: Fractions())),
    Wrong(ANY, "failed in compaction strategy", made(lambda _: Trusting())),
    Wrong("test_a_version_depends_on_the_record_only", "depend on the record only", made(lambda _: Places())),
]
