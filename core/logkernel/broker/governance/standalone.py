"""A broker that stands alone: its own controller, whose decisions it carries out at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from logkernel.broker.cluster_view import LiveClusterView
from logkernel.broker.governance.configured_topics import ConfiguredTopics
from logkernel.broker.governance.governance import Forward, Parts
from logkernel.broker.governance.missing_plugins import tell_missing
from logkernel.contracts import RequestContext
from logkernel.controller.effects import ControllerResult, Effects, Spend
from logkernel.controller.image import ClusterImage, Topic
from logkernel.errors import ClusterAuthorizationFailed, KafkaError
from logkernel.requests.replication import Order
from logkernel.storage.directories import LogAbsent
from logkernel.vocabulary import IsrProposal, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.controller.active import ActiveController
    from logkernel.broker.governance.leader_orders import LeaderOrders
    from logkernel.broker.received_metadata import ReceivedMetadata
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.requests.placement import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ElectLeadersRequest,
        ElectLeadersResponse,
    )

log = logging.getLogger("logkernel.admin")

NO_LISTENERS: Final[frozenset[str]] = frozenset()


class Standalone:
    """`Governance` of one broker."""

    is_shared = False
    is_controller = True
    forward: Forward | None = None
    command_listeners = NO_LISTENERS

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._metadata = metadata = parts.metadata
        self.view = LiveClusterView(parts.runtime, metadata, parts.replicas, parts.addresses, metadata.next_producer_id)

    # ------------------------------------------------------------ life

    def open(self) -> None:
        runtime, _, logs, metadata, replicas, *_ = self._parts
        logs.open()
        if logs.coordination_name == "local":
            logs.note_member(False)
        metadata.load(logs.coordination_name, logs.open_metadata_log, logs.cluster_id)
        logs.load(metadata.topic_settings, metadata.image.gone, replicas.segment_rolled)
        for name in metadata.adopt(logs.topic_ids()):
            log.info("log of a deleted topic removed: partition=%s", name)
            logs.remove(name)
        metadata.reserve_producer_ids(logs.largest_producer_id())
        tell_missing(runtime.kernel, {topic: metadata.topic_settings(topic) for topic in metadata.image.topics})
        if not logs.ended_well:
            self.commit(metadata.new_incarnation())
        for topic in metadata.image.topics:
            self._open_partitions(topic)
        logs.all_loaded()
        metadata.compact()
        ConfiguredTopics(metadata.controller, lambda: metadata.image, self.commit).apply(runtime.config.topics)

    def join(self) -> None:
        """Does nothing: there is no cluster to join."""

    def is_ready(self, brokers: int) -> bool:
        return True

    def leave(self, done: Callable[[], None]) -> None:
        done()

    def close(self) -> None:
        """Does nothing: there is no controller to notify."""

    def abandon(self) -> None:
        """Does nothing: there is no cluster to leave."""

    # ------------------------------------------------------------ decisions

    @property
    def image(self) -> ClusterImage:
        return self._metadata.image

    def commit(self, result: ControllerResult) -> Any:
        self._carry_out(self._metadata.commit(result))
        return result.response

    def when_confirmed(self, work: Callable[[], None], timeout_ms: int) -> None:
        work()

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        from logkernel.controller import leaders

        return leaders.elect_leaders(request, self.image, self._parts.replicas.is_offline)

    def alter_reassignments(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        from logkernel.controller import leaders

        brokers = sorted({self._parts.runtime.node_id, *self.image.nodes})
        return leaders.alter_reassignments(request, self.image, brokers)

    def create_internal(self, name: str, partitions: int = -1) -> None:
        self.commit(self._metadata.controller.create_internal(name, self.image, partitions))

    def auto_create(self, name: str, spend: Spend) -> None:
        topic: Topic = self.commit(self._metadata.controller.auto_create(name, self.image))
        spend(len(topic.partitions))

    def when_known(self, work: Callable[[], None], timeout_ms: int) -> None:
        work()

    def knows_settings(
        self, topics: Iterable[str], again: Callable[[], None], refused: Callable[[KafkaError], None]
    ) -> bool:
        return True

    # ------------------------------------------------------------ carried out

    def _carry_out(self, effects: Effects) -> None:
        """In the order of the fields of `Effects`."""
        for topic, _ in effects.deleted:
            self._parts.events.on_deletion(topic)
        for topic in effects.created:
            self._open_partitions(topic)
        for topic, first in effects.grown:
            self._open_partitions(topic, first)
        self._parts.events.on_effects(effects)

    def _open_partitions(self, topic: str, first: int = 0) -> None:
        """Have the logs of a topic's partitions from `first` on, and lead those that are assigned here."""
        logs, replicas, node = self._parts.logs, self._parts.replicas, self._parts.runtime.node_id
        row, settings = self.image.topics[topic], self._metadata.topic_settings(topic)
        for index, partition in enumerate(row.partitions[first:], first):
            name = TopicPartition(topic, index)
            if node not in partition.replicas or name in replicas.led:
                continue
            obtain = partial(logs.obtain, name, row.id)
            found = obtain()
            if isinstance(found, LogAbsent):
                replicas.never_came(name, found, obtain)
            elif partition.leader == node:
                producers, noted = logs.producers_of(name), logs.noted_watermark(name)
                replicas.lead(name, row.id, partition, settings, found, producers, noted)

    # ------------------------------------------------------------ what only a cluster has

    @property
    def active(self) -> ActiveController:
        raise ClusterAuthorizationFailed("this broker stands alone, and is nobody's controller")

    @property
    def orders(self) -> LeaderOrders:
        raise ClusterAuthorizationFailed("this broker stands alone, and takes no orders")

    def admit(self, order: Order, context: RequestContext) -> ReceivedMetadata:
        raise ClusterAuthorizationFailed("this broker stands alone, and takes no orders")

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        """Nobody follows, so nothing is proposed."""

    def role_changed(self, name: TopicPartition) -> None:
        """A shard stays here, whatever becomes of its partition."""

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        for topic in {name.topic for name in names}:
            if topic in self.image.topics:
                self._open_partitions(topic)

    def log_dir_failed(self) -> None:
        """Nobody else could lead."""
