"""Settings over the wire: those that are kept are the controller's, log levels this process's.

The settings of a topic that this broker has just heard of are read first: defaults would be no answer, and what changes
one setting leaves the others as they are.
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.broker.handlers import loggers
from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.configs import TOPIC
from logkernel.errors import KafkaError
from logkernel.requests.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)


def describe_configs(
    ctx: HandlerContext, request: DescribeConfigsRequest, context: RequestContext, answer: Answer
) -> None:
    if not _known(ctx, request, context, answer):
        return
    ours, rest = loggers.split(request.resources)
    response = ctx.metadata.controller.describe_configs(evolve(request, resources=rest), ctx.metadata.image)
    response.results += [
        loggers.describe(ctx.runtime.node_id, one, documentation=request.include_documentation) for one in ours
    ]
    answer(response)


def _known(
    ctx: HandlerContext,
    request: DescribeConfigsRequest | IncrementalAlterConfigsRequest,
    context: RequestContext,
    answer: Answer,
) -> bool:
    """Whether the settings of the topics that `request` names are known; if not, it is answered when they are."""

    def refused(error: KafkaError) -> None:
        from logkernel.broker.handlers.refusals import refusal

        answer(refusal(request, error))

    topics = [one.resource_name for one in request.resources if one.resource_type == TOPIC]
    return ctx.governance.knows_settings(
        topics,
        lambda: ctx.dispatch(request, context, answer),
        refused,
    )


def alter_configs(ctx: HandlerContext, request: AlterConfigsRequest, context: RequestContext, answer: Answer) -> None:
    answer(ctx.commit(ctx.metadata.controller.alter_configs(request, ctx.metadata.image)))


def incremental_alter_configs(
    ctx: HandlerContext, request: IncrementalAlterConfigsRequest, context: RequestContext, answer: Answer
) -> None:
    if not _known(ctx, request, context, answer):
        return
    ours, rest = loggers.split(request.resources)
    result = ctx.metadata.controller.incremental_alter_configs(evolve(request, resources=rest), ctx.metadata.image)
    response = ctx.commit(result)
    response.responses += [loggers.alter(ctx.runtime.node_id, one, dry=request.validate_only) for one in ours]
    answer(response)


def list_config_resources(
    ctx: HandlerContext, request: ListConfigResourcesRequest, context: RequestContext, answer: Answer
) -> None:
    from logkernel.controller.config_resources import list_config_resources as listing

    answer(listing(request, ctx.metadata.image, sorted({ctx.runtime.node_id, *ctx.metadata.image.nodes})))


HANDLERS: Handlers = dict(
    [
        on(DescribeConfigsRequest, describe_configs),
        on(AlterConfigsRequest, alter_configs),
        on(IncrementalAlterConfigsRequest, incremental_alter_configs),
        on(ListConfigResourcesRequest, list_config_resources),
    ]
)
