"""What the synchronous and the asyncio producer share: the way of a record into its batch.

`offer` takes a record as far as it gets without waiting. Where it must wait it returns what for, and is
called again after that: the two producers differ only in how they wait.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from attrs import define

from logkernel.client.accumulator import Accumulator, Claim, Queue
from logkernel.client.batches import Batch, Callback
from logkernel.client.core import ANY, Call
from logkernel.client.drivers import mono_ms
from logkernel.client.embedded_driver import held_interrupts
from logkernel.client.metadata import FATAL_TOPIC_ERRORS, TopicInfo
from logkernel.client.partitioning import Plan, make_partitioner
from logkernel.client.sender import Sender
from logkernel.client.serializers import serializer
from logkernel.client.transactions import FATAL, GroupMetadata, Offsets, Operation
from logkernel.errors import (
    InvalidTopicException,
    LogkernelError,
    MessageTooLarge,
    RequestTimedOut,
    error_for,
)
from logkernel.kernel import Kernel
from logkernel.record import codec
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource
from logkernel.vocabulary import RecordMetadata

Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]
TOPIC_RESOURCE = 2
TOPIC_PARTITIONER = "partitioner"
TOPIC_PARTITIONER_MS = 5000
"""How long a topic's own partitioner is asked for before the default does."""


@define
class ProducerRecord:
    """A record as an interceptor sees it: before it is serialized and given a partition."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


@define(eq=False)
class NeedTopic:
    """The topic's metadata, or the name of its partitioner, must come first."""

    name: str
    version: int


Need = Claim | NeedTopic


def make_sender(settings: Mapping[str, Any], bootstrap: list[tuple[str, int]], kernel: Kernel) -> Sender:
    """The machine of one producer."""
    name = settings["compression.type"]
    level = settings.get(f"compression.{name}.level")
    codec = None if name == "none" else kernel.codec(name, None if level == -1 else level)
    return Sender(settings, bootstrap, Random(os.urandom(8)), codec, kernel.codec_for)


