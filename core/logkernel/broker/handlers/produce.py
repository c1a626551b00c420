"""Produce: from a request to the leaders of its partitions, and back when the last has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.pending_response import PendingResponse
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import (
    InvalidRequiredAcks,
    InvalidTopicException,
    KafkaError,
    UnknownTopicId,
)
from logkernel.partition.effects import Outcome
from logkernel.requests.data import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from logkernel.vocabulary import NO_ID

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica

KNOWN_ACKS = (-1, 0, 1)


class _Part:
    """Takes the outcome of one partition's batches into the response."""

    __slots__ = ("pending", "row")

    def __init__(self, pending: PendingResponse[ProduceResponse], row: PartitionProduceResponse) -> None:
        self.pending = pending
        self.row = row
        pending.open_parts += 1

    def deliver(self, outcome: Outcome) -> None:
        row = self.row
        row.error_code = outcome.error_code
        row.base_offset = outcome.base_offset
        row.log_append_time_ms = None if outcome.log_append_time_ms < 0 else outcome.log_append_time_ms
        row.log_start_offset = outcome.log_start_offset
        row.error_message = outcome.error_message
        if outcome.record_errors:
            row.record_errors = [BatchIndexAndErrorMessage(index, why) for index, why in outcome.record_errors]
        self.pending.part_done()


def produce(ctx: HandlerContext, request: ProduceRequest, context: RequestContext, answer: Answer) -> None:
    pending = PendingResponse(answer, ProduceResponse())
    transactional: list[tuple[LeaderReplica, Any, _Part]] | None = None if request.transactional_id is None else []
    acks = request.acks
    wall_ms = ctx.runtime.clock.wall_ms()
    mono_ms = ctx.runtime.clock.mono_ms()
    deadline_ms = mono_ms + request.timeout_ms
    replicas = ctx.replicas.led
    throttle_ms = 0
    for topic in request.topic_data:
        name = topic.name
        refusal: type[KafkaError] | None = None
        if topic.topic_id is not NO_ID and topic.topic_id != NO_ID:
            known = ctx.cluster.topic_name(topic.topic_id)
            name, refusal = (known, None) if known else (name, UnknownTopicId)
        if refusal is None and (acks not in KNOWN_ACKS or ctx.metadata.is_internal(name)):
            refusal = InvalidRequiredAcks if acks not in KNOWN_ACKS else _refusal(ctx, name, context)
        rows: list[PartitionProduceResponse] = []
        pending.response.responses.append(TopicProduceResponse(name, rows, topic.topic_id))
        for data in topic.partition_data:
            row = PartitionProduceResponse(data.index)
            rows.append(row)
            part = _Part(pending, row)
            replica = replicas.get((name, data.index))
            if refusal is not None or replica is None:
                error = refusal or ctx.replicas.absence(name, data.index)
                part.deliver(Outcome(error.code))
                continue
            if replica.quotas is not None:
                try:
                    held_ms = replica.quotas.on_write(data.index, context, len(data.records or b""), mono_ms)
                except KafkaError as problem:
                    part.deliver(Outcome(problem.code, error_message=str(problem)))
                    continue
                throttle_ms = max(throttle_ms, held_ms)
            if transactional is None:
                replica.produce(data.records or b"", acks, part, wall_ms, deadline_ms, None, context)
            else:
                transactional.append((replica, data.records or b"", part))
    if transactional:
        _in_transaction(ctx, request, context, transactional, wall_ms, deadline_ms)
    if throttle_ms:
        pending.response.throttle_time_ms = throttle_ms
        if context.mute is not None:
            context.mute(throttle_ms)
    pending.part_done()


def _in_transaction(
    ctx: HandlerContext,
    request: ProduceRequest,
    context: RequestContext,
    parts: list[tuple[LeaderReplica, Any, _Part]],
    wall_ms: int,
    deadline_ms: int,
) -> None:
    from logkernel.broker.verifications import PartitionWrite, Terms

    terms = Terms(
        transactional_id=request.transactional_id or "",
        client=context,
        acks=request.acks,
        wall_ms=wall_ms,
        deadline_ms=deadline_ms,
        implicit="transactions_v2" in context.capabilities,
        knows_abortable="transaction_abortable" in context.capabilities,
    )
    ctx.verifications.write([PartitionWrite(*part) for part in parts], terms)


def _refusal(ctx: HandlerContext, topic: str, context: RequestContext) -> type[KafkaError] | None:
    """Of a write to where a service keeps its state."""
    return None if ctx.metadata.may_produce(context.client_id or "", topic) else InvalidTopicException


HANDLERS: Handlers = dict(
    [
        on(ProduceRequest, produce),
    ]
)
