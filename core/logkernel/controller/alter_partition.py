"""AlterPartition: a leader proposes another ISR, the controller decides (KIP-497).

In the order in which Kafka's controller checks them:

    the proposal                                       verdict
    names a leader epoch or partition epoch ahead      NOT_CONTROLLER: this controller is behind (KAFKA-14154)
    names an older leader epoch, or comes from         FENCED_LEADER_EPOCH
      a broker that is not the leader
    equals the present state                           accepted again, nothing to write (KAFKA-12686)
    names an older partition epoch                     INVALID_UPDATE_VERSION
    has members that are no replicas, or lacks         INVALID_REQUEST
      its leader
    has members that are dead, shutting down or        INELIGIBLE_REPLICA (KIP-841, KIP-903)
      of an older broker epoch, the leader aside: it
      is a member, and one that shuts down waits for
      others to join
    all else                                           accepted: written with the next partition epoch
"""

from __future__ import annotations

from collections.abc import Mapping

from logkernel.attrs_lite import evolve
from logkernel.controller.image import Partition
from logkernel.errors import FencedLeaderEpoch, IneligibleReplica, InvalidRequest, InvalidUpdateVersion, NotController
from logkernel.vocabulary import IsrProposal

ANY_BROKER_EPOCH = -1


def judge_proposal(sender: int, proposal: IsrProposal, row: Partition, eligible: Mapping[int, int]) -> Partition:
    """Return the partition to write; `row` itself if nothing changes.

    `eligible` maps each broker that may be in sync to its broker epoch. Raises KafkaError by the table.
    """
    if proposal.leader_epoch > row.leader_epoch or proposal.partition_epoch > row.partition_epoch:
        raise NotController("the leader knows of a later state than this controller; ask the controller that wrote it")
    if proposal.leader_epoch < row.leader_epoch or sender != row.leader:
        raise FencedLeaderEpoch(f"broker {row.leader} leads in epoch {row.leader_epoch}")
    if proposal.isr == frozenset(row.isr):
        return row
    if proposal.partition_epoch < row.partition_epoch:
        raise InvalidUpdateVersion(f"the partition epoch is {row.partition_epoch}, not {proposal.partition_epoch}")
    if sender not in proposal.isr or not proposal.isr <= frozenset(row.replicas):
        raise InvalidRequest(f"{sorted(proposal.isr)} is no ISR of replicas {list(row.replicas)} with leader {sender}")
    for node, epoch in proposal.members:
        if node != sender and (node not in eligible or epoch not in (ANY_BROKER_EPOCH, eligible[node])):
            raise IneligibleReplica(f"broker {node} is away, shutting down or was started again")
    isr = tuple(node for node in row.replicas if node in proposal.isr)
    return evolve(row, isr=isr, partition_epoch=row.partition_epoch + 1)
