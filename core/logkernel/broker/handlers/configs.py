"""Settings over the wire: those that are kept are the controller's, log levels this process's."""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.broker.handlers import loggers
from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.requests.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)


def describe_configs(
    ctx: HandlerContext, request: DescribeConfigsRequest, context: RequestContext, answer: Answer
) -> None:
    ours, rest = loggers.split(request.resources)
    response = ctx.metadata.controller.describe_configs(evolve(request, resources=rest), ctx.metadata.image)
    response.results += [
        loggers.describe(ctx.runtime.node_id, one, documentation=request.include_documentation) for one in ours
    ]
    answer(response)


def alter_configs(ctx: HandlerContext, request: AlterConfigsRequest, context: RequestContext, answer: Answer) -> None:
    answer(ctx.commit(ctx.metadata.controller.alter_configs(request, ctx.metadata.image)))


def incremental_alter_configs(
    ctx: HandlerContext, request: IncrementalAlterConfigsRequest, context: RequestContext, answer: Answer
) -> None:
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
