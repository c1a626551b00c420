"""A record before it is in a batch: as the user passed it, and as interceptors and serializers change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from logkernel.client.drivers.driver import log
from logkernel.client.helpers import Helpers
from logkernel.client.serializers import serializer
from logkernel.vocabulary import RecordMetadata

Headers = Mapping[str, bytes | None] | Sequence[tuple[str, bytes | None]]
Stamped = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Timestamp (ms), key, value, headers: a record as a batch takes it."""


@define
class ProducerRecord:
    """A record as an interceptor sees it: before it is serialized and given a partition."""

    topic: str
    value: Any = None
    key: Any = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class Preparer:
    """What a producer's records go through before they are put into batches."""

    def __init__(self, helpers: Helpers, settings: Mapping[str, Any]) -> None:
        self._helpers = helpers
        self._key_serializer = serializer(settings["key.serializer"])
        self._value_serializer = serializer(settings["value.serializer"])
        self.intercepts = bool(helpers.interceptors)
        self.plain = self._key_serializer is None and self._value_serializer is None and not self.intercepts
        """Whether a record goes as it was given."""

    def prepare(self, record: ProducerRecord) -> ProducerRecord:
        """As interceptors and serializers make it. Raises what a serializer raises."""
        for interceptor in self._helpers.interceptors:
            try:
                record = interceptor.on_send(record) or record
            except Exception:
                log.exception("on_send of %r failed", interceptor)
        if self._key_serializer is not None:
            record.key = self._key_serializer(record.topic, record.key)
        if self._value_serializer is not None:
            record.value = self._value_serializer(record.topic, record.value)
        return record

    def acknowledged(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        """Tell the interceptors of a record's outcome."""
        self._helpers.tell("on_acknowledgement", metadata, error)

    def refused(self, error: Exception) -> None:
        """Tell the interceptors that a record was not sent."""
        if self.intercepts:
            self.acknowledged(None, error)


def pairs(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as a batch holds them."""
    if not headers:
        return ()
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)
