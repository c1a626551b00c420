"""Interceptors that break a promise."""

from __future__ import annotations

from typing import Any

from wrong_plugins import Wrong, made


class Right:
    """It does nothing."""

    def on_send(self, record: Any) -> Any:
        return record

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """It is not told to anybody."""

    def close(self) -> None:
        """Nothing is open."""


class Silent(Right):
    def on_send(self, record: Any) -> Any:
        return None


class BytesOnly(Right):
    def on_send(self, record: Any) -> Any:
        record.value = b"stamped " + record.value
        return record


class Router(Right):
    def on_send(self, record: Any) -> Any:
        record.topic = None
        return record


class Optimist(Right):
    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        self.last = metadata.offset


class Unopened(Right):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_send(self, record: Any) -> Any:
        self.seen.append(record)
        return record

    def close(self) -> None:
        self.seen.pop()


class Astray(Right):
    """Its records go to a partition that is not there."""

    def on_send(self, record: Any) -> Any:
        record.partition = 99
        return record


WRONG = [
    Wrong("test_each_record_becomes_one_record", "returned None; return the ProducerRecord", made(lambda _: Silent())),
    Wrong("test_each_record_becomes_one_record", r"raised TypeError: .*; raise nothing", made(lambda _: BytesOnly())),
    Wrong("test_each_record_becomes_one_record", "a record for the topic None", made(lambda _: Router())),
    Wrong(
        "test_it_takes_every_outcome", r"on_acknowledgement\(None.*raised AttributeError", made(lambda _: Optimist())
    ),
    Wrong(
        "test_it_is_closed_after_any_number_of_records", r"close\(\) after 0 records raised", made(lambda _: Unopened())
    ),
    Wrong("test_a_producer_sends_through_it", "a producer with it raised", made(lambda _: Astray())),
]
