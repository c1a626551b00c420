"""CreateTopics, DeleteTopics, CreatePartitions.

In a cluster the controller alone decides; others answer NOT_CONTROLLER for each topic, and pass on what a service of
theirs asks for. The controller answers when this broker itself was told, as Kafka's does: what a client asks it next
about those topics, it knows. The partitions that a client creates and deletes count against its
`controller_mutation_rate` (KIP-599).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.handlers.refusals import refusal
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.effects import ControllerResult, Spend, free
from logkernel.controller.image import NO_LEADER, ClusterImage
from logkernel.errors import NotController
from logkernel.requests.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

R = TypeVar("R", CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest)


def create_topics(ctx: HandlerContext, request: CreateTopicsRequest, context: RequestContext, answer: Answer) -> None:
    _decide(ctx, request, context, answer, ctx.metadata.controller.create_topics)


def delete_topics(ctx: HandlerContext, request: DeleteTopicsRequest, context: RequestContext, answer: Answer) -> None:
    _decide(ctx, request, context, answer, ctx.metadata.controller.delete_topics)


def create_partitions(
    ctx: HandlerContext, request: CreatePartitionsRequest, context: RequestContext, answer: Answer
) -> None:
    _decide(ctx, request, context, answer, ctx.metadata.controller.create_partitions)


def _decide(
    ctx: HandlerContext,
    request: R,
    context: RequestContext,
    answer: Answer,
    decide: Callable[[R, ClusterImage, Spend], ControllerResult],
) -> None:
    quota = ctx.quotas.mutations(context)
    try:
        response: Any = ctx.commit(decide(request, ctx.governance.image, free if quota is None else quota.spend))
    except NotController as error:
        if context.internal:
            _ask_controller(ctx, request, error, answer)
        else:
            answer(refusal(request, error))
        return

    def confirmed() -> None:
        throttle_ms = 0 if quota is None else quota.throttle_ms(ctx.runtime.clock.mono_ms())
        if throttle_ms:
            response.throttle_time_ms = throttle_ms
            if context.mute is not None:
                context.mute(throttle_ms)
        answer(response)

    ctx.governance.when_confirmed(confirmed, request.timeout_ms)


def _ask_controller(ctx: HandlerContext, request: R, error: NotController, answer: Answer) -> None:
    """A service of this broker asks: unlike a client, it does not look for the controller itself."""
    forward, node = ctx.governance.forward, ctx.cluster.controller_id
    if forward is None or node in (NO_LEADER, ctx.runtime.node_id):
        answer(refusal(request, error))
    else:
        forward(node, request, lambda response: answer(refusal(request, error) if response is None else response))


HANDLERS: Handlers = dict(
    [
        on(CreateTopicsRequest, create_topics),
        on(DeleteTopicsRequest, delete_topics),
        on(CreatePartitionsRequest, create_partitions),
    ]
)
