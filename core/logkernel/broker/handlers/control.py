"""The broker's answers to the controller's orders: UpdateMetadata, LeaderAndIsr, StopReplica.

Orders are obeyed over the inter-broker listener only. The checks, in this order:

| an order | top-level answer |
|---|---|
| came over another listener, or to a broker that stands alone | CLUSTER_AUTHORIZATION_FAILED |
| was meant for an earlier start of this broker: its broker epoch is older | STALE_BROKER_EPOCH |
| comes from a controller that was deposed: a later controller epoch is known | STALE_CONTROLLER_EPOCH |
| outlived its connection: its controller sent something over a later one meanwhile | NETWORK_EXCEPTION |
| else | 0, and LeaderAndIsr and StopReplica answer for each partition, see `ReplicaManager.take` and `stop` |

LeaderAndIsr may wait for settings of topics, see `LeaderOrders`.
"""

from __future__ import annotations

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.received_metadata import ReceivedMetadata
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import ClusterAuthorizationFailed, FencedLeaderEpoch, InvalidTopicException, KafkaError
from logkernel.requests.replication import (
    BEING_DELETED,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    Order,
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import TopicPartition, is_topic_name


def update_metadata(
    ctx: HandlerContext, request: UpdateMetadataRequest, context: RequestContext, answer: Answer
) -> None:
    try:
        received = _admitted(ctx, request, context)
    except KafkaError as error:
        answer(UpdateMetadataResponse(error.code))
        return
    received.take(request)
    came = ctx.replicas.on_live_brokers(frozenset(broker.id for broker in request.live_brokers))
    ctx.sessions.forget_followers(came)
    for state in request.topic_states:
        _give_up(ctx, state)
    answer(UpdateMetadataResponse())


def _give_up(ctx: HandlerContext, state: UpdateMetadataTopicState) -> None:
    """Stop replicas that were reassigned to other brokers by a controller that failed before it sent StopReplica."""
    for row in state.partition_states:
        if row.leader != BEING_DELETED and ctx.runtime.node_id not in row.replicas:
            name = TopicPartition(state.topic_name, row.partition_index)
            ctx.governance.orders.moved_away(name, row.leader_epoch)
            replica = ctx.replicas.find(name)
            if replica is not None and replica.leader_epoch < row.leader_epoch:
                ctx.replicas.stop(name, delete=False, leader_epoch=row.leader_epoch)


def leader_and_isr(ctx: HandlerContext, request: LeaderAndIsrRequest, context: RequestContext, answer: Answer) -> None:
    try:
        _admitted(ctx, request, context)
    except KafkaError as error:
        answer(LeaderAndIsrResponse(error.code))
        return
    ctx.governance.orders.take(request, answer)


def stop_replica(ctx: HandlerContext, request: StopReplicaRequest, context: RequestContext, answer: Answer) -> None:
    try:
        received = _admitted(ctx, request, context)
    except KafkaError as error:
        answer(StopReplicaResponse(error.code))
        return
    response = StopReplicaResponse()
    for state in request.topic_states:
        for row in state.partition_states:
            name = TopicPartition(state.topic_name, row.partition_index)
            if not is_topic_name(name.topic):
                code = InvalidTopicException.code
            elif _came_late(ctx, received, name, row.leader_epoch):
                code = FencedLeaderEpoch.code
            else:
                code = ctx.replicas.stop(name, delete=row.delete_partition, leader_epoch=row.leader_epoch)
            response.partition_errors.append(StopReplicaPartitionError(*name, code))
    answer(response)


def _came_late(ctx: HandlerContext, received: ReceivedMetadata, name: TopicPartition, leader_epoch: int) -> bool:
    """Whether an order to stop outlived its connection, and was meant for what was here before. One to delete was, if
    what lies here is of a topic that exists: the order has no id, and a controller says first that a topic is deleted,
    by UpdateMetadata, or by LeaderAndIsr for a later one, which is answered INCONSISTENT_TOPIC_ID."""
    orders = ctx.governance.orders
    if leader_epoch != BEING_DELETED:
        return not orders.stops(name, leader_epoch)
    topic_id = ctx.logs.topic_id_of(name)
    return orders.holds_living(name) or (topic_id is not None and received.is_alive(name.topic, topic_id))


def _admitted(ctx: HandlerContext, request: Order, context: RequestContext) -> ReceivedMetadata:
    """Check an order against the table above, and return the metadata that it may change. Raises `KafkaError`."""
    if not context.commands:
        raise ClusterAuthorizationFailed(f"listener {context.listener} takes no orders")
    return ctx.governance.admit(request, context)


HANDLERS: Handlers = dict(
    [
        on(UpdateMetadataRequest, update_metadata),
        on(LeaderAndIsrRequest, leader_and_isr),
        on(StopReplicaRequest, stop_replica),
    ]
)
