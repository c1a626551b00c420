"""The cluster as its administrator sees it: leaders, replicas, features, members."""

from __future__ import annotations

import logging

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.handlers.refusals import refusal
from logkernel.contracts import Answer, RequestContext
from logkernel.controller import features, reassignment
from logkernel.errors import BrokerIdNotRegistered, InvalidRequest, NotController, UnsupportedVersion
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from logkernel.requests.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdateFeaturesRequest,
)

log = logging.getLogger("logkernel.admin")


def elect_leaders(ctx: HandlerContext, request: ElectLeadersRequest, context: RequestContext, answer: Answer) -> None:
    try:
        response = ctx.governance.elect_leaders(request)
    except NotController as error:
        answer(refusal(request, error))
    else:
        ctx.governance.when_confirmed(lambda: answer(response), request.timeout_ms)


def alter_partition_reassignments(
    ctx: HandlerContext, request: AlterPartitionReassignmentsRequest, context: RequestContext, answer: Answer
) -> None:
    try:
        answer(ctx.governance.alter_reassignments(request))
    except NotController as error:
        answer(refusal(request, error))


def list_partition_reassignments(
    ctx: HandlerContext, request: ListPartitionReassignmentsRequest, context: RequestContext, answer: Answer
) -> None:
    try:
        answer(reassignment.list_reassignments(request, ctx.governance.image))
    except NotController as error:
        answer(refusal(request, error))


def update_features(
    ctx: HandlerContext, request: UpdateFeaturesRequest, context: RequestContext, answer: Answer
) -> None:
    result = features.update(request, ctx.cluster.features())
    try:
        response = ctx.commit(result)
    except NotController as error:
        answer(refusal(request, error))
        return
    for change in result.changes:
        log.info("feature finalized: name=%s level=%s", change.key, (change.value or {}).get("level"))
    answer(response)


def describe_quorum(
    ctx: HandlerContext, request: DescribeQuorumRequest, context: RequestContext, answer: Answer
) -> None:
    """Refused: use DescribeCluster for one broker."""
    message = "this cluster has no metadata quorum to describe; DescribeCluster names its controller"
    answer(DescribeQuorumResponse(error_code=UnsupportedVersion.code, error_message=message))


def unregister_broker(
    ctx: HandlerContext, request: UnregisterBrokerRequest, context: RequestContext, answer: Answer
) -> None:
    response = UnregisterBrokerResponse()
    if request.broker_id == ctx.runtime.node_id:
        response.error_code = InvalidRequest.code
        response.error_message = f"broker {ctx.runtime.node_id} is the cluster; it can't be taken out of itself"
    else:
        response.error_code = BrokerIdNotRegistered.code
        response.error_message = f"there is no broker {request.broker_id}; use {ctx.runtime.node_id}"
    answer(response)


HANDLERS: Handlers = dict(
    [
        on(ElectLeadersRequest, elect_leaders),
        on(AlterPartitionReassignmentsRequest, alter_partition_reassignments),
        on(ListPartitionReassignmentsRequest, list_partition_reassignments),
        on(UpdateFeaturesRequest, update_features),
        on(DescribeQuorumRequest, describe_quorum),
        on(UnregisterBrokerRequest, unregister_broker),
    ]
)
