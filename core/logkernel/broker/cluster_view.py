"""The view of the cluster that handlers and services get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.own_addresses import BrokerEndpoint, OwnAddresses
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.config.groups import group_value
from logkernel.contracts import Assignor, RequestContext, TaskAssignor
from logkernel.controller.image import NO_LEADER
from logkernel.errors import LeaderNotAvailable
from logkernel.requests.sharding import shard_of
from logkernel.vocabulary import AclOperation

if TYPE_CHECKING:
    from logkernel.broker.controller.channel import ControllerChannel
    from logkernel.broker.controller.controller_election import ControllerElection
    from logkernel.broker.received_metadata import ReceivedMetadata
    from logkernel.controller.image import Topic

Authorize = Callable[[RequestContext, AclOperation, Sequence[str]], Sequence[str]]


class LiveClusterView:
    """The cluster as a broker that stands alone knows it, from its metadata image and replicas.

    Implements `contracts.ClusterView`."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataManager,
        replicas: ReplicaManager,
        addresses: OwnAddresses,
        next_producer_id: Callable[[], int],
    ) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._replicas = replicas
        self._addresses = addresses
        self._features: dict[str, tuple[int, int, int]] = {}
        self.authorize: Authorize | None = None
        """Asks the authorizer; None where the broker has none."""
        self.next_producer_id = next_producer_id
        """Return an id that was never given before. Raises `KafkaError`."""

    @property
    def id(self) -> str:
        """The cluster's id."""
        return self._metadata.image.cluster_id

    @property
    def controller_id(self) -> int:
        """The node id of the controller, -1 while there is none."""
        return self._runtime.node_id

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self._metadata.image.topics

    def partition_count(self, topic: str) -> int | None:
        return self._metadata.partition_count(topic)

    def find_partition_count(self, topic: str) -> int | None:
        """What the coordination says. Raises `KafkaError` if there is no answer."""
        return self.partition_count(topic)

    def topic_names(self) -> list[str]:
        return sorted(self.topics)

    def allowed(self, sender: RequestContext, operation: AclOperation, topics: Sequence[str]) -> Sequence[str]:
        """Raises `UnknownServerError` where the authorizer fails."""
        return topics if self.authorize is None or sender.internal else self.authorize(sender, operation, topics)

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

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the node id of a partition's leader as this broker knows it, or None while there is no leader."""
        found = self.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        leader = found.partitions[partition].leader
        return None if leader < 0 else leader

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        """Return the error code with which clients get a partition that has this leader; 0 if there is none."""
        return self._replicas.leader_error(topic, partition, leader)

    def leader_for_clients(self, leader: int) -> int:
        """Return `leader`, or -1 if that broker is not alive."""
        return leader

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        """Return the replicas that this broker knows to be offline."""
        return self._replicas.offline_replicas(topic, partition, replicas)

    def coordinator(self, topic: str, key: str, listener: str) -> BrokerEndpoint | None:
        """Return the broker that leads the shard of `key`. Where there is no topic yet it is this one: the topic is
        created when it is first written."""
        if topic not in self.topics:
            return self._addresses.endpoint(listener)
        return self._coordinator(self.topics[topic], key, listener)

    def _coordinator(self, topic: Topic, key: str, listener: str) -> BrokerEndpoint | None:
        leader = topic.partitions[shard_of(key, len(topic.partitions))].leader
        return next((row for row in self.brokers(listener) if row[0] == leader), None)

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

    def task_assignor(self, name: str) -> TaskAssignor:
        return self._runtime.kernel.task_assignor(name)

    def racks(self, topic: str) -> list[list[str]]:
        found, rack_of = self.topics.get(topic), self._rack_of()
        rows = found.partitions if found is not None else ()
        return [[rack_of[node] for node in row.replicas if node in rack_of] for row in rows]

    def _rack_of(self) -> Mapping[int, str]:
        """Return the brokers that have a rack."""
        return {node_id: rack for node_id, _, _, rack in self.brokers("") if rack is not None}

    def topic_id(self, topic: str) -> UUID | None:
        found = self._metadata.image.topics.get(topic)
        return None if found is None else found.id

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._metadata.image.names.get(topic_id)

    def brokers(self, listener: str) -> list[BrokerEndpoint]:
        """Return every live broker with its address on `listener`, or on its first listener if it has none of that
        name."""
        return [self._addresses.endpoint(listener)]


class SharedClusterView(LiveClusterView):
    """The cluster as one of its brokers knows it: the metadata that the controller sent, and the controller."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataManager,
        replicas: ReplicaManager,
        addresses: OwnAddresses,
        next_producer_id: Callable[[], int],
        election: ControllerElection,
        channel: ControllerChannel,
        received: ReceivedMetadata,
    ) -> None:
        super().__init__(runtime, metadata, replicas, addresses, next_producer_id)
        self._election = election
        self._channel = channel
        self._received = received

    @property
    def controller_id(self) -> int:
        return self._election.view.controller_id

    def find_partition_count(self, topic: str) -> int | None:
        return self._election.partition_count(topic)

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        if leader not in self._metadata.image.nodes:
            return LeaderNotAvailable.code
        return super().leader_error(topic, partition, leader)

    def leader_for_clients(self, leader: int) -> int:
        return leader if leader in self._metadata.image.nodes else NO_LEADER

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        away = self._received.offline_replicas(topic, partition, replicas)
        return [*away, *(node for node in super().offline_replicas(topic, partition, replicas) if node not in away)]

    def coordinator(self, topic: str, key: str, listener: str) -> BrokerEndpoint | None:
        """The controller is asked for a topic that is not there, and nobody is the coordinator until then."""
        if topic not in self.topics:
            self._channel.ask_for_topic(topic, self._metadata.image)
            return None
        return self._coordinator(self.topics[topic], key, listener)

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._received.topic_name(topic_id)

    def _rack_of(self) -> Mapping[int, str]:
        """Of brokers that are away, too: that in which each was seen, else that which the cluster keeps."""
        image = self._metadata.image
        known = {**image.racks, **self._received.racks}
        living = image.nodes
        return {node: rack for node, rack in known.items() if node not in living or living[node].rack is not None}

    def brokers(self, listener: str) -> list[BrokerEndpoint]:
        return [
            (node.id, *(node.listeners.get(listener) or next(iter(node.listeners.values()))), node.rack)
            for _, node in sorted(self._metadata.image.nodes.items())
            if node.listeners
        ]
