"""Rules of who is in sync: what the leader proposes, and what the controller takes."""

from __future__ import annotations

from broken_rules import Mutants

from logkernel.attrs_lite import evolve
from logkernel.errors import NotController
from logkernel.partition import isr, leader
from logkernel.testing.simulation.protocol import controller

MUTANTS = Mutants()
mutant = MUTANTS.add
InSync = isr.InSyncReplicas


@mutant
def an_expansion_counts_only_when_it_is_confirmed(patch):
    """KIP-497."""
    patch.setattr(InSync, "maximal", property(lambda self: self.isr))


@mutant
def an_expansion_counts_for_nobody_until_it_is_confirmed(patch):
    """KIP-497, KAFKA-3861."""

    def holding(self, leader_end, mono_ms, eligible):
        return [state.log_end for node, state in self.followers.items() if node in self.isr]

    patch.setattr(InSync, "holding", holding)


@mutant
def a_shrink_counts_before_it_is_confirmed(patch):
    """KAFKA-13091."""

    def maximal(self):
        return self.isr if self._proposal is None else self._proposal.isr

    patch.setattr(InSync, "maximal", property(maximal))


@mutant
def who_is_behind_the_epochs_start_joins(patch):
    """KAFKA-7128."""
    before = InSync.propose_expansion

    def propose(self, node, high_watermark, epoch_start, *args):
        return before(self, node, high_watermark, 0, *args)

    patch.setattr(InSync, "propose_expansion", propose)


@mutant
def a_refusal_of_an_older_attempt_counts(patch):
    """KAFKA-14144."""
    before = InSync.on_refused

    def on_refused(self, proposal, *, revert):
        mine = self._proposal
        if mine is not None and evolve(proposal, attempt=mine.attempt) == mine:
            proposal = mine
        return before(self, proposal, revert=revert)

    patch.setattr(InSync, "on_refused", on_refused)


@mutant
def the_dead_may_join(patch):
    """KIP-841, KAFKA-14140."""
    before = controller.judge_proposal

    def judge(sender, proposal, row, eligible):
        known = dict(proposal.members)
        known[sender] = -1
        return before(sender, proposal, row, {**known, **eligible})

    patch.setattr(controller, "judge_proposal", judge)
    live = leader.Leader.on_live_brokers
    everybody = frozenset(range(100))
    patch.setattr(leader.Leader, "on_live_brokers", lambda self, _, mono_ms: live(self, everybody, mono_ms))


@mutant
def a_reborn_followers_old_fetch_counts(patch):
    """KIP-903, KAFKA-15221."""
    before = controller.judge_proposal
    on_fetch = InSync.on_fetch

    def believe(self, node, *args):
        self.followers[node].broker_epoch = -1
        return on_fetch(self, node, *args)

    patch.setattr(InSync, "on_fetch", believe)

    def judge(sender, proposal, row, eligible):
        members = tuple((node, -1) for node, _ in proposal.members)
        return before(sender, evolve(proposal, members=members), row, eligible)

    patch.setattr(controller, "judge_proposal", judge)


@mutant
def a_stale_leader_writes_the_isr(patch):
    before = controller.judge_proposal

    def judge(sender, proposal, row, eligible):
        own = evolve(proposal, leader_epoch=row.leader_epoch, partition_epoch=row.partition_epoch)
        members = tuple(dict(own.members) | {row.leader: -1})
        own = evolve(own, members=tuple(sorted((node, -1) for node in members)))
        return before(row.leader, own, row, eligible)

    patch.setattr(controller, "judge_proposal", judge)


@mutant
def an_older_partition_epoch_is_written(patch):
    """KIP-497."""
    before = controller.judge_proposal

    def judge(sender, proposal, row, eligible):
        if proposal.partition_epoch < row.partition_epoch:
            proposal = evolve(proposal, partition_epoch=row.partition_epoch)
        return before(sender, proposal, row, eligible)

    patch.setattr(controller, "judge_proposal", judge)


@mutant
def a_repeated_proposal_is_refused_for_its_version(patch):
    """KAFKA-12686: equal states are judged before versions."""
    before = controller.judge_proposal

    def judge(sender, proposal, row, eligible):
        if proposal.leader_epoch == row.leader_epoch and proposal.partition_epoch < row.partition_epoch:
            raise controller.IneligibleReplica("an older version")
        return before(sender, proposal, row, eligible)

    patch.setattr(controller, "judge_proposal", judge)


@mutant
def a_controller_behind_the_leader_fences_it(patch):
    """KAFKA-14154."""
    before = controller.judge_proposal

    def judge(sender, proposal, row, eligible):
        try:
            return before(sender, proposal, row, eligible)
        except NotController:
            raise controller.KafkaError("fenced") from None

    patch.setattr(controller, "judge_proposal", judge)
