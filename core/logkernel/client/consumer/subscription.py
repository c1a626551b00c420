"""Where a consumer reads: subscriptions, assignments, seeks and pauses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from logkernel.client.cluster.leader_queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from logkernel.client.consumer.positions import ConsumerRecord, Part
from logkernel.client.consumer.root import ConsumerRoot
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.steps import check_topic
from logkernel.client.vocabulary import Partition
from logkernel.vocabulary import TopicPartition


class Places(ConsumerRoot):
    """See the module."""

    def subscribe(
        self, topics: str | Iterable[str] = (), listener: Any = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """Read these topics instead of what was read before: with a group what it assigns, else all partitions.

        `pattern`: all topics whose whole names match, also those that come later. As text it is RE2's and matched by
        the coordinator where group.protocol is consumer; a compiled one, and any other, is Python's, matched here
        against the names that metadata tells every metadata.max.age.ms.
        `listener`: a `RebalanceListener`, or any object with its methods. Nothing: as `unsubscribe`. Raises
        `InvalidTopicException`, ValueError for topics beside a pattern and for one that is no expression.
        """
        wanted = [topics] if isinstance(topics, str) else list(topics)
        for topic in wanted:
            check_topic(topic)
        if pattern is not None and wanted:
            raise ValueError("give topics or a pattern, not both")
        regex = ""
        if isinstance(pattern, str) and self.settings["group.protocol"] == "consumer" and self._machine.group:
            regex, pattern = pattern, None
        elif isinstance(pattern, str):
            pattern = _compiled(pattern)
        with self._lock:
            self._state.check_open()
            self._listener = listener
            self._hand_back()
            if regex:
                self._machine.subscribe_regex(regex)
            else:
                self._machine.subscribe(wanted, mono_ms(), pattern)
        self._driver.wake()

    def unsubscribe(self) -> None:
        """Read nothing; a group is left, as the next poll carries out."""
        with self._lock:
            self._state.check_open()
            self._hand_back()
            if self._machine.by_group:
                self._machine.subscribe((), mono_ms())
            else:
                self._machine.assign((), mono_ms())
        self._driver.wake()

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions, whatever a group's members read."""
        wanted = [TopicPartition(*name) for name in partitions]
        for name in wanted:
            check_topic(name.topic)
        with self._lock:
            self._state.check_open()
            self._hand_back()
            self._machine.assign(wanted, mono_ms())
        self._driver.wake()

    def subscription(self) -> set[str]:
        """The topics, of a pattern those that match; none where the coordinator matches."""
        return set(self._machine.topics)

    def assignment(self) -> set[TopicPartition]:
        with self._lock:
            return set(self._machine.parts)

    def _moved(self, part: Part) -> None:
        """What iteration still held of a partition is not wanted."""
        self._machine.fetcher.line.pop(part, None)
        self._unread.fill([row for row in self._unread.rest() if (row.topic, row.partition) != part.name])

    def _all_unread(self) -> list[ConsumerRecord]:
        rows = self._unread.rest()
        self._unread.fill(())
        return rows

    def _back_to(self, rows: list[ConsumerRecord]) -> None:
        """These were not handed out."""
        first: dict[TopicPartition, int] = {}
        for row in rows:
            first.setdefault(TopicPartition(row.topic, row.partition), row.offset)
        with self._lock:
            for name, offset in first.items():
                part = self._machine.parts.get(name)
                if part is not None:
                    part.place(offset)
                    self._machine.fetcher.line.pop(part, None)

    def _hand_back(self) -> None:
        """What iteration still held comes again: it was not read, and is not committed."""
        if self._unread:
            self._back_to(self._all_unread())

    def seek(self, partition: Partition, offset: int) -> None:
        """The next poll begins here. Raises `LogkernelError` for what is not assigned, ValueError below 0."""
        if offset < 0:
            raise ValueError(f"{offset} is no offset")
        with self._lock:
            part = self._part(partition)
            part.place(offset)
            self._moved(part)
        self._driver.wake()

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """To the first offsets, of all assigned partitions where none is named."""
        self._seek_by_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: Partition) -> None:
        """To the end, as `isolation.level` sees it."""
        self._seek_by_time(partitions, LATEST_TIMESTAMP)

    def _seek_by_time(self, partitions: Iterable[Partition], timestamp_ms: int) -> None:
        with self._lock:
            for name in list(partitions) or list(self._machine.parts):
                part = self._part(name)
                part.reset(timestamp_ms)
                self._moved(part)
        self._driver.wake()

    def pause(self, *partitions: Partition) -> None:
        """Polls return nothing of these until `resume`; they stay assigned."""
        self._set_paused(partitions, True)

    def resume(self, *partitions: Partition) -> None:
        self._set_paused(partitions, False)
        self._driver.wake()

    def _set_paused(self, partitions: Iterable[Partition], paused: bool) -> None:
        with self._lock:
            for part in [self._part(name) for name in partitions]:
                part.paused = paused

    def paused(self) -> set[TopicPartition]:
        with self._lock:
            return {part.name for part in self._machine.parts.values() if part.paused}


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