class ProducerBase:
    """See the module. `driver` steps the sender; whoever waits, waits with it."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self._driver = driver
        driver.owner = weakref.ref(self)
        self._sender: Sender = driver.machine
        self._lock = driver.lock
        self._accumulator: Accumulator = self._sender.accumulator
        self._accumulator.owner = driver
        self._metadata = self._sender.core.metadata
        self._transactions = self._sender.transactions
        self._plans: dict[str, Plan] = {}
        self._fast: dict[str, Plan] = {}
        """Those of `_plans` by which `send` needs no lock: compiled, and nothing but an open batch to look for."""
        self._topic_partitioners: dict[str, str | None] = {}
        self._asked: set[str] = set()
        self._max_block_s = settings["max.block.ms"] / 1000
        self._pid = os.getpid()
        self._closed = False
        self._transactional = settings["transactional.id"] is not None
        self._key_serializer = serializer(settings["key.serializer"])
        self._value_serializer = serializer(settings["value.serializer"])
        self._interceptors = [
            kernel.interceptor(given, settings) if isinstance(given, str) else _made(given)
            for given in settings["interceptor.classes"]
        ]
        driver.reporters = [
            kernel.metrics_reporter(given, settings) if isinstance(given, str) else _made(given)
            for given in settings["metric.reporters"]
        ]
        self._plain = self._key_serializer is None and self._value_serializer is None and not self._interceptors
        """Whether a record goes as it was given."""

    def forked(self) -> None:
        """In the child of a fork: nothing is sent from here, and no lock of the parent's is waited for."""
        self._lock = self._driver.lock
        self._forget_plans()

    def _forget_plans(self) -> None:
        self._fast.clear()
        self._plans.clear()

    # ------------------------------------------------------------ a record on its way

    def _prepared(self, record: ProducerRecord) -> ProducerRecord:
        """As interceptors and serializers make it."""
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record) or record
            except Exception:
                _log_failure("on_send", interceptor)
        if self._key_serializer is not None:
            record.key = self._key_serializer(record.topic, record.key)
        if self._value_serializer is not None:
            record.value = self._value_serializer(record.topic, record.value)
        return record

    def _acknowledged(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:
                _log_failure("on_acknowledgement", interceptor)

    def _offer(
        self,
        topic: str,
        record: tuple[int, bytes | None, bytes | None, Any],
        partition: int | None,
        callbacks: tuple[Callback, ...],
        claim: Claim | None,
    ) -> tuple[Batch, int] | Need:
        """Put a record into a batch, or say what must come first. `claim` is memory granted to it."""
        placed: tuple[Batch, int] | Need | None = None
        with held_interrupts(), self._lock:
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
        record: tuple[int, bytes | None, bytes | None, Any],
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

    def _open(self, queue: Queue, size: int, record: tuple[int, Any, Any, Any]) -> Batch:
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

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise LogkernelError("this producer belongs to the process that made it; open another after a fork")
        if self._driver.broken is not None:
            raise LogkernelError(f"the producer ended: {self._driver.broken!r}")
        if self._closed or self._driver.closed:
            raise LogkernelError("this producer is closed; open another")

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
        if codec.COMPILED and self._plain and not self._transactional and plan.partitioner is None:
            self._fast[topic] = plan
        return plan

    def _new_plan(self, info: TopicInfo, given: Any) -> Plan:
        random = self._sender.core.random
        old = self._plans.get(info.name)
        partitioner = None if old is None else old.partitioner
        if partitioner is None and given is not None:
            partitioner = make_partitioner(given, self._driver.by_name, random.getrandbits(63))
        return Plan(info, self._sender, self.settings, partitioner, random, mono_ms())

    def _ask_partitioner(self, topic: str) -> None:
        """A topic may name its partitioner in its settings; a foreign broker knows no such setting."""
        if topic in self._asked:
            return
        self._asked.add(topic)
        resource = DescribeConfigsResource(TOPIC_RESOURCE, topic, [TOPIC_PARTITIONER])

        def told(response: Any, error: Exception | None) -> None:
            self._asked.discard(topic)
            rows = response.results if error is None else ()
            values = [config.value for row in rows for config in row.configs if config.name == TOPIC_PARTITIONER]
            self._topic_partitioners[topic] = values[0] if values and values[0] not in (None, "", "default") else None

        request = DescribeConfigsRequest([resource])
        self._sender.core.call(Call(ANY, request, mono_ms() + TOPIC_PARTITIONER_MS, told))

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

    # ------------------------------------------------------------ transactions

    def _begin(self) -> None:
        with self._lock:
            self._check_open()
            if not self._transactional:
                raise LogkernelError("transactions need the setting transactional.id")
            self._transactions.begin()

    def _operation(self, start: Callable[[], Operation]) -> Operation:
        with self._lock:
            self._check_open()
            if not self._transactional:
                raise LogkernelError("transactions need the setting transactional.id")
            return start()

    def _offsets(self, offsets: Offsets, group: str | GroupMetadata) -> Operation:
        member = GroupMetadata(group) if isinstance(group, str) else group
        return self._operation(lambda: self._transactions.send_offsets(offsets, member))

    # ------------------------------------------------------------ the rest

    def metrics(self) -> dict[str, Any]:
        """Metric name, as Kafka's producer has it, → number."""
        found: dict[str, Any] = self._driver.metrics()
        return found

    def _close_helpers(self) -> None:
        metrics = self._driver.metrics()
        for reporter in self._driver.reporters:
            try:
                reporter.report(metrics)
                reporter.close()
            except Exception:
                _log_failure("close", reporter)
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception:
                _log_failure("close", interceptor)


def _moved(plan: Plan, queue: Queue, key: bytes | None) -> bool:
    """Whether the sticky partition changed with the batch that was just closed."""
    return (key is None or not plan.keyed) and plan.sticky is not queue


def _made(given: Any) -> Any:
    return given() if isinstance(given, type) else given


def _log_failure(what: str, owner: object) -> None:
    from logkernel.client.drivers import log

    log.exception("%s of %r failed", what, owner)


def pairs(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as a batch holds them."""
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)


def deadline_of(timeout_s: float | None) -> float | None:
    """A monotonic time, or None for ever."""
    return None if timeout_s is None or timeout_s > threading.TIMEOUT_MAX else time.monotonic() + timeout_s


def check_topic(topic: Any) -> None:
    if not isinstance(topic, str) or not topic:
        raise InvalidTopicException(f"{topic!r} is no topic name")
