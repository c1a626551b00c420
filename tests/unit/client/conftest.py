"""A core that keeps what machines ask of it, for a test to answer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from logkernel.client.cluster.metadata import Metadata, TopicInfo
from logkernel.client.settings.consumer import load_consumer
from logkernel.vocabulary import NO_ID


class Wire:
    """A network whose nodes are always ready."""

    def __init__(self) -> None:
        self.nodes = {1: None, 2: None}
        self.sent: list[tuple[int, Any, Any]] = []

    def ready(self, node: int, now_ms: int) -> bool:
        return True

    def send(self, node: int, request: Any, token: Any, now_ms: int, limit_ms: int | None = None) -> None:
        self.sent.append((node, request, token))


class PlayedCore:
    """Stands for a `ClientCore`."""

    def __init__(self, **settings: Any) -> None:
        self.settings = load_consumer({"bootstrap_servers": "h:1", **settings})
        self.random = Random(1)
        self.metadata = Metadata(self.settings, [("h", 1)], self.random)
        self.network = Wire()
        self.calls: list[Any] = []
        self.forgotten = self.refusals = 0

    def call(self, call: Any) -> None:
        self.calls.append(call)

    def forget_coordinator(self, target: Any) -> None:
        self.forgotten += 1

    def learn(self, name: str, partitions: int, topic_id: Any = NO_ID, epoch: int = 0) -> None:
        """As if the metadata had told of a topic, all of it led by node 1."""
        self.metadata.topics[name] = TopicInfo(name, topic_id, [1] * partitions, [epoch] * partitions)
        self.metadata.names[topic_id] = name
        self.metadata.version += 1

    def asked(self, kind: type) -> Any:
        """The request of the only call that waits."""
        (call,) = self.calls
        assert isinstance(call.request, kind), call.request
        return call.request

    def answer(self, response: Any) -> None:
        """To the first call that waits; one that its verdict does not let pass would be sent again."""
        call = self.calls.pop(0)
        assert call.verdict(response) == 0, "it is sent again"
        call.done(response, None)

    def fail(self, error: Exception) -> None:
        self.calls.pop(0).done(None, error)


@pytest.fixture
def play() -> Callable[..., PlayedCore]:
    return PlayedCore
