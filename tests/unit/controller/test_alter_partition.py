"""The controller's verdict on a leader's proposal: one case for each row of the table, in its order."""

import pytest

from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.image import Partition
from logkernel.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NotController,
)
from logkernel.vocabulary import IsrProposal

ROW = Partition((1, 2, 3), (1, 2), 1, 5, 7)
ALIVE = {1: 11, 2: 12, 3: 13}


def proposal(*nodes: int, leader_epoch: int = 5, partition_epoch: int = 7, epoch: int = -1) -> IsrProposal:
    return IsrProposal(tuple((node, epoch) for node in nodes), leader_epoch, partition_epoch)


@pytest.mark.parametrize(
    ("sender", "asked", "error"),
    [
        (1, proposal(1, leader_epoch=6), NotController),
        (9, proposal(1, partition_epoch=8), NotController),
        (1, proposal(1, 2, leader_epoch=4), FencedLeaderEpoch),
        (2, proposal(1, 2), FencedLeaderEpoch),
        (1, proposal(1, partition_epoch=6), InvalidUpdateVersion),
        (1, proposal(2, 3), InvalidRequest),
        (1, proposal(1, 4), InvalidRequest),
        (1, proposal(1, 3, epoch=12), IneligibleReplica),
    ],
)
def test_what_is_refused(sender: int, asked: IsrProposal, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        judge_proposal(sender, asked, ROW, ALIVE)


def test_the_dead_do_not_join() -> None:
    with pytest.raises(IneligibleReplica):
        judge_proposal(1, proposal(1, 2, 3), ROW, {1: 11, 2: 12})


def test_a_leader_that_is_shutting_down_lets_others_join() -> None:
    """Else nobody could take over from the last member of an ISR, however long it waited."""
    assert judge_proposal(1, proposal(1, 2, 3), ROW, {2: 12, 3: 13}).isr == (1, 2, 3)
    with pytest.raises(IneligibleReplica):
        judge_proposal(1, proposal(1, 2, 3), ROW, {1: 11, 2: 12})


def test_what_holds_already_is_accepted_again_whatever_its_version() -> None:
    assert judge_proposal(1, proposal(1, 2, partition_epoch=3), ROW, {}) is ROW


def test_what_is_accepted_is_written_with_the_next_partition_epoch() -> None:
    assert judge_proposal(1, proposal(1, 2, 3), ROW, ALIVE) == Partition((1, 2, 3), (1, 2, 3), 1, 5, 8)
    assert judge_proposal(1, IsrProposal(((1, -1), (3, 13)), 5, 7), ROW, ALIVE).isr == (1, 3)
