"""The table of contents: every API that is spoken here, with the versions that are advertised.

The versions are those of Apache Kafka 4.3. Files in `apis/` are loaded when their API is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final

from .api import NEVER, Api, Row

ROWS: Final = (
    Row(0, "Produce", 0, 13, 9, "data", "produce"),
    Row(1, "Fetch", 4, 18, 12, "data", "fetch"),
    Row(2, "ListOffsets", 1, 11, 6, "offsets", "list_offsets"),
    Row(3, "Metadata", 0, 13, 9, "cluster", "metadata"),
    Row(8, "OffsetCommit", 2, 10, 8, "groups", "offset_commit"),
    Row(9, "OffsetFetch", 1, 10, 6, "groups", "offset_fetch"),
    Row(10, "FindCoordinator", 0, 6, 3, "groups", "find_coordinator"),
    Row(11, "JoinGroup", 0, 9, 6, "groups", "join_group"),
    Row(12, "Heartbeat", 0, 4, 4, "groups", "heartbeat"),
    Row(13, "LeaveGroup", 0, 5, 4, "groups", "leave_group"),
    Row(14, "SyncGroup", 0, 5, 4, "groups", "sync_group"),
    Row(15, "DescribeGroups", 0, 6, 5, "groups", "describe_groups"),
    Row(16, "ListGroups", 0, 5, 3, "groups", "list_groups"),
    Row(18, "ApiVersions", 0, 4, 3, "cluster", "api_versions"),
    Row(19, "CreateTopics", 2, 7, 5, "topics", "create_topics"),
    Row(20, "DeleteTopics", 1, 6, 4, "topics", "delete_topics"),
    Row(21, "DeleteRecords", 0, 2, 2, "offsets", "delete_records"),
    Row(22, "InitProducerId", 0, 5, 2, "producers", "init_producer_id"),
    Row(23, "OffsetForLeaderEpoch", 2, 4, 4, "offsets", "offset_for_leader_epoch"),
    Row(32, "DescribeConfigs", 1, 4, 4, "configs", "describe_configs"),
    Row(33, "AlterConfigs", 0, 2, 2, "configs", "alter_configs"),
    Row(37, "CreatePartitions", 0, 3, 2, "topics", "create_partitions"),
    Row(42, "DeleteGroups", 0, 2, 2, "groups", "delete_groups"),
    Row(44, "IncrementalAlterConfigs", 0, 1, 1, "configs", "incremental_alter_configs"),
    Row(47, "OffsetDelete", 0, 0, NEVER, "groups", "offset_delete"),
    Row(60, "DescribeCluster", 0, 2, 0, "cluster", "describe_cluster"),
    Row(75, "DescribeTopicPartitions", 0, 0, 0, "cluster", "describe_topic_partitions"),
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
        module = import_module(f"{__package__}.apis.{row.snake}")
        kind: type[Api] = getattr(module, row.name)
        api = _loaded[key] = kind(row)
    return api


def advertised(served: Iterable[str]) -> list[Row]:
    """The rows whose requests a broker with `BrokerDoor.serves()` == `served` answers; ApiVersions always."""
    names = {*served, "ApiVersionsRequest"}
    return [row for row in ROWS if row.request_name in names]
