"""What a rewrite asks of the log that it rewrites, and what it gives back."""

from __future__ import annotations

from typing import Protocol

from logkernel.config.topic import TopicSettings
from logkernel.storage.disk import Disk
from logkernel.storage.segment import Segment
from logkernel.vocabulary import AbortedTxn, ProducerEntry, TopicPartition


class RewritableLog(Protocol):
    @property
    def name(self) -> TopicPartition: ...

    @property
    def folder(self) -> str: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def settings(self) -> TopicSettings: ...

    def closed_segments(self) -> list[Segment]: ...

    def loose_segments(self) -> list[Segment]:
        """Those of which something may not be synced yet."""
        ...

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """Aborted transactions of which a reader of `start <= offset < end` may meet records."""
        ...

    def producer_entries(self) -> list[ProducerEntry]: ...

    def replace_segments(self, old: list[Segment], new: Segment) -> None:
        """`new` takes the place of `old`, which lie side by side; readers' slices stay valid."""
        ...

    def drop_later(self, paths: list[str]) -> None:
        """Files that are left behind when the rewrite is stopped."""
        ...
