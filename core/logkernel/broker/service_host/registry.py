"""All services of one broker: which share a topic, and the events that go to all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from logkernel.broker.service_host.host import Lent, ServiceHost
from logkernel.contracts import ServiceDeclaration
from logkernel.vocabulary import Record, TopicPartition

LOAD_ALL_AFTER_MS = 5_000
"""Shards that no request has touched are loaded this long after start, for their timers' sake."""
LOAD_TURN_MS = 10
"""After so long, requests come before the next such shard."""


class ServiceRegistry:
    """Hosts the services that plugins declare."""

    def __init__(self, lent: Lent) -> None:
        self._lent = lent
        self._hosts: list[ServiceHost] = []
        self._sharing: dict[ServiceHost, list[ServiceHost]] = {}

    def __iter__(self) -> Iterator[ServiceHost]:
        return iter(self._hosts)

    def host(self, declared: ServiceDeclaration) -> ServiceHost:
        """Take a service in; it is made when it is first needed."""
        host = ServiceHost(self._lent, declared, self.sharing)
        self._hosts.append(host)
        self._lent.cluster.declare_features(declared.features)
        return host

    def answering(self, request: str) -> ServiceHost:
        """The service that answers a request, by the name of the request's class. Raises `KeyError`."""
        for host in self._hosts:
            if request in host.declared.requests:
                return host
        raise KeyError(request)

    def sharing(self, host: ServiceHost) -> list[ServiceHost]:
        """The services that keep their state in the same topic, `host` the first."""
        found = self._sharing.get(host)
        if found is None:
            topic = host.declared.topic
            others = [] if topic is None else [
                one for one in self._hosts
                if one is not host and one.declared.topic is not None and one.declared.topic.name == topic.name
            ]  # fmt: skip
            found = self._sharing[host] = [host, *others]
        return found

    def load_later(self) -> None:
        """Load the shards that no request touches, some time after the start."""
        self._lent.runtime.after(LOAD_ALL_AFTER_MS, self._load)

    def _load(self) -> None:
        runtime = self._lent.runtime
        begun_ms = runtime.clock.mono_ms()
        for host in self._hosts:
            while host.load_next():
                if runtime.clock.mono_ms() - begun_ms >= LOAD_TURN_MS:
                    runtime.after(1, self._load)
                    return

    # ------------------------------------------------------------ in a cluster

    def leads(self, name: TopicPartition) -> None:
        """This broker leads a partition from now on."""
        for host in self._of(name.topic):
            host.load_in_turns(name.partition)
            return  # with those that share it

    def resigns(self, name: TopicPartition) -> None:
        """This broker leads a partition no longer."""
        for host in self._of(name.topic):
            host.resign(name.partition)
            return

    def _of(self, topic: str) -> Iterator[ServiceHost]:
        return (host for host in self._hosts if host.declared.topic is not None and host.declared.topic.name == topic)

    # ------------------------------------------------------------ telling all

    def topics_deleted(self, topics: Sequence[str]) -> None:
        """Topics were deleted: a new topic of the same name must not inherit state."""
        for host in self._hosts:
            host.topics_deleted(host.foreign(topics))

    def topics_changed(self, topics: Sequence[str]) -> None:
        """They were created, or have more partitions."""
        for host in self._hosts:
            host.topics_changed(host.foreign(topics))

    def disconnected(self, listener: str, connection_id: int) -> None:
        for host in self._hosts:
            host.disconnected(listener, connection_id)

    def control_appended(
        self, name: TopicPartition, producer_id: int, producer_epoch: int, records: Sequence[Record]
    ) -> None:
        """A marker was appended to a log: replay it into the service that has its state there."""
        for host in self._hosts:
            topic = host.declared.topic
            if topic is not None and topic.name == name.topic:
                host.replay_control(name.partition, producer_id, producer_epoch, records)
