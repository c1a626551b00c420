"""The controller machine: from requests and events to changes of the cluster's metadata.

Pure: it reads an image and returns `ControllerResult(changes, response, effects)`. The caller commits the
changes to the coordination, folds them into the image, carries out the effects and then answers. Without a commit
nothing happened. The modules for topics and settings are imported when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import ElectionStrategy, MetadataChange, PlacementStrategy, ServiceTopic
from logkernel.controller import election_rules, producers
from logkernel.controller.effects import ControllerResult, Effects, Spend, free
from logkernel.controller.image import BrokerRegistration, ClusterImage, Topic, registration_change
from logkernel.errors import PluginError

if TYPE_CHECKING:
    from logkernel.controller.placement import Draw, Placements, Placing
    from logkernel.requests.configs import (
        AlterConfigsRequest,
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        IncrementalAlterConfigsRequest,
    )
    from logkernel.requests.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest


def _no_placement(name: str, settings: Mapping[str, Any]) -> PlacementStrategy:
    raise PluginError(f"no plugin provides the placement {name!r} here")


def _zero(below: int) -> int:
    return 0


@mutable
class Controller:
    """See the module. Its only state is configuration: settings (replaced when they change), node id, sources of
    ids."""

    config: BrokerConfig
    node_id: int
    new_id: Callable[[], UUID]
    """Unique topic ids, none of them zero."""
    internal: Mapping[str, ServiceTopic] = field(factory=dict)
    """The topics in which services keep their state, by name."""

    placements: Placements = _no_placement
    """Placements that plugins provide, for topics of several brokers."""
    draw: Draw = _zero
    """The randomness of placements."""
    size: int | None = 1
    """The planned number of brokers, None if unknown. Topics of services get no more replicas."""

    def _placing(self, image: ClusterImage) -> Placing:
        """Places on all registered brokers, or only on this one where none is registered."""
        from logkernel.controller.placement import Placing

        brokers = [(node.id, node.rack) for _, node in sorted(image.nodes.items())]
        return Placing(brokers or [(self.node_id, None)], self.placements, self.draw)

    def register(self, image: ClusterImage, node: BrokerRegistration) -> ControllerResult:
        """Register a broker with its listeners. Changes nothing where they are known already."""
        changes = [] if image.nodes.get(node.id) == node else [registration_change(node)]
        return ControllerResult(changes, None, Effects())

    def name_cluster(self, image: ClusterImage, cluster_id: str) -> ControllerResult:
        """Give the cluster its id, once. The response is the id in force."""
        if image.cluster_id:
            return ControllerResult([], image.cluster_id, Effects())
        return ControllerResult([MetadataChange("cluster", "", {"id": cluster_id})], cluster_id, Effects())

    def mark_internal(self, image: ClusterImage) -> ControllerResult:
        """Mark topics of services as internal that were created as ordinary ones while the service was blocked."""
        known = (image.topics.get(name) for name in self.internal)
        found = [topic for topic in known if topic is not None and not topic.internal]
        changes = [Topic(topic.name, topic.id, topic.partitions, True).change() for topic in found]
        return ControllerResult(changes, None, Effects())

    # topics

    def create_topics(self, request: CreateTopicsRequest, image: ClusterImage, spend: Spend = free) -> ControllerResult:
        from logkernel.controller import topics

        placing = self._placing(image)
        return topics.create_topics(request, image, self.config, placing, self.new_id, self.internal, spend)

    def create_topic(
        self,
        image: ClusterImage,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        settings: Mapping[str, str] | None = None,
    ) -> ControllerResult:
        """Create a topic from plain values (-1: the default). The response is its `image.Topic`. Raises KafkaError."""
        from logkernel.controller import topics

        return topics.create_one(
            name,
            partitions,
            replication_factor,
            settings or {},
            image,
            self.config,
            self._placing(image),
            self.new_id,
            internal=name in self.internal,
            size=self.size,
        )

    def create_internal(self, name: str, image: ClusterImage, partitions: int = -1) -> ControllerResult:
        """Create the topic of a service as declared. The response is its `image.Topic`. Raises KafkaError."""
        from logkernel.controller import topics

        declared = self.internal[name]
        return topics.create_internal(
            declared, partitions, image, self.config, self._placing(image), self.new_id, self.size
        )

    def auto_create(self, topic: str, image: ClusterImage) -> ControllerResult:
        """Create a topic because a client asked for it. The response is its `image.Topic`. Raises KafkaError."""
        return self.create_internal(topic, image) if topic in self.internal else self.create_topic(image, topic)

    def delete_topics(self, request: DeleteTopicsRequest, image: ClusterImage, spend: Spend = free) -> ControllerResult:
        from logkernel.controller import topics

        return topics.delete_topics(request, image, self.config, spend)

    def delete_topic(self, image: ClusterImage, name: str) -> ControllerResult:
        """Delete a topic by name. The response is its `image.Topic`. Raises KafkaError."""
        from logkernel.controller import topics

        return topics.delete_one(name, image, self.config)

    def create_partitions(
        self, request: CreatePartitionsRequest, image: ClusterImage, spend: Spend = free
    ) -> ControllerResult:
        from logkernel.controller import topics

        return topics.create_partitions(request, image, self.config, self._placing(image), spend)

    # settings

    def alter_configs(self, request: AlterConfigsRequest, image: ClusterImage) -> ControllerResult:
        from logkernel.controller import configs

        return configs.alter_configs(request, image, self.config, self.node_id)

    def incremental_alter_configs(
        self, request: IncrementalAlterConfigsRequest, image: ClusterImage
    ) -> ControllerResult:
        from logkernel.controller import configs

        return configs.incremental_alter_configs(request, image, self.config, self.node_id)

    def apply_topic_settings(self, image: ClusterImage, name: str, settings: Mapping[str, str]) -> ControllerResult:
        """Apply the settings that a file has for an existing topic.

        The response is {setting: (old text or None, new text)} of what differs. Raises KafkaError.
        """
        from logkernel.controller import configs

        return configs.apply_topic_settings(image, self.config, name, settings)

    def describe_configs(self, request: DescribeConfigsRequest, image: ClusterImage) -> DescribeConfigsResponse:
        from logkernel.controller import configs

        return configs.describe_configs(request, image, self.config, self.node_id)

    def dynamic_config(self, image: ClusterImage) -> BrokerConfig:
        """The settings in force: those of the files, with the dynamic ones of this broker and of all brokers."""
        return self.config.with_dynamic(image.broker_config(self.node_id), image.broker_config(""))

    # producer ids

    def allocate_producer_ids(self, image: ClusterImage) -> ControllerResult:
        """Take a block of ids. The response is its `range`, which is this broker's once the changes are committed."""
        changes, block = producers.allocate_producer_ids(image)
        return ControllerResult(changes, block, Effects())

    # leaders

    def elect(
        self,
        image: ClusterImage,
        topic: str,
        strategy: ElectionStrategy,
        alive: Collection[int],
        *,
        unclean_allowed: bool = False,
        offline: election_rules.Offline = election_rules.nobody,
        leaving: Collection[int] = (),
    ) -> ControllerResult:
        return election_rules.elect(
            image, topic, strategy, alive, unclean_allowed=unclean_allowed, offline=offline, leaving=leaving
        )

    def broker_started(
        self,
        image: ClusterImage,
        broker: int,
        strategies: election_rules.Strategies,
        alive: Collection[int],
        *,
        offline: election_rules.Offline = election_rules.nobody,
        leaving: Collection[int] = (),
    ) -> ControllerResult:
        return election_rules.broker_started(image, broker, strategies, alive, offline, leaving)

    def broker_gone(
        self,
        image: ClusterImage,
        broker: int,
        strategies: election_rules.Strategies,
        alive: Collection[int],
        *,
        offline: election_rules.Offline = election_rules.nobody,
    ) -> ControllerResult:
        return election_rules.broker_gone(image, broker, strategies, alive, offline)
