"""Metadata, DescribeCluster and DescribeTopicPartitions: leaders, and the addresses of brokers."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.names import check_name
from logkernel.errors import (
    InvalidTopicException,
    KafkaError,
    MismatchedEndpointType,
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
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.vocabulary import NO_ID

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
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in ctx.cluster.brokers(context.listener)
        ],
        cluster_id=ctx.cluster.id,
        controller_id=ctx.cluster.controller_id,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else UNKNOWN_OPERATIONS
        ),
    )
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else UNKNOWN_OPERATIONS
    if request.topics is None:
        names: list[tuple[str, UUID]] = [(name, NO_ID) for name in sorted(ctx.cluster.topics)]
    else:
        names = [(topic.name or "", topic.topic_id) for topic in request.topics]
    for name, topic_id in dict.fromkeys(names):
        row = _topic(ctx, name, topic_id, create=request.allow_auto_topic_creation and request.topics is not None)
        row.topic_authorized_operations = operations if not row.error_code else UNKNOWN_OPERATIONS
        response.topics.append(row)
    answer(response)


def _topic(ctx: HandlerContext, name: str, topic_id: UUID, *, create: bool) -> MetadataResponseTopic:
    if topic_id != NO_ID:
        found = ctx.cluster.topic_name(topic_id)
        if found is None:
            return MetadataResponseTopic(error_code=UnknownTopicId.code, name=None, topic_id=topic_id)
        name = found
    try:
        topic = ctx.cluster.topics.get(name)
        if topic is None and create and ctx.runtime.config.get("auto.create.topics.enable"):
            ctx.governance.auto_create(name)
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
            cluster_authorized_operations=(
                CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else UNKNOWN_OPERATIONS
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
            continue
        if left == 0:
            response.next_cursor = DescribeTopicPartitionsCursor(topic_name=name, partition_index=first)
            break
        row = DescribeTopicPartitionsResponseTopic(name=name, topic_id=topic.id, is_internal=topic.internal)
        row.topic_authorized_operations = TOPIC_OPERATIONS
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
