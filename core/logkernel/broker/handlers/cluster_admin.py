"""The cluster as its administrator sees it: leaders, replicas, features, members."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from logkernel.contracts import Answer, RequestContext
from logkernel.controller import features, leaders
from logkernel.errors import BrokerIdNotRegistered, InvalidRequest, UnsupportedVersion
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

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

log = logging.getLogger("logkernel.admin")


def elect_leaders(broker: Broker, request: ElectLeadersRequest, context: RequestContext, answer: Answer) -> None:
    answer(leaders.elect_leaders(request, broker.metadata.image, broker.logs.is_offline))


def alter_partition_reassignments(
    broker: Broker, request: AlterPartitionReassignmentsRequest, context: RequestContext, answer: Answer
) -> None:
    brokers = sorted({broker.node_id, *broker.metadata.image.nodes})
    answer(leaders.alter_reassignments(request, broker.metadata.image, brokers))


def list_partition_reassignments(
    broker: Broker, request: ListPartitionReassignmentsRequest, context: RequestContext, answer: Answer
) -> None:
    answer(leaders.list_reassignments(request, broker.metadata.image))


def update_features(broker: Broker, request: UpdateFeaturesRequest, context: RequestContext, answer: Answer) -> None:
    outcome = features.update(request, broker.features())
    response = broker.metadata.carry_out(outcome)
    for change in outcome.changes:
        log.info("feature finalized: name=%s level=%s", change.key, (change.value or {}).get("level"))
    answer(response)


def describe_quorum(broker: Broker, request: DescribeQuorumRequest, context: RequestContext, answer: Answer) -> None:
    """Refused: what there is to know of one broker, DescribeCluster tells."""
    message = "this cluster keeps its metadata without a quorum of controllers: there is none to describe"
    answer(DescribeQuorumResponse(error_code=UnsupportedVersion.code, error_message=message))


def unregister_broker(
    broker: Broker, request: UnregisterBrokerRequest, context: RequestContext, answer: Answer
) -> None:
    response = UnregisterBrokerResponse()
    if request.broker_id == broker.node_id:
        response.error_code = InvalidRequest.code
        response.error_message = f"broker {broker.node_id} is the cluster; it can't be taken out of itself"
    else:
        response.error_code = BrokerIdNotRegistered.code
        response.error_message = f"there is no broker {request.broker_id}, but {broker.node_id} alone"
    answer(response)
