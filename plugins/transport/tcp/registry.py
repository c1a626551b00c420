"""The table of contents: every API that is spoken here, with the versions that are advertised.

The versions are those of Apache Kafka 4.3, and those of 3.9 where brokers command one another with ZooKeeper (4 to 7,
56, 67). Files in `apis/` are loaded when their API is first asked for.
"""

from __future__ import annotations

from typing import Final

from .api import NEVER, Api, Row
from .loading import load_module

ROWS: Final = (
    Row(0, "Produce", 0, 13, 9, "data", "produce"),
    Row(1, "Fetch", 4, 18, 12, "data", "fetch"),
    Row(2, "ListOffsets", 1, 11, 6, "offsets", "list_offsets"),
    Row(3, "Metadata", 0, 13, 9, "cluster", "metadata"),
    Row(4, "LeaderAndIsr", 7, 7, 4, "replication", "leader_and_isr"),
    Row(5, "StopReplica", 4, 4, 2, "replication", "stop_replica"),
    Row(6, "UpdateMetadata", 8, 8, 6, "replication", "update_metadata"),
    Row(7, "ControlledShutdown", 3, 3, 3, "replication", "controlled_shutdown"),
    Row(8, "OffsetCommit", 2, 10, 8, "groups", "offset_commit"),
    Row(9, "OffsetFetch", 1, 10, 6, "groups", "offset_fetch"),
    Row(10, "FindCoordinator", 0, 6, 3, "groups", "find_coordinator"),
    Row(11, "JoinGroup", 0, 9, 6, "groups", "join_group"),
    Row(12, "Heartbeat", 0, 4, 4, "groups", "heartbeat"),
    Row(13, "LeaveGroup", 0, 5, 4, "groups", "leave_group"),
    Row(14, "SyncGroup", 0, 5, 4, "groups", "sync_group"),
    Row(15, "DescribeGroups", 0, 6, 5, "groups", "describe_groups"),
    Row(16, "ListGroups", 0, 5, 3, "groups", "list_groups"),
    Row(17, "SaslHandshake", 0, 1, NEVER, "access", "sasl_handshake"),
    Row(18, "ApiVersions", 0, 4, 3, "api_versions", "api_versions"),
    Row(19, "CreateTopics", 2, 7, 5, "topics", "create_topics"),
    Row(20, "DeleteTopics", 1, 6, 4, "topics", "delete_topics"),
    Row(21, "DeleteRecords", 0, 2, 2, "offsets", "delete_records"),
    Row(22, "InitProducerId", 0, 5, 2, "producers", "init_producer_id"),
    Row(23, "OffsetForLeaderEpoch", 2, 4, 4, "offsets", "offset_for_leader_epoch"),
    Row(24, "AddPartitionsToTxn", 0, 5, 3, "transactions", "add_partitions_to_txn"),
    Row(25, "AddOffsetsToTxn", 0, 4, 3, "transactions", "add_offsets_to_txn"),
    Row(26, "EndTxn", 0, 5, 3, "transactions", "end_txn"),
    Row(27, "WriteTxnMarkers", 1, 2, 1, "transactions", "write_txn_markers"),
    Row(28, "TxnOffsetCommit", 0, 5, 3, "transactions", "txn_offset_commit"),
    Row(29, "DescribeAcls", 1, 3, 2, "access", "describe_acls"),
    Row(30, "CreateAcls", 1, 3, 2, "access", "create_acls"),
    Row(31, "DeleteAcls", 1, 3, 2, "access", "delete_acls"),
    Row(32, "DescribeConfigs", 1, 4, 4, "configs", "describe_configs"),
    Row(33, "AlterConfigs", 0, 2, 2, "configs", "alter_configs"),
    Row(34, "AlterReplicaLogDirs", 1, 2, 2, "placement", "alter_replica_log_dirs"),
    Row(35, "DescribeLogDirs", 1, 5, 2, "placement", "describe_log_dirs"),
    Row(36, "SaslAuthenticate", 0, 2, 2, "access", "sasl_authenticate"),
    Row(37, "CreatePartitions", 0, 3, 2, "topics", "create_partitions"),
    Row(38, "CreateDelegationToken", 1, 3, 2, "access", "create_delegation_token"),
    Row(39, "RenewDelegationToken", 1, 2, 2, "access", "renew_delegation_token"),
    Row(40, "ExpireDelegationToken", 1, 2, 2, "access", "expire_delegation_token"),
    Row(41, "DescribeDelegationToken", 1, 3, 2, "access", "describe_delegation_token"),
    Row(42, "DeleteGroups", 0, 2, 2, "groups", "delete_groups"),
    Row(43, "ElectLeaders", 0, 2, 2, "placement", "elect_leaders"),
    Row(44, "IncrementalAlterConfigs", 0, 1, 1, "configs", "incremental_alter_configs"),
    Row(45, "AlterPartitionReassignments", 0, 1, 0, "placement", "alter_partition_reassignments"),
    Row(46, "ListPartitionReassignments", 0, 0, 0, "placement", "list_partition_reassignments"),
    Row(47, "OffsetDelete", 0, 0, NEVER, "groups", "offset_delete"),
    Row(48, "DescribeClientQuotas", 0, 1, 1, "access", "describe_client_quotas"),
    Row(49, "AlterClientQuotas", 0, 1, 1, "access", "alter_client_quotas"),
    Row(50, "DescribeUserScramCredentials", 0, 0, 0, "access", "describe_user_scram_credentials"),
    Row(51, "AlterUserScramCredentials", 0, 0, 0, "access", "alter_user_scram_credentials"),
    Row(55, "DescribeQuorum", 0, 2, 0, "quorum", "describe_quorum"),
    Row(56, "AlterPartition", 2, 3, 0, "replication", "alter_partition"),
    Row(57, "UpdateFeatures", 0, 2, 0, "quorum", "update_features"),
    Row(60, "DescribeCluster", 0, 2, 0, "cluster", "describe_cluster"),
    Row(61, "DescribeProducers", 0, 0, 0, "transactions", "describe_producers"),
    Row(64, "UnregisterBroker", 0, 0, 0, "quorum", "unregister_broker"),
    Row(65, "DescribeTransactions", 0, 0, 0, "transactions", "describe_transactions"),
    Row(66, "ListTransactions", 0, 2, 0, "transactions", "list_transactions"),
    Row(67, "AllocateProducerIds", 0, 0, 0, "replication", "allocate_producer_ids"),
    Row(68, "ConsumerGroupHeartbeat", 0, 1, 0, "consumer_groups", "consumer_group_heartbeat"),
    Row(69, "ConsumerGroupDescribe", 0, 1, 0, "consumer_groups", "consumer_group_describe"),
    Row(74, "ListConfigResources", 0, 1, 0, "configs", "list_config_resources"),
    Row(75, "DescribeTopicPartitions", 0, 0, 0, "cluster", "describe_topic_partitions"),
    Row(76, "ShareGroupHeartbeat", 1, 1, 1, "share_groups", "share_group_heartbeat"),
    Row(77, "ShareGroupDescribe", 1, 1, 1, "share_groups", "share_group_describe"),
    Row(78, "ShareFetch", 1, 2, 1, "share_delivery", "share_fetch"),
    Row(79, "ShareAcknowledge", 1, 2, 1, "share_delivery", "share_acknowledge"),
    Row(83, "InitializeShareGroupState", 0, 0, 0, "share_state", "initialize_share_group_state"),
    Row(84, "ReadShareGroupState", 0, 0, 0, "share_state", "read_share_group_state"),
    Row(85, "WriteShareGroupState", 0, 1, 0, "share_state", "write_share_group_state"),
    Row(86, "DeleteShareGroupState", 0, 0, 0, "share_state", "delete_share_group_state"),
    Row(87, "ReadShareGroupStateSummary", 0, 1, 0, "share_state", "read_share_group_state_summary"),
    Row(88, "StreamsGroupHeartbeat", 0, 0, 0, "streams_groups", "streams_group_heartbeat"),
    Row(89, "StreamsGroupDescribe", 0, 0, 0, "streams_groups", "streams_group_describe"),
    Row(90, "DescribeShareGroupOffsets", 0, 1, 0, "share_offsets", "describe_share_group_offsets"),
    Row(91, "AlterShareGroupOffsets", 0, 0, 0, "share_offsets", "alter_share_group_offsets"),
    Row(92, "DeleteShareGroupOffsets", 0, 0, 0, "share_offsets", "delete_share_group_offsets"),
)

BY_KEY: Final = {row.key: row for row in ROWS}
BY_REQUEST: Final = {row.request_name: row for row in ROWS}
API_VERSIONS_KEY: Final = 18

_loaded: dict[int, Api] = {}


def load(key: int) -> Api:
    """The API with this key. Raises `KeyError` where there is none."""
    api = _loaded.get(key)
    if api is None:
        row = BY_KEY[key]
        module = load_module(f"{__package__}.apis.{row.snake}")
        kind: type[Api] = getattr(module, row.name)
        api = _loaded[key] = kind(row)
    return api
