"""Metadata, DescribeCluster and DescribeTopicPartitions: leaders, and the addresses of brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.names import check_name
from logkernel.errors import (
    InvalidTopicException,
    KafkaError,
    MismatchedEndpointType,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
)
from logkernel.requests.cluster import (
    Cursor,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.vocabulary import NO_ID, AclOperation, ResourceType

if TYPE_CHECKING:
    from logkernel.broker.authorization.asking import Asking
    from logkernel.broker.quotas.clients import Mutations

UNKNOWN_OPERATIONS = -2147483648
"""Authorized operations when they were not asked for (KIP-430)."""
TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
"""read, write, create, delete, alter, describe, describe_configs, alter_configs: all are allowed to everybody."""
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
BROKERS, CONTROLLERS = 1, 2
"""Types of endpoints that DescribeCluster may ask for (KIP-919)."""

NO_METADATA_MS: Final = 5_000
"""A broker that joined a cluster waits this long for its first UpdateMetadata before it answers Metadata without
brokers: a client that gets such an answer may not ask again for minutes."""


def metadata(ctx: HandlerContext, request: MetadataRequest, context: RequestContext, answer: Answer) -> None:
    ctx.governance.when_known(lambda: _metadata(ctx, request, context, answer), NO_METADATA_MS)


def _metadata(ctx: HandlerContext, request: MetadataRequest, context: RequestContext, answer: Answer) -> None:
    asking = ctx.asking(context, "MetadataRequest")
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in ctx.cluster.brokers(context.listener)
        ],
        cluster_id=ctx.cluster.id,
        controller_id=ctx.cluster.controller_id,
        cluster_authorized_operations=_cluster_operations(asking, request.include_cluster_authorized_operations),
    )
    if request.topics is None:
        names: list[tuple[str, UUID]] = [(name, NO_ID) for name in sorted(ctx.cluster.topics)]
    else:
        names = [_one_of_both(topic) for topic in request.topics]
    create = request.allow_auto_topic_creation and request.topics is not None
    refused: list[MetadataResponseTopic] = []
    if asking is not None:
        names, refused = _allowed(ctx, asking, names, every=request.topics is None, create=create)
    spend = _Spend(ctx, context)
    for name, topic_id in names:
        row = _topic(ctx, name, topic_id, spend, create=create)
        if request.include_topic_authorized_operations:
            row.topic_authorized_operations = _topic_operations(asking, row)
        response.topics.append(row)
    response.topics += refused
    response.throttle_time_ms = spend.hold_back()
    answer(response)


class _Spend:
    """What topics that a request creates cost its client: an older one is obeyed and held back, as where it asks by
    CreateTopics (KIP-599)."""

    def __init__(self, ctx: HandlerContext, context: RequestContext) -> None:
        self._ctx = ctx
        self._context = context
        self._quota: Mutations | None = None

    def __call__(self, partitions: int) -> None:
        quota = self._ctx.quotas.mutations(self._context) if partitions else None
        if quota is not None:
            quota.spend(partitions)
            self._quota = quota

    def hold_back(self) -> int:
        """Return for how many ms."""
        throttle_ms = 0 if self._quota is None else self._quota.throttle_ms(self._ctx.runtime.clock.mono_ms())
        if throttle_ms and self._context.mute is not None:
            self._context.mute(throttle_ms)
        return throttle_ms


def _one_of_both(topic: MetadataRequestTopic) -> tuple[str, UUID]:
    """A topic's name or its id, by which it is asked for where it has both: what is judged has to be what is told."""
    return ("", topic.topic_id) if topic.topic_id != NO_ID else (topic.name or "", NO_ID)


def _cluster_operations(asking: Asking | None, included: bool) -> int:
    if not included:
        return UNKNOWN_OPERATIONS
    return CLUSTER_OPERATIONS if asking is None else asking.cluster_operations()


def _topic_operations(asking: Asking | None, row: MetadataResponseTopic) -> int:
    """As in Kafka, an authorizer is asked about topics that are not there, too."""
    if asking is not None and row.name is not None:
        return asking.operations(ResourceType.TOPIC, row.name)
    return UNKNOWN_OPERATIONS if row.error_code or row.name is None else TOPIC_OPERATIONS


def _allowed(
    ctx: HandlerContext, asking: Asking, names: list[tuple[str, UUID]], *, every: bool, create: bool
) -> tuple[list[tuple[str, UUID]], list[MetadataResponseTopic]]:
    """Return the topics that the client may describe, and create where they are missing; and rows for the others. A row
    does not tell whether there is such a topic, nor the name of an id. Of `every` topic, others are left out."""
    named = [(asking.topic_name(name, topic_id), (name, topic_id)) for name, topic_id in names]
    asked = [name for name, _ in named if name is not None]
    seen = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, asked, told=not every)
    creatable = seen
    missing = [name for name in asked if name in seen and name not in ctx.cluster.topics]
    creates = create and missing and ctx.runtime.config.get("auto.create.topics.enable")
    if creates and not asking.may_cluster(AclOperation.CREATE, told=False):
        creatable = seen.difference(missing) | asking.those(AclOperation.CREATE, ResourceType.TOPIC, missing)
    kept = [row for name, row in named if name is None or name in creatable]
    refused = []
    for found, (name, topic_id) in named:
        if found is not None and found not in creatable and not every:
            row = MetadataResponseTopic(TopicAuthorizationFailed.code, name or None, topic_id=topic_id)
            row.is_internal = found in seen and ctx.cluster.is_internal(found)
            refused.append(row)
    return kept, refused


