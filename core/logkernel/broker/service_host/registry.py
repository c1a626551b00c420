"""All services of one broker: which share a topic, and the events that go to all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logkernel.broker.service_host.host import ServiceHost
from logkernel.broker.service_host.lent import LOAD_TURN_MS, Lent
from logkernel.broker.service_host.shard_set import ShardSet
from logkernel.contracts import ServiceDeclaration, ServiceTopic
from logkernel.vocabulary import Record, TopicPartition

LOAD_ALL_AFTER_MS = 5_000
"""Shards that no request has touched are loaded this long after start, for their timers' sake."""


class ServiceRegistry:
    """Hosts the services that plugins declare."""

    def __init__(self, lent: Lent) -> None:
        self._lent = lent
        self._hosts: list[ServiceHost] = []
        self._sets: list[ShardSet] = []
        self._by_topic: dict[str, ShardSet] = {}

    def __iter__(self) -> Iterator[ServiceHost]:
        return iter(self._hosts)

    def host(self, declared: ServiceDeclaration) -> ServiceHost:
        """Take a service in; it is made when it is first needed."""
        host = ServiceHost(self._lent, declared, self._shards_in(declared.topic))
        self._hosts.append(host)
        self._lent.cluster.declare_features(declared.features)
        return host

    def answering(self, request: str) -> ServiceHost:
        """The service that answers a request, by the name of the request's class. Raises `KeyError`."""
        for host in self._hosts:
            if request in host.declared.requests:
                return host
        raise KeyError(request)

    def _shards_in(self, topic: ServiceTopic | None) -> ShardSet:
        found = None if topic is None else self._by_topic.get(topic.name)
        if found is None:
            found = ShardSet(self._lent, topic)
            self._sets.append(found)
            if topic is not None:
                self._by_topic[topic.name] = found
        return found

    def load_later(self) -> None:
        """Load the shards that no request touches, some time after the start."""
        self._lent.runtime.after(LOAD_ALL_AFTER_MS, self._begin)

    def _begin(self) -> None:
        for shards in self._sets:
            shards.create_topic()
        self._load()

    def _load(self) -> None:
        runtime = self._lent.runtime
        begun_ms = runtime.clock.mono_ms()
        for shards in self._sets:
            while shards.load_next():
                if runtime.clock.mono_ms() - begun_ms >= LOAD_TURN_MS:
                    runtime.after(1, self._load)
                    return

    # ------------------------------------------------------------ in a cluster

    def leads(self, name: TopicPartition) -> None:
        """This broker leads a partition from now on."""
        shards = self._by_topic.get(name.topic)
        if shards is not None:
            shards.leads(name.partition)

    def resigns(self, name: TopicPartition) -> None:
        """This broker leads a partition no longer."""
        shards = self._by_topic.get(name.topic)
        if shards is not None:
            shards.resigns(name.partition)

    # ------------------------------------------------------------ telling all

    def topics_deleted(self, topics: Sequence[str]) -> None:
        """So that a topic made anew inherits nothing."""
        for shards in self._sets:
            shards.topics_deleted(topics)

    def topics_changed(self, topics: Sequence[str]) -> None:
        """They were created, or have more partitions, or replicas elsewhere."""
        for shards in self._sets:
            shards.topics_changed(topics)

    def disconnected(self, listener: str, connection_id: int) -> None:
        for host in self._hosts:
            host.disconnected(listener, connection_id)

    def control_appended(
        self, name: TopicPartition, producer_id: int, producer_epoch: int, records: Sequence[Record]
    ) -> None:
        """A marker lies in a log; if a service keeps its state there, its machine must see it."""
        shards = self._by_topic.get(name.topic)
        for host in () if shards is None else shards.hosts:
            host.replay_control(name.partition, producer_id, producer_epoch, records)
