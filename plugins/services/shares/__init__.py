"""Share groups (KIP-932) as three services, which communicate by requests only.

share-groups       members, target assignment, offsets administration; records in __consumer_offsets
share-state        the durable state of each share-partition; records in __share_group_state
share-partitions   the locks on records; soft state, read from share-state; data by Fetch

ShareGroupHeartbeat ──▶ share-groups ──Initialize, Delete, Summary──▶ share-state
                            │ ForgetShare                                 ▲ Read, Write
ShareFetch, ShareAcknowledge ──▶ share-partitions ──Fetch, ListOffsets──▶ the broker
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.config.definitions import Setting
from logkernel.contracts import Service, ServiceDeclaration, ServiceTopic
from logkernel.hookspecs import hookimpl

from .. import offsets_topic

GROUPS: Final = ServiceDeclaration(
    name="share-groups",
    asks_all=("ListGroupsRequest",),
    requests=(
        "ShareGroupHeartbeatRequest",
        "ShareGroupDescribeRequest",
        "DescribeShareGroupOffsetsRequest",
        "AlterShareGroupOffsetsRequest",
        "DeleteShareGroupOffsetsRequest",
    ),
    topic=offsets_topic.TOPIC,
    features={"share.version": (0, 1, 1)},
    extends=("FindCoordinatorRequest", "ListGroupsRequest", "DeleteGroupsRequest"),
)
STATE: Final = ServiceDeclaration(
    name="share-state",
    requests=(
        "InitializeShareGroupStateRequest",
        "ReadShareGroupStateRequest",
        "WriteShareGroupStateRequest",
        "DeleteShareGroupStateRequest",
        "ReadShareGroupStateSummaryRequest",
    ),
    topic=ServiceTopic(
        name="__share_group_state",
        partitions_setting="share.coordinator.state.topic.num.partitions",
        config={
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "retention.ms": "-1",
        },
        replication_setting="share.coordinator.state.topic.replication.factor",
        config_settings={
            "segment.bytes": "share.coordinator.state.topic.segment.bytes",
            "min.insync.replicas": "share.coordinator.state.topic.min.isr",
        },
    ),
)
PARTITIONS: Final = ServiceDeclaration(
    name="share-partitions", requests=("ShareFetchRequest", "ShareAcknowledgeRequest", "ForgetShareRequest")
)


@hookimpl
def logkernel_services() -> Iterable[ServiceDeclaration]:
    return [GROUPS, STATE, PARTITIONS]


@hookimpl
def logkernel_service(name: str, settings: Mapping[str, Any], cluster: Any) -> Service | None:
    if name == GROUPS.name:
        from .members.service import ShareGroupsService

        return ShareGroupsService(settings, cluster)
    if name == STATE.name:
        from .state.service import ShareStateService

        return ShareStateService(settings, cluster)
    if name == PARTITIONS.name:
        from .partitions.service import SharePartitionsService

        return SharePartitionsService(settings, cluster)
    return None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("service", declaration.name) for declaration in (GROUPS, STATE, PARTITIONS)]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    from .declared import SETTINGS

    return SETTINGS