def _topic(
    ctx: HandlerContext, name: str, topic_id: UUID, spend: Callable[[int], None], *, create: bool
) -> MetadataResponseTopic:
    if topic_id != NO_ID:
        found = ctx.cluster.topic_name(topic_id)
        if found is None:
            return MetadataResponseTopic(error_code=UnknownTopicId.code, name=None, topic_id=topic_id)
        name = found
    try:
        topic = ctx.cluster.topics.get(name)
        if topic is None and create and ctx.runtime.config.get("auto.create.topics.enable"):
            ctx.governance.auto_create(name, spend)
            topic = ctx.cluster.topics.get(name)
        if topic is None:
            check_name(name)
            raise UnknownTopicOrPartition(name)
    except KafkaError as error:
        return MetadataResponseTopic(error_code=error.code, name=name)
    row = MetadataResponseTopic(name=name, topic_id=topic.id, is_internal=topic.internal)
    for index, partition in enumerate(topic.partitions):
        row.partitions.append(
            MetadataResponsePartition(
                error_code=ctx.cluster.leader_error(name, index, partition.leader),
                partition_index=index,
                leader_id=ctx.cluster.leader_for_clients(partition.leader),
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=ctx.cluster.offline_replicas(name, index, partition.replicas),
            )
        )
    return row


def describe_cluster(
    ctx: HandlerContext, request: DescribeClusterRequest, context: RequestContext, answer: Answer
) -> None:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        code = MismatchedEndpointType.code if known else UnsupportedEndpointType.code
        message = "there are no controllers to list; ask for brokers"
        answer(DescribeClusterResponse(endpoint_type=request.endpoint_type, error_code=code, error_message=message))
        return
    answer(
        DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=ctx.cluster.id,
            controller_id=ctx.cluster.controller_id,
            brokers=[
                DescribeClusterBroker(broker_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in ctx.cluster.brokers(context.listener)
            ],
            cluster_authorized_operations=_cluster_operations(
                ctx.asking(context, "DescribeClusterRequest"), request.include_cluster_authorized_operations
            ),
        )
    )


def describe_topic_partitions(
    ctx: HandlerContext, request: DescribeTopicPartitionsRequest, context: RequestContext, answer: Answer
) -> None:
    """Answer topics in order of name, up to a number of partitions; the cursor names the next one (KIP-966)."""
    response = DescribeTopicPartitionsResponse()
    cursor: Cursor | None = request.cursor
    names = sorted(topic.name for topic in request.topics) if request.topics else sorted(ctx.cluster.topics)
    asking, refused = ctx.asking(context, "DescribeTopicPartitionsRequest"), list[str]()
    if asking is not None:
        seen = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, names, told=bool(request.topics))
        refused = [name for name in names if name not in seen] if request.topics else []
        names = [name for name in names if name in seen]
    limit = int(ctx.runtime.config.get("max.request.partition.size.limit"))
    left = max(1, min(request.response_partition_limit, limit))
    for name in names:
        first = 0
        if cursor is not None:
            if name < cursor.topic_name:
                continue
            first = cursor.partition_index if name == cursor.topic_name else 0
        topic = ctx.cluster.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(ctx, name))
            if asking is not None:
                response.topics[-1].topic_authorized_operations = asking.operations(ResourceType.TOPIC, name)
            continue
        if left == 0:
            response.next_cursor = DescribeTopicPartitionsCursor(topic_name=name, partition_index=first)
            break
        row = DescribeTopicPartitionsResponseTopic(name=name, topic_id=topic.id, is_internal=topic.internal)
        row.topic_authorized_operations = (
            TOPIC_OPERATIONS if asking is None else asking.operations(ResourceType.TOPIC, name)
        )
        last = min(len(topic.partitions), first + left)
        for index in range(first, last):
            partition = topic.partitions[index]
            row.partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    error_code=ctx.cluster.leader_error(name, index, partition.leader),
                    partition_index=index,
                    leader_id=ctx.cluster.leader_for_clients(partition.leader),
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=list(partition.replicas),
                    isr_nodes=list(partition.isr),
                    eligible_leader_replicas=[],
                    last_known_elr=[],
                    offline_replicas=ctx.cluster.offline_replicas(name, index, partition.replicas),
                )
            )
        response.topics.append(row)
        left -= last - first
        if last < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsCursor(topic_name=name, partition_index=last)
            break
    response.topics += [
        DescribeTopicPartitionsResponseTopic(error_code=TopicAuthorizationFailed.code, name=name) for name in refused
    ]
    answer(response)


def _unknown(ctx: HandlerContext, name: str) -> DescribeTopicPartitionsResponseTopic:
    code = UnknownTopicOrPartition.code
    try:
        check_name(name)
    except InvalidTopicException as error:
        code = error.code
    return DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_authorized_operations=UNKNOWN_OPERATIONS
    )


HANDLERS: Handlers = dict(
    [
        on(MetadataRequest, metadata),
        on(DescribeClusterRequest, describe_cluster),
        on(DescribeTopicPartitionsRequest, describe_topic_partitions),
    ]
)
