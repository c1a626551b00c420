"""What the synchronous and the asyncio consumer share: their parts, and the calls that don't wait.

A consumer has a subscription, offset calls, a poller and helpers, which work on its `Reading`. A call that may wait is
a generator of `steps`, which a runner carries out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from logkernel.client.base import BaseClient
from logkernel.client.consumer.consumer_machine import ConsumerMachine
from logkernel.client.consumer.failing import errors_of
from logkernel.client.consumer.offset_calls import OffsetCalls
from logkernel.client.consumer.poller import Poller
from logkernel.client.consumer.reading import Reading
from logkernel.client.consumer.subscription import SubscriptionCalls
from logkernel.client.helpers import Helpers
from logkernel.client.steps import End, Steps, check_topic
from logkernel.client.vocabulary import GroupMetadata, Offsets, Partition
from logkernel.errors import ConfigError
from logkernel.kernel import Kernel
from logkernel.vocabulary import TopicPartition

CLOSE_S = 30.0
"""Default time limit of `close`, for the last commit and for leaving the group."""


def make_consumer_machine(
    settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel
) -> ConsumerMachine:
    """Return the machine of one consumer."""
    return ConsumerMachine(settings, bootstrap, Random(os.urandom(8)), kernel.codec_for)


class ConsumerBase(BaseClient):
    """See the module."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, settings)
        self._machine: ConsumerMachine = driver.machine
        self._helpers = Helpers(driver, kernel, settings)
        self._reading = Reading(driver, self._state)
        self._unread = self._reading.unread
        self._subscription = SubscriptionCalls(driver, self._reading, settings)
        self._offsets = OffsetCalls(driver, self._reading, self._helpers, settings)
        self._poller = Poller(driver, self._reading, self._subscription, self._offsets, self._helpers, settings)

    # ------------------------------------------------------------ where it reads

    def subscribe(
        self, topics: str | Iterable[str] = (), listener: Any = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """Read these topics, instead of earlier ones: the partitions that the group assigns, or all without a group.

        `pattern` subscribes to all topics whose whole names match, later ones included. With group.protocol=consumer a
        text is an RE2 pattern that the coordinator matches; otherwise, and if compiled, it is Python's, matched here
        whenever metadata is refreshed (metadata.max.age.ms). `listener` is a `RebalanceListener`, or any object with
        its methods. Without arguments it does the same as `unsubscribe`. Raises `InvalidTopicException`, and
        `ValueError` for topics together with a pattern, or for a pattern that is not a regular expression.
        """
        self._subscription.subscribe(topics, listener, pattern=pattern)

    def unsubscribe(self) -> None:
        """Read nothing any more. The next poll leaves the group."""
        self._subscription.unsubscribe()

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Read exactly these partitions, without the group's assignment. Raises `InvalidTopicException`."""
        self._subscription.assign(partitions)

    def subscription(self) -> set[str]:
        """Return the subscribed topics; for a pattern those that match, or none if the coordinator matches it."""
        return self._subscription.subscription()

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are read."""
        return self._subscription.assignment()

    def seek(self, partition: Partition, offset: int) -> None:
        """Continue at `offset` with the next poll.

        Raises `LogkernelError` for a partition that is not assigned, `ValueError` for a negative offset.
        """
        self._subscription.seek(partition, offset)

    def seek_to_beginning(self, *partitions: Partition) -> None:
        """Continue at the first offset of these partitions, or of all assigned ones."""
        self._subscription.seek_to_beginning(*partitions)

    def seek_to_end(self, *partitions: Partition) -> None:
        """Continue at the end (see `end_offsets`) of these partitions, or of all assigned ones."""
        self._subscription.seek_to_end(*partitions)

    def pause(self, *partitions: Partition) -> None:
        """Return no records of these partitions until `resume`; they stay assigned."""
        self._subscription.pause(*partitions)

    def resume(self, *partitions: Partition) -> None:
        """Return records of these partitions again."""
        self._subscription.resume(*partitions)

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return self._subscription.paused()

    # ------------------------------------------------------------ offsets

    def commit_async(
        self,
        offsets: Offsets | None = None,
        callback: Callable[[dict[TopicPartition, Any], Exception | None], Any] | None = None,
    ) -> None:
        """As `commit`, without waiting. Commits keep their order; `callback(offsets, error)` gets the outcome."""
        self._offsets.commit_async(offsets, callback)

    # ------------------------------------------------------------ figures

    @property
    def lag(self) -> dict[TopicPartition, int | None]:
        """Partition → number of records that are not read yet; None before its first fetch."""
        with self._lock:
            return self._machine.lags()

    @property
    def failing(self) -> dict[TopicPartition, Exception]:
        """The partitions that cannot be read now, with their last errors. They are tried again, and the log says so
        (`logkernel.client`); paused partitions are left out."""
        with self._lock:
            return errors_of(self._machine.parts.values())

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity for `send_offsets_to_transaction`. Raises `LogkernelError` without a group."""
        with self._lock:
            self._reading.need_group()
            return self._machine.member()

    # ------------------------------------------------------------ the end

    def _close(self, timeout_s: float | None) -> Steps[None]:
        if self.closed:
            return
        deadline_s = time.monotonic() + (CLOSE_S if timeout_s is None else timeout_s)
        try:
            yield from self._poller.before_close(deadline_s)
        finally:
            with self._lock:
                self._state.closed = True
                self._reading.unread.fill(())
                self._machine.begin_end()
            try:
                yield End(deadline_s)
            finally:
                self._helpers.close()


def consumer_settings(topics: tuple[str, ...], group: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `log.consumer(...)` as settings. Raises `ConfigError`."""
    from logkernel.client.settings.consumer import load_consumer

    given = dict(settings)
    if group is not None:
        if "group_id" in given or "group.id" in given:
            raise ConfigError("group and group_id are the same setting; give one of them")
        given["group_id"] = group
    for topic in topics:
        check_topic(topic)
    return load_consumer(given)
