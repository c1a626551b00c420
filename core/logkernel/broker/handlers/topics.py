"""CreateTopics, DeleteTopics, CreatePartitions."""

from __future__ import annotations

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.requests.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest


def create_topics(ctx: HandlerContext, request: CreateTopicsRequest, context: RequestContext, answer: Answer) -> None:
    answer(ctx.commit(ctx.metadata.controller.create_topics(request, ctx.metadata.image)))


def delete_topics(ctx: HandlerContext, request: DeleteTopicsRequest, context: RequestContext, answer: Answer) -> None:
    answer(ctx.commit(ctx.metadata.controller.delete_topics(request, ctx.metadata.image)))


def create_partitions(
    ctx: HandlerContext, request: CreatePartitionsRequest, context: RequestContext, answer: Answer
) -> None:
    answer(ctx.commit(ctx.metadata.controller.create_partitions(request, ctx.metadata.image)))


HANDLERS: Handlers = dict(
    [
        on(CreateTopicsRequest, create_topics),
        on(DeleteTopicsRequest, delete_topics),
        on(CreatePartitionsRequest, create_partitions),
    ]
)
