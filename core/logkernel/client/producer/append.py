"""The way of a record into its batch, as far as it gets without waiting.

`_offer` puts a record into a batch, or says what must come first: memory (a `Claim`) or the topic (`NeedTopic`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from attrs import define

from logkernel.client.cluster.calls import ANY, Call
from logkernel.client.cluster.metadata import FATAL_TOPIC_ERRORS, TopicInfo
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.drivers.signals import HeldSignals
from logkernel.client.producer.accumulator import Claim, Queue
from logkernel.client.producer.batches import Batch, Callback
from logkernel.client.producer.partitioning import Plan, make_partitioner
from logkernel.client.producer.root import ProducerRoot
from logkernel.client.producer.transactions import FATAL
from logkernel.config.definitions import TOPIC
from logkernel.config.values import parse
from logkernel.contracts import Partitioner
from logkernel.errors import LogkernelError, MessageTooLarge, RequestTimedOut, error_for
from logkernel.record import loops
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC_RESOURCE = 2
TOPIC_PARTITIONER = "partitioner"
TOPIC_PARTITIONER_MS = 5000
"""How long a topic's own partitioner is asked for before the default does."""

Stamped = tuple[int, bytes | None, bytes | None, Any]
"""Timestamp, key, value, headers."""


@define(eq=False)
class NeedTopic:
    """The topic's metadata, or the name of its partitioner, must come first."""

    name: str
    version: int


Need = Claim | NeedTopic


