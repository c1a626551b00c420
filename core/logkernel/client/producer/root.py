"""What every part of a producer works on: its sender, settings, serializers, and a record before it is placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import define

from logkernel.client.base import InterceptedClient
from logkernel.client.drivers.driver import log
from logkernel.client.producer.accumulator import Accumulator
from logkernel.client.producer.partitioning import Plan
from logkernel.client.producer.sender import Sender
from logkernel.client.serializers import serializer
from logkernel.kernel import Kernel
from logkernel.record import loops
from logkernel.vocabulary import RecordMetadata

Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]


@define
class ProducerRecord:
    """A record as an interceptor sees it: before it is serialized and given a partition."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerRoot(loops.Sending, InterceptedClient):
    """See the module."""

    _kind: ClassVar[type[Any]]
    """What `send` gives."""

    def __init__(self, driver: Any, kernel: Kernel, settings: Mapping[str, Any]) -> None:
        super().__init__(driver, kernel, settings)
        self._kernel = kernel
        self._sender: Sender = driver.machine
        self._accumulator: Accumulator = self._sender.accumulator
        self._accumulator.owner = driver
        self._metadata = self._sender.core.metadata
        self._transactions = self._sender.transactions
        self._plans: dict[str, Plan] = {}
        self._fast: dict[str, Plan] = {}
        """Those of `_plans` by which `send` needs no lock: compiled, and nothing but an open batch to look for."""
        self._topic_partitioners: dict[str, str | None] = {}
        self._plugin_settings: dict[str, dict[str, Any]] = {}
        """Topic → its settings that plugins own, typed, for its partitioner."""
        self._asked: set[str] = set()
        self._max_block_s = settings["max.block.ms"] / 1000
        self._transactional = settings["transactional.id"] is not None
        self._key_serializer = serializer(settings["key.serializer"])
        self._value_serializer = serializer(settings["value.serializer"])
        self._plain = self._key_serializer is None and self._value_serializer is None and not self._interceptors
        """Whether a record goes as it was given."""

    def forked(self) -> None:
        """In the child of a fork: nothing is sent from here, and no lock of the parent's is waited for."""
        super().forked()
        self._forget_plans()

    def _forget_plans(self) -> None:
        self._fast.clear()
        self._plans.clear()

    def _prepared(self, record: ProducerRecord) -> ProducerRecord:
        """As interceptors and serializers make it."""
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record) or record
            except Exception:
                log.exception("on_send of %r failed", interceptor)
        if self._key_serializer is not None:
            record.key = self._key_serializer(record.topic, record.key)
        if self._value_serializer is not None:
            record.value = self._value_serializer(record.topic, record.value)
        return record

    def _acknowledged(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self._tell(self._interceptors, "on_acknowledgement", metadata, error)


def pairs(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as a batch holds them."""
    if not headers:
        return ()
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)
