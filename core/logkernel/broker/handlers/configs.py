"""Settings over the wire: those that are kept are the controller's, log levels this process's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.attrs_lite import evolve
from logkernel.broker.handlers import loggers
from logkernel.contracts import Answer, RequestContext
from logkernel.requests.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker


def describe_configs(broker: Broker, request: DescribeConfigsRequest, context: RequestContext, answer: Answer) -> None:
    ours, rest = loggers.split(request.resources)
    response = broker.metadata.controller.describe_configs(evolve(request, resources=rest), broker.metadata.image)
    response.results += [loggers.describe(broker, one, documentation=request.include_documentation) for one in ours]
    answer(response)


def alter_configs(broker: Broker, request: AlterConfigsRequest, context: RequestContext, answer: Answer) -> None:
    answer(broker.metadata.carry_out(broker.metadata.controller.alter_configs(request, broker.metadata.image)))


def incremental_alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext, answer: Answer
) -> None:
    ours, rest = loggers.split(request.resources)
    outcome = broker.metadata.controller.incremental_alter_configs(
        evolve(request, resources=rest), broker.metadata.image
    )
    response = broker.metadata.carry_out(outcome)
    response.responses += [loggers.alter(broker, one, dry=request.validate_only) for one in ours]
    answer(response)


def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, context: RequestContext, answer: Answer
) -> None:
    from logkernel.controller.config_resources import list_config_resources as listing

    answer(listing(request, broker.metadata.image, sorted({broker.node_id, *broker.metadata.image.nodes})))
