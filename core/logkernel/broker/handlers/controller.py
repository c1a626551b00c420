"""AlterPartition, AllocateProducerIds, ControlledShutdown: what brokers ask of their controller.

Answered over a listener by which brokers command (else CLUSTER_AUTHORIZATION_FAILED), by the active controller (else
NOT_CONTROLLER), to a broker in its current life (else STALE_BROKER_EPOCH).
"""

from __future__ import annotations

from logkernel.broker.controller.active import ActiveController
from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, MetadataChange, RequestContext
from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, Partition, partition_change
from logkernel.errors import (
    ClusterAuthorizationFailed,
    KafkaError,
    UnknownTopicId,
)
from logkernel.requests.replication import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionPartition,
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopicResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from logkernel.vocabulary import IsrProposal


def alter_partition(
    ctx: HandlerContext, request: AlterPartitionRequest, context: RequestContext, answer: Answer
) -> None:
    """Each proposal is judged by `controller.alter_partition`; those that change something are committed as one."""
    response = AlterPartitionResponse()
    try:
        active = _active(ctx, context)
        active.brokers.check(request.broker_id, request.broker_epoch)
        active.proposers.check(request.broker_id, context.listener, context.connection_id)
        changes = _judged(active, request, response)
        active.alter_partitions(ControllerResult(changes, None, Effects()))
    except KafkaError as error:
        response = AlterPartitionResponse(error_code=error.code)
    answer(response)


def _judged(
    active: ActiveController, request: AlterPartitionRequest, response: AlterPartitionResponse
) -> list[MetadataChange]:
    changes = []
    image = active.image
    for topic in request.topics:
        rows = AlterPartitionTopicResponse(topic.topic_id)
        response.topics.append(rows)
        name = image.names.get(topic.topic_id)
        for asked in topic.partitions:
            answered = AlterPartitionPartitionResponse(asked.partition_index)
            rows.partitions.append(answered)
            try:
                before = _row(image, name, asked.partition_index)
                after = judge_proposal(request.broker_id, _proposal(asked), before, active.eligible)
            except KafkaError as error:
                answered.error_code = error.code
                continue
            answered.leader_id, answered.leader_epoch = after.leader, after.leader_epoch
            answered.isr, answered.partition_epoch = list(after.isr), after.partition_epoch
            if after is not before and name is not None:
                changes.append(partition_change(name, asked.partition_index, after))
    return changes


def _row(image: ClusterImage, name: str | None, index: int) -> Partition:
    if name is None:
        raise UnknownTopicId("no topic has that id")
    return image.partition(name, index)


def _proposal(asked: AlterPartitionPartition) -> IsrProposal:
    members = sorted((member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs)
    return IsrProposal(tuple(members), asked.leader_epoch, asked.partition_epoch)


def allocate_producer_ids(
    ctx: HandlerContext, request: AllocateProducerIdsRequest, context: RequestContext, answer: Answer
) -> None:
    response = AllocateProducerIdsResponse()
    try:
        active = _active(ctx, context)
        active.brokers.check(request.broker_id, request.broker_epoch)
        block = active.commit(ctx.metadata.controller.allocate_producer_ids(active.image))
    except KafkaError as error:
        response.error_code = error.code
    else:
        response.producer_id_start, response.producer_id_len = block.start, len(block)
    answer(response)


def controlled_shutdown(
    ctx: HandlerContext, request: ControlledShutdownRequest, context: RequestContext, answer: Answer
) -> None:
    """Answered when the new leaders were ordered: a broker that stops then leaves no partition without one."""
    response = ControlledShutdownResponse()
    try:
        active = _active(ctx, context)
        active.brokers.check(request.broker_id, request.broker_epoch)
        left = active.leave(request.broker_id)
    except KafkaError as error:
        answer(ControlledShutdownResponse(error.code))
        return
    response.remaining_partitions = [RemainingPartition(*name) for name in left]
    active.when_confirmed(lambda: answer(response), ctx.runtime.config.get("controller.socket.timeout.ms"))


def _active(ctx: HandlerContext, context: RequestContext) -> ActiveController:
    if not context.commands:
        raise ClusterAuthorizationFailed(f"listener {context.listener} is not for brokers")
    return ctx.governance.active


HANDLERS: Handlers = dict(
    [
        on(AlterPartitionRequest, alter_partition),
        on(AllocateProducerIdsRequest, allocate_producer_ids),
        on(ControlledShutdownRequest, controlled_shutdown),
    ]
)
