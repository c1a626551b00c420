"""Readers that wait for the next change of a partition.

A reader subscribes, is notified once, and subscribes again after it has read. So an append costs nothing for a reader
that is behind, and one call for a reader that waits. Readers are notified in the order of their subscriptions.
"""

from __future__ import annotations

from typing import Protocol


class Reader(Protocol):
    def on_news(self) -> None:
        """The partition changed. The reader is no longer subscribed."""


class News:
    """The subscribers of one partition.

    Its owner calls `tell` when a reader could see a difference: the watermark or the last stable offset moved, the log
    start moved, the leader changed, the partition was deleted or its directory went offline.
    """

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[Reader, None] = {}

    def __len__(self) -> int:
        return len(self._readers)

    def subscribe(self, reader: Reader) -> None:
        self._readers[reader] = None

    def unsubscribe(self, reader: Reader) -> None:
        self._readers.pop(reader, None)

    def tell(self) -> None:
        if self._readers:
            readers, self._readers = self._readers, {}
            for reader in readers:
                reader.on_news()
