"""How the topics of one producer are partitioned: made at their first record, again when their partitions change.

The setting `partitioner.class` goes before the partitioner that a topic names itself (`topic_partitioners`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import define

from logkernel.client.cluster.calls import with_cause
from logkernel.client.cluster.metadata import FATAL_TOPIC_ERRORS, TopicInfo
from logkernel.client.cluster.permissions import explained
from logkernel.client.drivers.driver import mono_ms
from logkernel.client.producer.partitioning import Partitioning, make_partitioner
from logkernel.client.producer.sender import Sender
from logkernel.client.producer.topic_partitioners import TopicPartitioners
from logkernel.errors import LogkernelError, RequestTimedOut, error_for
from logkernel.record import loops


@define(eq=False)
class NeedTopic:
    """The topic's metadata, or the name of its partitioner, must come first."""

    name: str
    refusals: int
    """How many connections were refused before."""


class Topics:
    """See the module. Use it under the client's lock."""

    def __init__(
        self,
        sender: Sender,
        settings: Mapping[str, Any],
        partitioners: TopicPartitioners,
        routes: dict[str, loops.Route] | None,
    ) -> None:
        self._sender = sender
        self._metadata = sender.core.metadata
        self._settings = settings
        self._partitioners = partitioners
        self.known: dict[str, Partitioning] = {}
        """As they were last; a lookup is part of every `send`."""
        self._routes = routes
        """Kept up to date for topics without a partitioner; None: no record goes by them."""

    def forget(self) -> None:
        """Nothing more is sent."""
        self.known.clear()
        if self._routes is not None:
            self._routes.clear()

    def get(self, topic: str) -> Partitioning | NeedTopic:
        """How a topic is partitioned now. Raises the error that the cluster has for it."""
        info = self._metadata.want(topic, mono_ms())
        if info.error_code in FATAL_TOPIC_ERRORS:
            del self._metadata.topics[topic]
            raise explained(error_for(info.error_code, about=topic), "Produce")
        if not info.leaders:
            self._drop(topic)
            return self._need(topic)
        found = self.known.get(topic)
        if found is not None and found.count == len(info.leaders):
            return found
        given = self._settings["partitioner.class"]
        if given is None:
            if topic not in self._partitioners.names:
                self._partitioners.ask(topic)
                return self._need(topic)
            given = self._partitioners.names[topic]
        made = self._make(info, given)
        self._drop(topic)
        self.known[topic] = made
        if self._routes is not None and made.partitioner is None:
            self._routes[topic] = made.route
        return made

    def _need(self, topic: str) -> NeedTopic:
        return NeedTopic(topic, self._sender.core.refusals)

    def refusal(self, need: NeedTopic) -> Exception | None:
        """Why the topic's metadata does not come: brokers refused the client since it was needed."""
        core = self._sender.core
        return core.refusal_for(-1) if core.refusals != need.refusals else None

    def _drop(self, topic: str) -> None:
        self.known.pop(topic, None)
        if self._routes is not None:
            self._routes.pop(topic, None)

    def _make(self, info: TopicInfo, given: Any) -> Partitioning:
        random = self._sender.core.random
        old = self.known.get(info.name)
        partitioner = None if old is None else old.partitioner
        if partitioner is None and given is not None:
            partitioner = make_partitioner(given, partial(self._partitioners.make, info.name), random.getrandbits(63))
        return Partitioning(info, self._sender, self._settings, partitioner, random, mono_ms())

    def ready(self, need: NeedTopic) -> bool:
        """Whether it is worth trying again, or waiting is in vain."""
        if self.refusal(need) is not None:
            return True
        info = self._metadata.topics.get(need.name)
        if info is None or info.error_code in FATAL_TOPIC_ERRORS:
            return True
        if not info.leaders:
            return False
        return (
            self._settings["partitioner.class"] is not None
            or need.name in self._partitioners.names
            or need.name not in self._partitioners.asked
        )

    def timed_out(self, topic: str) -> LogkernelError:
        """The error for a topic that did not get ready in time."""
        info = self._metadata.topics.get(topic)
        error: Exception | None = None
        if info is not None and info.error_code:
            error = error_for(info.error_code)
        error = error or self._sender.core.network.last_loss
        said = f"no metadata of topic {topic!r} within max.block.ms={self._settings['max.block.ms']}"
        return RequestTimedOut(with_cause(said, error, "check its name and the brokers"))
