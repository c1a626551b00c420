"""The cluster: brokers, features, the quorum of controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import CONTROLLER, Ask, Plan, ask, at_brokers, row_error, values_or_raise
from logkernel.client.admin.topics import TopicDescription, topic_of
from logkernel.errors import ConfigError, UnsupportedVersion
from logkernel.requests.api_versions import ApiVersionsRequest
from logkernel.requests.cluster import DescribeClusterRequest, MetadataRequest
from logkernel.requests.quorum import (
    DescribeQuorumRequest,
    FeatureUpdateKey,
    PartitionData,
    TopicData,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from logkernel.vocabulary import AclOperation

METADATA_TOPIC: Final = "__cluster_metadata"
UPGRADES: Final = {"upgrade": 1, "safe-downgrade": 2, "unsafe-downgrade": 3}
TIMEOUT_MS: Final = 60_000


@frozen
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None
    fenced: bool = False


@mutable
class ClusterDescription:
    """`controller` is the id of the broker that acts as controller, -1 without one."""

    id: str
    controller: int
    brokers: list[Broker]
    authorized_operations: frozenset[AclOperation] | None = None
    """What this user may do with the cluster (KIP-430), if that was asked for and the broker says it; nothing, where he
    may not describe it."""


@mutable
class MetadataDescription:
    """What one broker knows of its cluster. `controller` is -1 if it knows of none; topics that it could not describe
    are left out."""

    cluster_id: str
    controller: int
    brokers: list[Broker]
    topics: dict[str, TopicDescription]


@frozen
class FeatureRange:
    """The supported levels of a feature, and the finalized one (0: disabled)."""

    name: str
    min_level: int
    max_level: int
    level: int


@frozen
class QuorumReplica:
    id: int
    directory_id: str
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


@mutable
class QuorumDescription:
    leader: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica] = field(factory=list)
    observers: list[QuorumReplica] = field(factory=list)


def describe_cluster(
    *, include_fenced: bool = False, include_authorized_operations: bool = False
) -> Plan[ClusterDescription]:
    """Return the cluster's id, controller and brokers."""
    asked = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations, include_fenced_brokers=include_fenced
    )
    (outcome,) = yield [Ask(asked)]
    if isinstance(outcome, UnsupportedVersion):
        found = yield from ask(MetadataRequest(topics=[], allow_auto_topic_creation=False))
        brokers = [Broker(row.node_id, row.host, row.port, row.rack) for row in found.brokers]
        return ClusterDescription(found.cluster_id or "", found.controller_id, brokers)
    if isinstance(outcome, Exception):
        raise outcome
    brokers = [Broker(row.broker_id, row.host, row.port, row.rack, row.is_fenced) for row in outcome.brokers]
    brokers.sort(key=lambda broker: broker.id)
    return ClusterDescription(
        outcome.cluster_id, outcome.controller_id, brokers, _operations(outcome.cluster_authorized_operations)
    )


def _operations(bits: int) -> frozenset[AclOperation] | None:
    """One for each bit; None for the smallest integer, which says that the broker was not asked."""
    return None if bits < 0 else frozenset(operation for operation in AclOperation if bits >> operation & 1)


def describe_metadata(broker: int) -> Plan[MetadataDescription]:
    """Return what this broker knows of the cluster and all its topics; another one may know other things for a moment.
    Raises `RequestTimedOut` if it does not answer."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    found = (yield from at_brokers(request, [broker]))[broker]
    brokers = sorted(
        (Broker(row.node_id, row.host, row.port, row.rack) for row in found.brokers), key=lambda row: row.id
    )
    topics = {row.name: topic_of(row, row.partitions) for row in found.topics if row.name and not row.error_code}
    return MetadataDescription(found.cluster_id or "", found.controller_id, brokers, topics)


def describe_features() -> Plan[dict[str, FeatureRange]]:
    """Return the features by name, as one of the brokers reports them (KIP-584)."""
    response = yield from ask(ApiVersionsRequest("logkernel", "1"))
    levels = {row.name: row.max_version_level for row in response.finalized_features}
    rows = sorted(response.supported_features, key=lambda row: str(row.name))
    return {row.name: FeatureRange(row.name, row.min_version, row.max_version, levels.get(row.name, 0)) for row in rows}


def update_features(
    levels: Mapping[str, int], *, upgrade_type: str = "upgrade", validate_only: bool = False
) -> Plan[None]:
    """Set the levels of features; 0 disables one. `upgrade_type` is one of `UPGRADES` (KIP-584).

    Raises `InvalidUpdateVersion`, `FeatureUpdateFailed`.
    """
    if upgrade_type not in UPGRADES:
        raise ConfigError(f"upgrade_type={upgrade_type!r} is not known; use one of {', '.join(UPGRADES)}")
    code = UPGRADES[upgrade_type]
    rows = [FeatureUpdateKey(name, level, code, code != 1) for name, level in levels.items()]
    response = yield from ask(UpdateFeaturesRequest(TIMEOUT_MS, rows, validate_only), CONTROLLER)
    values_or_raise({row.feature: row_error(row, row.feature) or True for row in response.results})


def describe_quorum() -> Plan[QuorumDescription]:
    """Return the metadata quorum. Raises `UnsupportedVersion` if the cluster has none, like logkernel's."""
    request = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])
    response = yield from ask(request)
    row = response.topics[0].partitions[0]
    error = row_error(row, METADATA_TOPIC)
    if error is not None:
        raise error
    return QuorumDescription(
        row.leader_id,
        row.leader_epoch,
        row.high_watermark,
        [_replica(voter) for voter in row.current_voters],
        [_replica(observer) for observer in row.observers],
    )


def _replica(row: Any) -> QuorumReplica:
    return QuorumReplica(
        row.replica_id,
        str(row.replica_directory_id),
        row.log_end_offset,
        row.last_fetch_timestamp,
        row.last_caught_up_timestamp,
    )


def unregister_broker(broker: int) -> Plan[None]:
    """Remove a stopped broker from the cluster. Raises `BrokerIdNotRegistered`, `InvalidRequest`."""
    yield from ask(UnregisterBrokerRequest(broker), CONTROLLER)
