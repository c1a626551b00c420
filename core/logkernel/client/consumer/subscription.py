"""Where a consumer reads: subscriptions, assignments, seeks and pauses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.client.cluster.leader_queries import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from logkernel.client.consumer.reading import Reading
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.steps import check_topic
from logkernel.client.vocabulary import Partition
from logkernel.vocabulary import TopicPartition


class SubscriptionCalls:
    """See the module; the public methods of a consumer say what each does."""

    def __init__(self, driver: Any, reading: Reading, settings: Mapping[str, Any]) -> None:
        self.listener: Any = None
        """The `RebalanceListener`, or None."""
        self._driver = driver
        self._reading = reading
        self._machine = reading.machine
        self._by_coordinator: bool = settings["group.protocol"] == "consumer" and reading.machine.group is not None
        """Whether the coordinator matches patterns."""

    def subscribe(
        self, topics: str | Iterable[str] = (), listener: Any = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        wanted = [topics] if isinstance(topics, str) else list(topics)
        for topic in wanted:
            check_topic(topic)
        if pattern is not None and wanted:
            raise ValueError("give topics or a pattern, not both")
        regex = ""
        if isinstance(pattern, str) and self._by_coordinator:
            regex, pattern = pattern, None
        elif isinstance(pattern, str):
            pattern = _compiled(pattern)
        with self._driver.lock:
            self._reading.state.check_open()
            self.listener = listener
            self._reading.hand_back()
            if regex:
                self._machine.subscribe_regex(regex)
            else:
                self._machine.subscribe(wanted, mono_ms(), pattern)
        self._driver.wake()

    def unsubscribe(self) -> None:
        with self._driver.lock:
            self._reading.state.check_open()
            self._reading.hand_back()
            if self._machine.by_group:
                self._machine.subscribe((), mono_ms())
            else:
                self._machine.assign((), mono_ms())
        self._driver.wake()

    def assign(self, partitions: Iterable[Partition]) -> None:
        wanted = [TopicPartition(*name) for name in partitions]
        for name in wanted:
            check_topic(name.topic)
        with self._driver.lock:
            self._reading.state.check_open()
            self._reading.hand_back()
            self._machine.assign(wanted, mono_ms())
        self._driver.wake()

    def subscription(self) -> set[str]:
        return set(self._machine.topics)

    def assignment(self) -> set[TopicPartition]:
        with self._driver.lock:
            return set(self._machine.parts)

    def seek(self, partition: Partition, offset: int) -> None:
        if offset < 0:
            raise ValueError(f"{offset} is not an offset; give a number of at least 0")
        with self._driver.lock:
            part = self._reading.part(partition)
            part.place(offset)
            self._reading.moved(part)
        self._driver.wake()

    def seek_to_beginning(self, *partitions: Partition) -> None:
        self._seek_by_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: Partition) -> None:
        self._seek_by_time(partitions, LATEST_TIMESTAMP)

    def _seek_by_time(self, partitions: Iterable[Partition], timestamp_ms: int) -> None:
        with self._driver.lock:
            for name in list(partitions) or list(self._machine.parts):
                part = self._reading.part(name)
                part.reset(timestamp_ms)
                self._reading.moved(part)
        self._driver.wake()

    def pause(self, *partitions: Partition) -> None:
        self._set_paused(partitions, True)

    def resume(self, *partitions: Partition) -> None:
        self._set_paused(partitions, False)
        self._driver.wake()

    def _set_paused(self, partitions: Iterable[Partition], paused: bool) -> None:
        with self._driver.lock:
            for part in [self._reading.part(name) for name in partitions]:
                part.paused = paused

    def paused(self) -> set[TopicPartition]:
        with self._driver.lock:
            return {part.name for part in self._machine.parts.values() if part.paused}


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
