"""The view of the cluster that handlers and services get."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.config.groups import group_value
from logkernel.contracts import Assignor
from logkernel.controller.image import NO_LEADER
from logkernel.errors import LeaderNotAvailable
from logkernel.requests.sharding import shard_of

if TYPE_CHECKING:
    from logkernel.broker.controller.channel import ControllerChannel
    from logkernel.broker.controller.election import ControllerElection
    from logkernel.broker.received_metadata import ReceivedMetadata
    from logkernel.controller.image import Topic

IN_PROCESS = "IN-PROCESS"
"""The listener of a broker that opens none: clients in its process reach it without an address."""
BrokerEndpoint = tuple[int, str, int, str | None]
"""(node id, host, port, rack) of a broker on one listener."""


class LiveClusterView:
    """The cluster as this broker knows it, read from its metadata image and replicas, and the broker's own addresses.

    Implements `contracts.ClusterView`."""

    def __init__(self, runtime: Runtime, metadata: MetadataManager, replicas: ReplicaManager) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._replicas = replicas
        self._bound: dict[str, int] = {}
        self._nodes: dict[str, list[BrokerEndpoint]] = {}
        self._features: dict[str, tuple[int, int, int]] = {}
        self.election: ControllerElection | None = None
        """Knows who is the controller, in a cluster; None on a broker that stands alone and is it."""
        self.channel: ControllerChannel | None = None
        """Asks the controller, in a cluster."""
        self.received: ReceivedMetadata | None = None
        """The metadata that the controller sent; None on a broker that stands alone."""

    @property
    def id(self) -> str:
        """The cluster's id."""
        return self._metadata.image.cluster_id

    @property
    def controller_id(self) -> int:
        """The node that is the controller, -1 while nobody is."""
        return self._runtime.node_id if self.election is None else self.election.view.controller_id

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self._metadata.image.topics

    def partition_count(self, topic: str) -> int | None:
        return self._metadata.partition_count(topic)

    def find_partition_count(self, topic: str) -> int | None:
        """What the coordination says, in a cluster. Raises `KafkaError` if there is no answer."""
        return self.partition_count(topic) if self.election is None else self.election.partition_count(topic)

    def topic_names(self) -> list[str]:
        return sorted(self.topics)

    def is_internal(self, topic: str) -> bool:
        return topic in self._metadata.controller.internal or self._metadata.is_internal(topic)

    def topic_setting(self, topic: str, name: str) -> Any:
        """Raises AttributeError for a setting that topics do not have."""
        settings = self._metadata.topic_settings(topic)
        return settings.plugin[name] if name in settings.plugin else getattr(settings, name.replace(".", "_"))

    def group_setting(self, group_id: str, name: str) -> Any:
        """Raises KeyError for a setting that groups do not have."""
        return group_value(self._runtime.config, self._metadata.image.group_config(group_id), name)

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int] | None:
        replica = self._replicas.led.get((topic, partition))
        if replica is None:
            return None
        leader = replica.leader
        return replica.log.start_offset, leader.last_stable_offset(), leader.high_watermark

    def leader_epoch(self, topic: str, partition: int) -> int | None:
        """Not below what the log holds: one that a Kafka left may have had later leaders than ours."""
        replica = self._replicas.led.get((topic, partition))
        return None if replica is None else max(replica.leader.leader_epoch, replica.log.epochs.latest)

    def next_producer_id(self) -> int:
        return self._metadata.next_producer_id()

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the node id of a partition's leader as this broker knows it, or None while there is no leader."""
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        leader = found.partitions[partition].leader
        return None if leader < 0 else leader

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        """Return the error code with which clients get a partition that has this leader; 0 if there is none."""
        if self.received is not None and leader not in self._metadata.image.nodes:
            return LeaderNotAvailable.code
        return self._replicas.leader_error(topic, partition, leader)

    def leader_for_clients(self, leader: int) -> int:
        """Return `leader`, or -1 if that broker is not alive."""
        return leader if self.received is None or leader in self._metadata.image.nodes else NO_LEADER

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        """Return the replicas that this broker knows to be offline."""
        own = self._replicas.offline_replicas(topic, partition, replicas)
        if self.received is None:
            return own
        away = self.received.offline_replicas(topic, partition, replicas)
        return [*away, *(node for node in own if node not in away)]

    def coordinator(self, topic: str, key: str, listener: str) -> BrokerEndpoint | None:
        """On a broker that stands alone it is this one, also while there is no topic yet: that is made when it is first
        written. In a cluster the controller is asked for the topic, and nobody is the coordinator until then."""
        brokers, found = self.brokers(listener), self.topics.get(topic)
        if found is None and self.channel is not None:
            self.channel.ask_for_topic(topic, self._metadata.image)
            return None
        if found is None:
            return brokers[0] if brokers else None
        leader = found.partitions[shard_of(key, len(found.partitions))].leader
        return next((row for row in brokers if row[0] == leader), None)

    # ------------------------------------------------------------ features

    def declare_features(self, features: Mapping[str, tuple[int, int, int]]) -> None:
        """A service has features: name → (lowest level, highest, that of a new cluster)."""
        self._features.update(features)

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        """Name → (lowest level, highest, finalized): the level that was set; else what the coordination says of all
        features, by the name ""; else that of a new cluster."""
        levels = self._metadata.image.features
        rest = levels.get("")
        return {
            name: (low, high, levels.get(name, default if rest is None else rest))
            for name, (low, high, default) in self._features.items()
        }

    def feature_level(self, name: str) -> int:
        found = self.features().get(name)
        return 0 if found is None else found[2]

    def assignor(self, name: str) -> Assignor:
        return self._runtime.kernel.assignor(name)

    def topic_id(self, topic: str) -> UUID | None:
        found = self._metadata.image.topics.get(topic)
        return None if found is None else found.id

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._metadata.image.names.get(topic_id) if self.received is None else self.received.topic_name(topic_id)

    def configured_listeners(self) -> list[tuple[str, str, int]]:
        """(name, host, port) of every listener to open; an empty host means every interface."""
        return [(listener.name, listener.host, listener.port) for listener in self._runtime.config.listeners]

    def listening(self, name: str, port: int, host: str) -> None:
        """Note that a listener is bound: Metadata answers on it name this address from now on."""
        rack = self._runtime.config.get("broker.rack")
        self._bound[name] = port
        self._nodes[name] = [(self._runtime.node_id, host, port, rack)]
        if (name, host) not in {(known.name, known.host) for known in self._runtime.config.listeners}:
            return  # opened by hand: it has no advertised address
        for advertised in self._runtime.config.advertised(self._bound, socket.gethostname()):
            if advertised.name in self._bound:
                self._nodes[advertised.name] = [(self._runtime.node_id, advertised.host, advertised.port, rack)]

    def registration(self) -> dict[str, Any]:
        """Return this broker's registration, which the coordination keeps while the broker is alive, in the form of
        `image.BrokerRegistration`."""
        rack = self._runtime.config.get("broker.rack")
        listeners = {name: [row[1], row[2]] for name, (row,) in self._nodes.items()}
        return {"listeners": listeners or {IN_PROCESS: ["localhost", self._runtime.node_id]}, "rack": rack}

    def peer_address(self, listeners: Sequence[str], node_id: int, by_controller: bool) -> tuple[str, int] | None:
        """Return (host, port) of broker `node_id` on the inter-broker `listeners`, or None while it is not known.

        `by_controller`: the request goes to or comes from a controller, so the listener of the controller's orders is
        preferred."""
        election = self.election
        found = None
        if election is not None and election.is_active:
            found = election.active.image.nodes.get(node_id)
        found = found or self._metadata.image.nodes.get(node_id)
        if found is None:
            return None
        for name in reversed(listeners) if by_controller else listeners[:1]:
            address = found.listeners.get(name)
            if address is not None:
                return address[0], address[1]
        return None

    def brokers(self, listener: str) -> list[BrokerEndpoint]:
        """Return every live broker with its address on `listener`, or on its first listener if it has none of that
        name."""
        if self.election is not None:
            return [
                (node.id, *(node.listeners.get(listener) or next(iter(node.listeners.values()))), node.rack)
                for _, node in sorted(self._metadata.image.nodes.items())
                if node.listeners
            ]
        found = self._nodes.get(listener) or next(iter(self._nodes.values()), None)
        return found or [(self._runtime.node_id, "localhost", -1, None)]
