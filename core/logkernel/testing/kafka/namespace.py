"""A test's own part of a broker that many tests share: topics and groups with names that no other test has."""

from __future__ import annotations

import contextlib
import re
from typing import Final, Self

from logkernel.errors import UnknownTopicOrPartition
from logkernel.testing.kafka.broker import LogInside
from logkernel.testing.kafka.kafka import Kafka
from logkernel.testing.kafka.requests import KeptRequests
from logkernel.testing.kafka.view import KafkaView

LONGEST: Final = 249
"""Of a topic's name, in Kafka."""
FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]")


class KafkaNamespace(KafkaView):
    """A view whose topic "orders" is the broker's "orders.7-test_name". `close` deletes what topics the test made.

    Give the program under test `topic("orders")` and `group("billing")`. One namespace of a broker is open at a time.
    """

    def __init__(self, kafka: Kafka, number: int, test: str = "") -> None:
        """`number` is its own among the namespaces of `kafka`; `test` makes its names easier to read."""
        self._kafka = kafka
        self._suffix = f".{number}-{FOREIGN.sub('-', test)}".rstrip("-")
        self.clock, self.faults, self.look_again_s = kafka.clock, kafka.faults, kafka.look_again_s
        self.security = kafka.security
        self._before = kafka.topics
        kafka.requests.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete every topic that was created since this namespace is open, whatever its name is, and every fault."""
        self.faults.clear()
        for name in self._kafka.topics.keys() - self._before.keys():
            with contextlib.suppress(UnknownTopicOrPartition):  # the test's program deletes it as well
                self._kafka.delete_topic(name)

    @property
    def process_log(self) -> str:
        return self._kafka.process_log

    @property
    def log(self) -> LogInside:
        return self._kafka.log

    @property
    def bootstrap_servers(self) -> str:
        return self._kafka.bootstrap_servers

    @property
    def requests(self) -> KeptRequests:
        return self._kafka.requests

    def topic(self, name: str) -> str:
        return name if name.endswith(self._suffix) else f"{name}{self._suffix}"[:LONGEST]

    def called(self, topic: str) -> str:
        return topic.removesuffix(self._suffix)

    def group(self, name: str) -> str:
        return self.topic(name)
