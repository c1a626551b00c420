"""What every part of a consumer works on: its machine, driver, settings, and what iteration holds back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from logkernel.client.base import BaseClient
from logkernel.client.consumer.consumer_machine import ConsumerMachine
from logkernel.client.consumer.positions import ConsumerRecord, Part
from logkernel.client.helpers import Helpers
from logkernel.client.serializers import deserializer
from logkernel.client.vocabulary import Partition
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel
from logkernel.record import loops
from logkernel.vocabulary import TopicPartition


class ConsumerRoot(BaseClient):
    """See the module. For one thread or task at a time."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, settings)
        self._helpers = Helpers(driver, kernel, settings)
        self._machine: ConsumerMachine = driver.machine
        self._listener: Any = None
        self._unread: loops.Unread[ConsumerRecord] = loops.Unread()
        self._woken = False
        """`wakeup` was called, and no poll has said so yet."""
        self._limit: int = settings["max.poll.records"]
        self._api_s = settings["default.api.timeout.ms"] / 1000
        self._auto: bool = settings["enable.auto.commit"]
        self._auto_s = settings["auto.commit.interval.ms"] / 1000
        self._auto_next_s = time.monotonic() + self._auto_s
        self._auto_last: dict[TopicPartition, tuple[int, int, str | None]] = {}
        self._nap_s = settings["max.poll.interval.ms"] / 3000
        if self._auto:
            self._nap_s = min(self._nap_s, max(self._auto_s, 0.1))
        self._key = deserializer(settings["key.deserializer"])
        self._value = deserializer(settings["value.deserializer"])

    def _need_group(self) -> None:
        self._state.check_open()
        if self._machine.group is None:
            raise LogkernelError("this needs the setting group.id")

    def _part(self, partition: Partition) -> Part:
        self._state.check_open()
        part = self._machine.parts.get(TopicPartition(*partition))
        if part is None:
            raise LogkernelError(f"{TopicPartition(*partition)} is not assigned to this consumer")
        return part

    def _positions(self) -> dict[TopicPartition, tuple[int, int, str | None]]:
        """Behind all that was handed out."""
        found = self._machine.positions()
        for row in self._unread.rest():
            name = TopicPartition(row.topic, row.partition)
            if name in found and row.offset < found[name][0]:
                found[name] = (row.offset, -1, "")
        return found
