"""Request → its guard. A request without one is refused: whoever adds a request says here what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.outcome import Outcome, Refused
from logkernel.errors import ClusterAuthorizationFailed

Guard = Callable[[Asking, Any], Outcome]

GUARDS: Final[Mapping[str, tuple[str, str]]] = {
    "ProduceRequest": ("produce_fetch", "produce"),
    "FetchRequest": ("produce_fetch", "fetch"),
    "ListOffsetsRequest": ("produce_fetch", "list_offsets"),
    "OffsetForLeaderEpochRequest": ("produce_fetch", "offset_for_leader_epoch"),
    "DeleteRecordsRequest": ("produce_fetch", "delete_records"),
    "MetadataRequest": ("cluster", "unguarded"),
    "DescribeClusterRequest": ("cluster", "unguarded"),
    "DescribeTopicPartitionsRequest": ("cluster", "unguarded"),
    "CreateTopicsRequest": ("topics", "create_topics"),
    "DeleteTopicsRequest": ("topics", "delete_topics"),
    "CreatePartitionsRequest": ("topics", "create_partitions"),
    "DescribeConfigsRequest": ("topics", "describe_configs"),
    "AlterConfigsRequest": ("topics", "alter_configs"),
    "IncrementalAlterConfigsRequest": ("topics", "incremental_alter_configs"),
    "ListConfigResourcesRequest": ("cluster", "describe_configs"),
    "DescribeAclsRequest": ("cluster", "describe"),
    "CreateAclsRequest": ("cluster", "alter"),
    "DeleteAclsRequest": ("cluster", "alter"),
    "DescribeUserScramCredentialsRequest": ("cluster", "describe_users"),
    "AlterUserScramCredentialsRequest": ("cluster", "alter"),
    "DescribeClientQuotasRequest": ("cluster", "describe_configs"),
    "AlterClientQuotasRequest": ("cluster", "alter_configs"),
    "SaslHandshakeRequest": ("cluster", "unguarded"),
    "SaslAuthenticateRequest": ("cluster", "unguarded"),
    "CreateDelegationTokenRequest": ("cluster", "unguarded"),
    "RenewDelegationTokenRequest": ("cluster", "unguarded"),
    "ExpireDelegationTokenRequest": ("cluster", "unguarded"),
    "DescribeDelegationTokenRequest": ("cluster", "unguarded"),
    "ElectLeadersRequest": ("cluster", "alter"),
    "AlterPartitionReassignmentsRequest": ("cluster", "alter"),
    "ListPartitionReassignmentsRequest": ("cluster", "describe"),
    "UpdateFeaturesRequest": ("cluster", "alter"),
    "DescribeQuorumRequest": ("cluster", "describe"),
    "UnregisterBrokerRequest": ("cluster", "alter"),
    "DescribeLogDirsRequest": ("cluster", "describe"),
    "AlterReplicaLogDirsRequest": ("cluster", "alter"),
    "UpdateMetadataRequest": ("cluster", "act"),
    "LeaderAndIsrRequest": ("cluster", "act"),
    "StopReplicaRequest": ("cluster", "act"),
    "AlterPartitionRequest": ("cluster", "act"),
    "AllocateProducerIdsRequest": ("cluster", "act"),
    "ControlledShutdownRequest": ("cluster", "act"),
    "FindCoordinatorRequest": ("groups", "find_coordinator"),
    "JoinGroupRequest": ("groups", "join_group"),
    "SyncGroupRequest": ("groups", "sync_group"),
    "HeartbeatRequest": ("groups", "heartbeat"),
    "LeaveGroupRequest": ("groups", "leave_group"),
    "OffsetCommitRequest": ("groups", "offset_commit"),
    "OffsetFetchRequest": ("groups", "offset_fetch"),
    "OffsetDeleteRequest": ("groups", "offset_delete"),
    "DescribeGroupsRequest": ("groups", "describe_groups"),
    "ListGroupsRequest": ("groups", "list_groups"),
    "DeleteGroupsRequest": ("groups", "delete_groups"),
    "ConsumerGroupHeartbeatRequest": ("groups", "consumer_group_heartbeat"),
    "ConsumerGroupDescribeRequest": ("groups", "consumer_group_describe"),
    "ShareGroupHeartbeatRequest": ("shares", "share_group_heartbeat"),
    "ShareGroupDescribeRequest": ("shares", "share_group_describe"),
    "ShareFetchRequest": ("shares", "share_fetch"),
    "ShareAcknowledgeRequest": ("shares", "share_acknowledge"),
    "DescribeShareGroupOffsetsRequest": ("shares", "describe_share_group_offsets"),
    "AlterShareGroupOffsetsRequest": ("shares", "alter_share_group_offsets"),
    "DeleteShareGroupOffsetsRequest": ("shares", "delete_share_group_offsets"),
    "StreamsGroupHeartbeatRequest": ("streams", "streams_group_heartbeat"),
    "StreamsGroupDescribeRequest": ("streams", "streams_group_describe"),
    "ForgetShareRequest": ("cluster", "act"),
    "InitializeShareGroupStateRequest": ("cluster", "act"),
    "ReadShareGroupStateRequest": ("cluster", "act"),
    "WriteShareGroupStateRequest": ("cluster", "act"),
    "DeleteShareGroupStateRequest": ("cluster", "act"),
    "ReadShareGroupStateSummaryRequest": ("cluster", "act"),
    "InitProducerIdRequest": ("transactions", "init_producer_id"),
    "AddPartitionsToTxnRequest": ("transactions", "add_partitions_to_txn"),
    "AddOffsetsToTxnRequest": ("transactions", "add_offsets_to_txn"),
    "EndTxnRequest": ("transactions", "end_txn"),
    "TxnOffsetCommitRequest": ("transactions", "txn_offset_commit"),
    "WriteTxnMarkersRequest": ("transactions", "write_txn_markers"),
    "DescribeProducersRequest": ("transactions", "describe_producers"),
    "DescribeTransactionsRequest": ("transactions", "describe_transactions"),
    "ListTransactionsRequest": ("transactions", "list_transactions"),
}
"""Request class → (module, function). A module is imported when a request of its family first comes."""

BY_BROKERS: Final = frozenset({"CreateTopicsRequest", "OffsetDeleteRequest"})
"""What a broker asks another for a client that was judged where it asked: to create topics that are missing, and to
delete a group's offsets before it becomes a share group. Besides, brokers ask what CLUSTER_ACTION allows."""


def guard_of(request: str) -> Guard:
    """The guard of a request class; for one without a row, a guard that refuses."""
    row = GUARDS.get(request)
    if row is None:
        return _refuse
    module, function = row
    found: Guard = getattr(import_module(f"logkernel.broker.authorization.{module}"), function)
    return found


def _refuse(asking: Asking, request: object) -> Outcome:
    return Refused(ClusterAuthorizationFailed)
