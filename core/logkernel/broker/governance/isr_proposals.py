"""Sends leaders' proposals to the controller (AlterPartition), and reports the results to them.

| answer | the leader is told |
|---|---|
| written | `isr_accepted`, with the new partition epoch |
| refused, and never written: INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED | `isr_refused`, to revert |
| refused, as the controller knows of something newer (`STUCK`) | `isr_refused`: wait for an order |
| any other error, or none | `isr_unanswered`: propose again |
"""

from __future__ import annotations

from functools import partial
from typing import Final

from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.view import ControllerView
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.turn import Turn
from logkernel.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    OperationNotAttempted,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.requests.replication import (
    AlterPartitionPartition,
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)
from logkernel.vocabulary import IsrProposal

REVERTS: Final = frozenset({IneligibleReplica.code, OperationNotAttempted.code})
"""Refusals of a proposal after which it was not and will not be written."""
STUCK: Final = frozenset(
    {
        FencedLeaderEpoch.code,
        InvalidRequest.code,
        InvalidUpdateVersion.code,
        NewLeaderElected.code,
        UnknownTopicId.code,
        UnknownTopicOrPartition.code,
    }
)
"""After these refusals, wait for an order. After any other, propose again."""


class IsrProposals:
    """Of the replicas that this broker leads."""

    def __init__(self, node_id: int, turn: Turn, view: ControllerView, channel: ControllerChannel) -> None:
        self._node_id = node_id
        self._turn = turn
        self._view = view
        self._channel = channel

    def propose(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        """Send a proposal. The replica gets the result later, never before this returns."""
        members = [BrokerState(node, epoch) for node, epoch in proposal.members]
        row = AlterPartitionPartition(
            partition_index=replica.name.partition,
            leader_epoch=proposal.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=proposal.partition_epoch,
        )
        request = AlterPartitionRequest(
            broker_id=self._node_id,
            broker_epoch=self._view.broker_epoch,
            topics=[AlterPartitionTopic(replica.topic_id, [row])],
        )
        self._turn.call_soon(lambda: self._channel.ask(request, partial(_answered, replica, proposal)))


def _answered(replica: LeaderReplica, proposal: IsrProposal, response: AlterPartitionResponse | None) -> None:
    """Take the controller's response; None if there was none."""
    row = None if response is None or response.error_code else _row_of(response)
    if not replica.in_service:
        return
    if row is not None and not row.error_code:
        replica.isr_accepted(proposal, row.partition_epoch)
    elif row is not None and row.error_code in REVERTS | STUCK:
        replica.isr_refused(proposal, revert=row.error_code in REVERTS)
    else:
        replica.isr_unanswered(proposal)


def _row_of(response: AlterPartitionResponse) -> AlterPartitionPartitionResponse | None:
    return next((row for topic in response.topics for row in topic.partitions), None)
