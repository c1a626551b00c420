"""Versionless requests and responses by which brokers command and follow one another.

    sender                request                                  to
    controller            UpdateMetadata, LeaderAndIsr, StopReplica  every broker, itself included
    leader                AlterPartition                           the controller
    broker                AllocateProducerIds, ControlledShutdown  the controller

Their fields are those of Kafka 3.9 in ZooKeeper mode: LeaderAndIsr 7, UpdateMetadata 8, StopReplica 4, AlterPartition
3, ControlledShutdown 3, AllocateProducerIds 0. A follower fetches by the `FetchRequest` of `data`. They are obeyed only
where they come over a listener by which brokers command (`RequestContext.commands`).
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID

BEING_DELETED: Final = -2
"""The leader in UpdateMetadata, and the leader epoch in StopReplica, of a partition whose topic is deleted."""

# ---------------------------------------------------------------- LeaderAndIsr


@mutable
class LeaderAndIsrPartitionState:
    partition_index: int = 0
    controller_epoch: int = 0
    leader: int = -1
    leader_epoch: int = 0
    isr: list[int] = field(factory=list)
    partition_epoch: int = 0
    replicas: list[int] = field(factory=list)
    adding_replicas: list[int] = field(factory=list)
    removing_replicas: list[int] = field(factory=list)
    is_new: bool = False
    """The partition was made just now: its replicas begin with empty logs."""
    leader_recovery_state: int = 0


@mutable
class LeaderAndIsrTopicState:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partition_states: list[LeaderAndIsrPartitionState] = field(factory=list)


@mutable
class LiveLeader:
    broker_id: int = -1
    host_name: str = ""
    port: int = 0


@mutable
class LeaderAndIsrRequest:
    """LeaderAndIsrRequest (API key 4): who leads the partitions that the receiver holds, and who follows."""

    controller_id: int = -1
    controller_epoch: int = 0
    broker_epoch: int = -1
    """The receiver's, as the controller knows it (KIP-380)."""
    type: int = 0
    topic_states: list[LeaderAndIsrTopicState] = field(factory=list)
    live_leaders: list[LiveLeader] = field(factory=list)
    is_kraft_controller: bool = False
    """Of a controller that migrates the cluster to KRaft (KIP-866)."""


@mutable
class LeaderAndIsrPartitionError:
    partition_index: int = 0
    error_code: int = 0


@mutable
class LeaderAndIsrTopicError:
    topic_id: UUID = NO_ID
    partition_errors: list[LeaderAndIsrPartitionError] = field(factory=list)


@mutable
class LeaderAndIsrResponse:
    """LeaderAndIsrResponse (API key 4), versionless."""

    error_code: int = 0
    topics: list[LeaderAndIsrTopicError] = field(factory=list)


# ---------------------------------------------------------------- UpdateMetadata


@mutable
class UpdateMetadataPartitionState:
    partition_index: int = 0
    controller_epoch: int = 0
    leader: int = -1
    """-2: the partition is being deleted."""
    leader_epoch: int = 0
    isr: list[int] = field(factory=list)
    partition_epoch: int = 0
    replicas: list[int] = field(factory=list)
    offline_replicas: list[int] = field(factory=list)


@mutable
class UpdateMetadataTopicState:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partition_states: list[UpdateMetadataPartitionState] = field(factory=list)


@mutable
class UpdateMetadataEndpoint:
    port: int = 0
    host: str = ""
    listener: str = ""
    security_protocol: int = 0


@mutable
class UpdateMetadataBroker:
    id: int = -1
    endpoints: list[UpdateMetadataEndpoint] = field(factory=list)
    rack: str | None = None


@mutable
class UpdateMetadataRequest:
    """UpdateMetadataRequest (API key 6): who is alive, and what a broker tells its clients of partitions."""

    controller_id: int = -1
    controller_epoch: int = 0
    broker_epoch: int = -1
    topic_states: list[UpdateMetadataTopicState] = field(factory=list)
    live_brokers: list[UpdateMetadataBroker] = field(factory=list)
    is_kraft_controller: bool = False
    type: int = 0
    """2: names every topic, 1: those that changed, 0: not said."""


@mutable
class UpdateMetadataResponse:
    """UpdateMetadataResponse (API key 6), versionless."""

    error_code: int = 0


# ---------------------------------------------------------------- StopReplica


@mutable
class StopReplicaPartitionState:
    partition_index: int = 0
    leader_epoch: int = -1
    """-2 where the topic is being deleted: it is newer than any."""
    delete_partition: bool = False


@mutable
class StopReplicaTopicState:
    topic_name: str = ""
    partition_states: list[StopReplicaPartitionState] = field(factory=list)


@mutable
class StopReplicaRequest:
    """StopReplicaRequest (API key 5): give partitions up, with their records or without."""

    controller_id: int = -1
    controller_epoch: int = 0
    broker_epoch: int = -1
    topic_states: list[StopReplicaTopicState] = field(factory=list)
    is_kraft_controller: bool = False


@mutable
class StopReplicaPartitionError:
    topic_name: str = ""
    partition_index: int = 0
    error_code: int = 0


@mutable
class StopReplicaResponse:
    """StopReplicaResponse (API key 5), versionless."""

    error_code: int = 0
    partition_errors: list[StopReplicaPartitionError] = field(factory=list)


Order = UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest
"""What a controller sends."""

# ---------------------------------------------------------------- AlterPartition


@mutable
class BrokerState:
    broker_id: int = -1
    broker_epoch: int = -1


@mutable
class AlterPartitionPartition:
    partition_index: int = 0
    leader_epoch: int = 0
    new_isr_with_epochs: list[BrokerState] = field(factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0
    new_isr: list[int] = field(factory=list)
    """On the wire of version 2 alone, in place of `new_isr_with_epochs`."""


@mutable
class AlterPartitionTopic:
    topic_id: UUID = NO_ID
    partitions: list[AlterPartitionPartition] = field(factory=list)


@mutable
class AlterPartitionRequest:
    """AlterPartitionRequest (API key 56): leaders propose in-sync replicas (KIP-497)."""

    broker_id: int = -1
    broker_epoch: int = -1
    topics: list[AlterPartitionTopic] = field(factory=list)


@mutable
class AlterPartitionPartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: list[int] = field(factory=list)
    leader_recovery_state: int = 0
    partition_epoch: int = 0


@mutable
class AlterPartitionTopicResponse:
    topic_id: UUID = NO_ID
    partitions: list[AlterPartitionPartitionResponse] = field(factory=list)


@mutable
class AlterPartitionResponse:
    """AlterPartitionResponse (API key 56), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    topics: list[AlterPartitionTopicResponse] = field(factory=list)


# ---------------------------------------------------------------- AllocateProducerIds, ControlledShutdown


@mutable
class AllocateProducerIdsRequest:
    """AllocateProducerIdsRequest (API key 67): a block of producer ids for a broker (KIP-730)."""

    broker_id: int = -1
    broker_epoch: int = -1


@mutable
class AllocateProducerIdsResponse:
    """AllocateProducerIdsResponse (API key 67), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0


@mutable
class ControlledShutdownRequest:
    """ControlledShutdownRequest (API key 7): a broker is about to stop; lead its partitions elsewhere."""

    broker_id: int = -1
    broker_epoch: int = -1


@mutable
class RemainingPartition:
    topic_name: str = ""
    partition_index: int = 0


@mutable
class ControlledShutdownResponse:
    """ControlledShutdownResponse (API key 7): `remaining_partitions` are led by that broker still."""

    error_code: int = 0
    remaining_partitions: list[RemainingPartition] = field(factory=list)
