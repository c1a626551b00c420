"""Groups of consumers, of both protocols, and of Kafka Streams, and their committed offsets, as a service.

The parts, from the bytes up:

    records       the bytes of __consumer_offsets
    state         one classic group: its states, their transitions, its members
    timers        deadlines as data
    coordinator   all groups of one partition of __consumer_offsets, and the decision being built
    rebalance     from a change of members to the next generation
    joining       JoinGroup
    members       SyncGroup, Heartbeat, LeaveGroup
    offsets       OffsetCommit, OffsetFetch, OffsetDelete, expiry of offsets
    transactions  TxnOffsetCommit, and offsets of open transactions
    offset_key_cache  finds the offset that a record belongs to, by its key
    loading       applies many records at once; columns of a batch compiled (_folding) or in Python (pure_folding)
    listing       DescribeGroups, ListGroups, DeleteGroups
    by_epochs     what the next two share: members that are led to a target, and the epochs that guard what they say
    consumer      groups of the protocol of KIP-848, and members of one protocol in groups of the other
    streams       groups of Kafka Streams, by the protocol of KIP-1071
    machine       `contracts.ServiceMachine`: dispatch, replay, timers
    service       `contracts.Service`: shards, splitting and joining of requests, FindCoordinator
    declared      the settings of brokers and groups
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from logkernel.config.definitions import Setting
from logkernel.contracts import ClusterView, Service, ServiceDeclaration, Settings
from logkernel.hookspecs import hookimpl

from .. import offsets_topic

DECLARATION: Final = ServiceDeclaration(
    name="groups",
    asks_all=("ListGroupsRequest",),
    requests=(
        "FindCoordinatorRequest",
        "JoinGroupRequest",
        "SyncGroupRequest",
        "HeartbeatRequest",
        "LeaveGroupRequest",
        "OffsetCommitRequest",
        "OffsetFetchRequest",
        "OffsetDeleteRequest",
        "DescribeGroupsRequest",
        "ListGroupsRequest",
        "DeleteGroupsRequest",
        "TxnOffsetCommitRequest",
        "ConsumerGroupHeartbeatRequest",
        "ConsumerGroupDescribeRequest",
        "StreamsGroupHeartbeatRequest",
        "StreamsGroupDescribeRequest",
    ),
    topic=offsets_topic.TOPIC,
    features={"group.version": (0, 1, 1), "streams.version": (0, 1, 1)},
)


@hookimpl
def logkernel_services() -> Iterable[ServiceDeclaration]:
    return [DECLARATION]


@hookimpl
def logkernel_service(name: str, settings: Settings, cluster: ClusterView) -> Service | None:
    if name != "groups":
        return None
    from .service import GroupsService
    from .settings import GroupSettings

    return GroupsService(GroupSettings.read(settings), cluster)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("service", "groups")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    from .declared import SETTINGS

    return SETTINGS
