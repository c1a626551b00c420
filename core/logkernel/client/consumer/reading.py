"""What the parts of a consumer work on: its machine, and what iteration took from a poll and did not hand out yet."""

from __future__ import annotations

from typing import Any

from logkernel.client.base import ClientState
from logkernel.client.consumer.consumer_machine import ConsumerMachine
from logkernel.client.consumer.positions import ConsumerRecord, Part
from logkernel.client.vocabulary import Partition
from logkernel.errors import LogkernelError
from logkernel.record import loops
from logkernel.vocabulary import TopicPartition


class Reading:
    """See the module. For one thread or task at a time."""

    def __init__(self, driver: Any, state: ClientState) -> None:
        self.machine: ConsumerMachine = driver.machine
        self.state = state
        self.unread: loops.Unread[ConsumerRecord] = loops.Unread()
        self._driver = driver

    def need_group(self) -> None:
        """Raises `LogkernelError` for a closed consumer, and for one without a group."""
        self.state.check_open()
        if self.machine.group is None:
            raise LogkernelError("this call needs a group; set group.id")

    def part(self, partition: Partition) -> Part:
        """Raises `LogkernelError` for what is not assigned."""
        self.state.check_open()
        part = self.machine.parts.get(TopicPartition(*partition))
        if part is None:
            raise LogkernelError(
                f"{TopicPartition(*partition)} is not assigned to this consumer; call assign or subscribe first"
            )
        return part

    def positions(self) -> dict[TopicPartition, tuple[int, int, str | None]]:
        """Behind all that was handed out."""
        found = self.machine.positions()
        for row in self.unread.rest():
            name = TopicPartition(row.topic, row.partition)
            if name in found and row.offset < found[name][0]:
                found[name] = (row.offset, -1, "")
        return found

    def moved(self, part: Part) -> None:
        """What iteration still held of a partition is not wanted."""
        self.machine.fetcher.line.pop(part, None)
        self.unread.fill([row for row in self.unread.rest() if (row.topic, row.partition) != part.name])

    def take_unread(self) -> list[ConsumerRecord]:
        """What iteration held, in order; it holds nothing any more."""
        rows = self.unread.rest()
        self.unread.fill(())
        return rows

    def back_to(self, rows: list[ConsumerRecord]) -> None:
        """These were not handed out."""
        first: dict[TopicPartition, int] = {}
        for row in rows:
            first.setdefault(TopicPartition(row.topic, row.partition), row.offset)
        with self._driver.lock:
            for name, offset in first.items():
                part = self.machine.parts.get(name)
                if part is not None:
                    part.place(offset)
                    self.machine.fetcher.line.pop(part, None)

    def hand_back(self) -> None:
        """What iteration still held comes again: it was not read, and is not committed."""
        if self.unread:
            self.back_to(self.take_unread())
