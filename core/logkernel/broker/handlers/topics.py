"""CreateTopics, DeleteTopics, CreatePartitions.

In a cluster the controller alone decides; others answer NOT_CONTROLLER for each topic. The controller answers when this
broker itself was told, as Kafka's does: what a client asks it next about those topics, it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.handlers.refusals import refusal
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import ClusterImage
from logkernel.errors import NotController
from logkernel.requests.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

Request = CreatePartitionsRequest | CreateTopicsRequest | DeleteTopicsRequest


def create_topics(ctx: HandlerContext, request: CreateTopicsRequest, context: RequestContext, answer: Answer) -> None:
    _decide(ctx, request, answer, lambda image: ctx.metadata.controller.create_topics(request, image))


def delete_topics(ctx: HandlerContext, request: DeleteTopicsRequest, context: RequestContext, answer: Answer) -> None:
    _decide(ctx, request, answer, lambda image: ctx.metadata.controller.delete_topics(request, image))


def create_partitions(
    ctx: HandlerContext, request: CreatePartitionsRequest, context: RequestContext, answer: Answer
) -> None:
    _decide(ctx, request, answer, lambda image: ctx.metadata.controller.create_partitions(request, image))


def _decide(
    ctx: HandlerContext, request: Request, answer: Answer, decide: Callable[[ClusterImage], ControllerResult]
) -> None:
    try:
        response: Any = ctx.commit(decide(ctx.governance.image))
    except NotController as error:
        answer(refusal(request, error))
        return
    ctx.governance.when_confirmed(lambda: answer(response), request.timeout_ms)


HANDLERS: Handlers = dict(
    [
        on(CreateTopicsRequest, create_topics),
        on(DeleteTopicsRequest, delete_topics),
        on(CreatePartitionsRequest, create_partitions),
    ]
)