class Placing(ProducerRoot):
    """See the module."""

    def _offer(
        self,
        topic: str,
        record: Stamped,
        partition: int | None,
        callbacks: tuple[Callback, ...],
        claim: Claim | None,
    ) -> tuple[Batch, int] | Need:
        """Put a record into a batch, or say what must come first. `claim` is memory granted to it."""
        placed: tuple[Batch, int] | Need | None = None
        with HeldSignals(), self._lock:
            try:
                self._check_open()
                if self._transactional or self._transactions.state == FATAL:
                    self._transactions.check_send()
                plan = self._plan(topic)
                if isinstance(plan, NeedTopic):
                    return plan
                placed = self._place(plan, record, partition, callbacks, claim)
                return placed
            finally:
                if placed is None and claim is not None:
                    self._accumulator.pool.release(claim.size)

    def _place(
        self,
        plan: Plan,
        record: Stamped,
        partition: int | None,
        callbacks: tuple[Callback, ...],
        claim: Claim | None,
    ) -> tuple[Batch, int] | Claim:
        accumulator = self._accumulator
        _, key, value, headers = record
        if partition is None and plan.partitioner is not None:
            partition = plan.choose(key, value).partition if claim is None else claim.partition
        while True:
            queue = plan.choose(key, value) if partition is None else plan.explicit(partition)
            batch = queue.open
            index: int = batch.append(*record) if batch is not None else -1
            if batch is not None and index >= 0:
                if claim is not None:
                    accumulator.pool.release(claim.size)
                break
            accumulator.close_open(queue)
            if partition is None and _moved(plan, queue, key):
                continue
            size = accumulator.upper_bound(key, value, headers)
            if size > accumulator.max_request_bytes + 128 or size > accumulator.pool.total:
                self._too_large(size)
            size = max(size, accumulator.batch_bytes)
            size = min(size, accumulator.pool.total)
            if claim is None and not accumulator.pool.take(size):
                waiting = accumulator.pool.claim(size)
                waiting.partition = partition
                return waiting
            if claim is not None and claim.size < size:
                accumulator.pool.free -= size - claim.size
            batch = self._open(queue, size, record)
            index = 0
            break
        if callbacks:
            batch.callbacks.extend((index, record[0], callback) for callback in callbacks)
        return batch, index

    def _open(self, queue: Queue, size: int, record: Stamped) -> Batch:
        try:
            return self._accumulator.open_batch(queue, size, mono_ms(), record)
        except BaseException:
            self._accumulator.pool.release(size)
            raise

    def _too_large(self, size: int) -> None:
        accumulator = self._accumulator
        if size > accumulator.pool.total:
            raise MessageTooLarge(f"a record of about {size} bytes, more than buffer.memory={accumulator.pool.total}")
        limit = accumulator.max_request_bytes
        raise MessageTooLarge(f"a record of about {size} bytes, more than max.request.size={limit}")

    # ------------------------------------------------------------ topics

    def _plan(self, topic: str) -> Plan | NeedTopic:
        info = self._metadata.want(topic, mono_ms())
        if info.error_code in FATAL_TOPIC_ERRORS:
            del self._metadata.topics[topic]
            raise error_for(info.error_code, topic)
        if not info.leaders:
            self._fast.pop(topic, None)
            self._plans.pop(topic, None)
            return NeedTopic(topic, self._metadata.version)
        plan = self._plans.get(topic)
        if plan is not None and plan.count == len(info.leaders):
            return plan
        given = self.settings["partitioner.class"]
        if given is None:
            if topic not in self._topic_partitioners:
                self._ask_partitioner(topic)
                return NeedTopic(topic, -1)
            given = self._topic_partitioners[topic]
        plan = self._plans[topic] = self._new_plan(info, given)
        self._fast.pop(topic, None)
        if loops.COMPILED and self._plain and not self._transactional and plan.partitioner is None:
            plan.kind = self._kind
            self._fast[topic] = plan
        return plan

    def _new_plan(self, info: TopicInfo, given: Any) -> Plan:
        random = self._sender.core.random
        old = self._plans.get(info.name)
        partitioner = None if old is None else old.partitioner
        if partitioner is None and given is not None:
            partitioner = make_partitioner(given, partial(self._named_partitioner, info.name), random.getrandbits(63))
        return Plan(info, self._sender, self.settings, partitioner, random, mono_ms())

    def _named_partitioner(self, topic: str, name: str, seed: int) -> Partitioner:
        return self._kernel.partitioner(name, {**self.settings, **self._plugin_settings.get(topic, {})}, seed)

    def _ask_partitioner(self, topic: str) -> None:
        """A topic may name its partitioner in its settings; a foreign broker knows no such setting."""
        if topic in self._asked:
            return
        self._asked.add(topic)

        def told(values: Mapping[str, str]) -> None:
            name = values.get(TOPIC_PARTITIONER, "")
            if name in ("", "default"):
                self._asked.discard(topic)
                self._topic_partitioners[topic] = None
            else:
                self._ask_plugin_settings(topic, name)

        self._describe(topic, [TOPIC_PARTITIONER], told)

    def _ask_plugin_settings(self, topic: str, partitioner: str) -> None:
        """What the topic's partitioner is to do: the settings of the topic that plugins own."""
        owned = {
            setting.name: setting.type
            for plugin in self._kernel.declarations()
            for setting in plugin.settings
            if setting.scope == TOPIC
        }

        def told(values: Mapping[str, str]) -> None:
            self._asked.discard(topic)
            self._plugin_settings[topic] = {name: parse(owned[name], text) for name, text in values.items()}
            self._topic_partitioners[topic] = partitioner

        if owned:
            self._describe(topic, list(owned), told)
        else:
            told({})

    def _describe(self, topic: str, names: list[str], told: Callable[[Mapping[str, str]], None]) -> None:
        """Ask for settings of a topic; an error counts as none."""

        def heard(response: Any, error: Exception | None) -> None:
            rows = response.results if error is None else ()
            told({config.name: config.value for row in rows for config in row.configs if config.value is not None})

        request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, topic, names)])
        self._sender.core.call(Call(ANY, request, mono_ms() + TOPIC_PARTITIONER_MS, heard))

    def _topic_ready(self, need: NeedTopic) -> Callable[[], bool]:
        """Whether it is worth to try again."""
        metadata = self._metadata

        def ready() -> bool:
            info = metadata.topics.get(need.name)
            if info is None or info.error_code in FATAL_TOPIC_ERRORS:
                return True
            if not info.leaders:
                return False
            return (
                self.settings["partitioner.class"] is not None
                or need.name in self._topic_partitioners
                or (need.name not in self._asked)
            )

        return ready

    def _timed_out(self, topic: str, need: Need) -> LogkernelError:
        if isinstance(need, Claim):
            self._sender.metrics.exhausted()
            return RequestTimedOut(
                f"no room for {need.size} bytes within max.block.ms={self.settings['max.block.ms']}:"
                f" buffer.memory={self._accumulator.pool.total} is full of records that were not acknowledged yet"
            )
        info = self._metadata.topics.get(topic)
        why = f" ({error_for(info.error_code)!r})" if info is not None and info.error_code else ""
        limit_ms = self.settings["max.block.ms"]
        return RequestTimedOut(f"no metadata of topic {topic!r} within max.block.ms={limit_ms}{why}")


def _moved(plan: Plan, queue: Queue, key: bytes | None) -> bool:
    """Whether the sticky partition changed with the batch that was just closed."""
    return (key is None or not plan.keyed) and plan.sticky is not queue
