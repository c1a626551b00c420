"""The requests by which a controller commands brokers: each is built from its image, for one broker epoch."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from logkernel.controller.backlog import Name
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic
from logkernel.requests.replication import (
    BEING_DELETED,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    LiveLeader,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import PLAINTEXT, SECURITY_PROTOCOLS


class OrderRequests:
    """Builds requests in the name of one controller in one term. It reads `image` and `offline`, as they are then."""

    def __init__(
        self, controller_id: int, term: int, image: ClusterImage, offline: Mapping[Name, Collection[int]]
    ) -> None:
        self._controller_id = controller_id
        self._term = term
        self._image = image
        self._offline = offline

    def live_brokers(self, broker_epoch: int) -> UpdateMetadataRequest:
        return self._update_metadata(broker_epoch, [])

    def forget(self, broker_epoch: int, topics: Collection[Topic]) -> UpdateMetadataRequest:
        """The partitions of deleted topics, with a leader that says so."""
        return self._update_metadata(broker_epoch, [_forgetting(topic) for topic in topics])

    def partitions(self, broker_epoch: int, changed: Mapping[str, Collection[int]]) -> UpdateMetadataRequest:
        """What `changed` (topic → partitions) are now."""
        return self._update_metadata(broker_epoch, self._rows(changed))

    def _update_metadata(self, broker_epoch: int, topics: list[UpdateMetadataTopicState]) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self._controller_id,
            controller_epoch=self._term,
            broker_epoch=broker_epoch,
            topic_states=topics,
            live_brokers=[_live(node) for _, node in sorted(self._image.nodes.items())],
        )

    def _rows(self, changed: Mapping[str, Collection[int]]) -> list[UpdateMetadataTopicState]:
        found = []
        for name, indexes in changed.items():
            topic = self._image.topics[name]
            rows = [self._row(name, index, topic.partitions[index]) for index in sorted(indexes)]
            found.append(UpdateMetadataTopicState(name, topic.id, rows))
        return found

    def _row(self, topic: str, index: int, row: Partition) -> UpdateMetadataPartitionState:
        return UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=self._term,
            leader=row.leader,
            leader_epoch=row.leader_epoch,
            isr=list(row.isr),
            partition_epoch=row.partition_epoch,
            replicas=list(row.replicas),
            offline_replicas=sorted(self._offline.get((topic, index), ())),
        )

    def leader_and_isr(self, broker_epoch: int, ordered: Mapping[Name, bool]) -> LeaderAndIsrRequest:
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: dict[int, None] = {}
        for (name, index), is_new in ordered.items():
            topic = self._image.topics[name]
            row = topic.partitions[index]
            leaders[row.leader] = None
            state = topics.get(name)
            if state is None:
                state = topics[name] = LeaderAndIsrTopicState(name, topic.id)
            state.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=index,
                    controller_epoch=self._term,
                    leader=row.leader,
                    leader_epoch=row.leader_epoch,
                    isr=list(row.isr),
                    partition_epoch=row.partition_epoch,
                    replicas=list(row.replicas),
                    adding_replicas=list(row.adding),
                    removing_replicas=list(row.removing),
                    is_new=is_new,
                )
            )
        nodes = (self._image.nodes.get(leader) for leader in leaders)
        return LeaderAndIsrRequest(
            controller_id=self._controller_id,
            controller_epoch=self._term,
            broker_epoch=broker_epoch,
            topic_states=list(topics.values()),
            live_leaders=[_leader(node) for node in nodes if node is not None],
        )

    def stop_replica(self, broker_epoch: int, stops: Mapping[Name, int], *, delete: bool) -> StopReplicaRequest:
        topics: dict[str, StopReplicaTopicState] = {}
        for (name, index), leader_epoch in stops.items():
            state = topics.get(name)
            if state is None:
                state = topics[name] = StopReplicaTopicState(name)
            state.partition_states.append(StopReplicaPartitionState(index, leader_epoch, delete))
        return StopReplicaRequest(
            controller_id=self._controller_id,
            controller_epoch=self._term,
            broker_epoch=broker_epoch,
            topic_states=list(topics.values()),
        )


def _forgetting(topic: Topic) -> UpdateMetadataTopicState:
    rows = [
        UpdateMetadataPartitionState(
            partition_index=index, leader=BEING_DELETED, leader_epoch=row.leader_epoch, replicas=list(row.replicas)
        )
        for index, row in enumerate(topic.partitions)
    ]
    return UpdateMetadataTopicState(topic.name, topic.id, rows)


def _live(node: BrokerRegistration) -> UpdateMetadataBroker:
    endpoints = [
        UpdateMetadataEndpoint(port, host, name, SECURITY_PROTOCOLS.index(node.protocols.get(name, PLAINTEXT)))
        for name, (host, port) in node.listeners.items()
    ]
    return UpdateMetadataBroker(node.id, endpoints, node.rack)


def _leader(node: BrokerRegistration) -> LiveLeader:
    host, port = next(iter(node.listeners.values()), ("", 0))
    return LiveLeader(node.id, host, port)
