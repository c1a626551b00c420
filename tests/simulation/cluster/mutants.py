"""Rules broken on purpose: what the simulation of the protocol has to notice.

Each mutant patches the machines, or the hands that carry them out, so that one rule of replication no longer holds. The
docstring names who paid for the rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logkernel.attrs_lite import evolve
from logkernel.contracts import Elected
from logkernel.controller import election_rules
from logkernel.controller.state import State, ToDo
from logkernel.errors import InvalidProducerEpoch, NotController
from logkernel.guards.election import GuardedElection
from logkernel.partition import follower, isr, leader, producers
from logkernel.partition.producers import ProducerStates
from logkernel.partition.replica_fetch import READ, Verdict, judge_fetch
from logkernel.plugins.election import clean
from logkernel.testing.simulation import list_log
from logkernel.testing.simulation.protocol import broker, controller, coordination, replica
from logkernel.vocabulary import OffsetAndEpoch

UNTOLD = {
    "a_leader_notes_no_epoch_until_it_writes": "an unknown last epoch is answered with the leader's log end: the same",
    "a_refusal_of_an_older_attempt_counts": "whoever was refused is never eligible again in that life",
    "an_older_partition_epoch_is_written": "proposals are not overtaken",
    "a_controller_behind_the_leader_fences_it": "a controller loads all that was kept before it answers",
}
"""Mutants that no history can tell from the original, and why; unit tests hold their rules (decision 043)."""

Patch = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Patch] = {}
InSync = isr.InSyncReplicas


def mutant(patch: Patch) -> Patch:
    MUTANTS[patch.__name__] = patch
    return patch


# ---------------------------------------------------------------- followers and epochs


@mutant
def a_follower_is_never_told_that_it_diverges(patch):
    """KIP-101."""

    def lenient(*args, **kwargs):
        verdict = judge_fetch(*args, **kwargs)
        return READ if verdict.diverging is not None else verdict

    patch.setattr(replica, "judge_fetch", lenient)


@mutant
def a_follower_cuts_to_its_watermark(patch):
    """KIP-101."""
    before = replica.Replica._follow

    def follow(self, row):
        known = -1 if self.follower is None else self.follower.leader_epoch
        before(self, row)
        if self.follower.leader_epoch > known:
            self.log.truncate(self.follower.high_watermark)
            self.follower.on_truncated(self.log.end)

    patch.setattr(replica.Replica, "_follow", follow)


@mutant
def a_leader_answers_with_the_end_of_the_asked_epoch_alone(patch):
    """KIP-279, KAFKA-6361: where it does not know the epoch, its log end."""

    def judge(asked, **kwargs):
        verdict = judge_fetch(asked, **kwargs)
        if verdict.diverging is not None and verdict.diverging.epoch < asked.last_epoch:
            log_end = kwargs["log_end"]
            return Verdict(None, OffsetAndEpoch(log_end, asked.last_epoch)) if log_end < asked.offset else READ
        return verdict

    patch.setattr(replica, "judge_fetch", judge)


@mutant
def a_follower_cuts_to_the_leaders_end_alone(patch):
    """KIP-279: its own end of that epoch may come before."""

    def on_diverging(self, asked, epoch, end_offset):
        effects = leader.Effects()
        if self._is_current(asked):
            effects.truncate = max(min(end_offset, self.log_end), self.log_start)
        return effects

    patch.setattr(follower.Follower, "on_diverging", on_diverging)


@mutant
def a_leader_notes_no_epoch_until_it_writes(patch):
    """KAFKA-7415."""
    patch.setattr(list_log.ListLog, "begin_epoch", lambda self, epoch: None)


@mutant
def epochs_outlive_the_records_that_are_cut(patch):
    """KAFKA-10706."""
    patch.setattr(list_log.LeaderEpochCache, "truncate_from_end", lambda self, offset: None)


@mutant
def who_diverges_takes_the_watermark_first(patch):
    """KAFKA-14704."""
    before = replica.Replica.on_diverging

    def on_diverging(self, asked, known):
        if self.follower is not None:
            self.follower.on_progress(asked, 1 << 40, 0)
        before(self, asked, known)

    patch.setattr(replica.Replica, "on_diverging", on_diverging)


@mutant
def an_empty_answer_forgets_the_last_epoch(patch):
    """KAFKA-15510."""
    records, position = follower.Follower.on_records, follower.Follower.next_fetch
    empty = set()

    def on_records(self, asked, batches):
        (empty.discard if batches else empty.add)(id(self))
        return records(self, asked._replace(last_epoch=self._epochs.latest), batches)

    def next_fetch(self, mono_ms):
        found = position(self, mono_ms)
        return found._replace(last_epoch=-1) if found is not None and id(self) in empty else found

    patch.setattr(follower.Follower, "on_records", on_records)
    patch.setattr(follower.Follower, "next_fetch", next_fetch)


@mutant
def a_restart_leaves_the_watermark(patch):
    """KAFKA-9491."""

    def on_restarted(self, offset):
        self.log_start = self.log_end = offset

    patch.setattr(follower.Follower, "on_restarted", on_restarted)


@mutant
def an_empty_follower_begins_behind_the_batch(patch):
    """KAFKA-6975."""
    before = follower.Follower.on_records

    def on_records(self, asked, batches):
        return before(self, asked, [facts for facts in batches if facts.base_offset >= self.log_end])

    patch.setattr(follower.Follower, "on_records", on_records)


@mutant
def stale_answers_are_taken(patch):
    """KAFKA-7786."""
    patch.setattr(follower.Follower, "_is_current", lambda self, asked: True)


@mutant
def answers_of_an_older_epoch_are_taken(patch):
    """KAFKA-7786: the offset fits, the leader is another."""

    def is_current(self, asked):
        return (asked.offset, asked.last_epoch) == (self.log_end, self._epochs.latest)

    patch.setattr(follower.Follower, "_is_current", is_current)


@mutant
def out_of_range_is_not_dealt_with(patch):
    """KAFKA-7414."""
    patch.setattr(follower.Follower, "on_out_of_range", lambda self, asked, start, end: leader.Effects())


@mutant
def the_epoch_of_a_fetch_is_not_checked(patch):
    """KIP-320, KAFKA-13837."""

    def judge(asked, **kwargs):
        return judge_fetch(asked._replace(leader_epoch=kwargs["leader_epoch"]), **kwargs)

    patch.setattr(replica, "judge_fetch", judge)


@mutant
def who_held_a_prefix_of_the_leaders_epochs_is_in_sync(patch):
    """The fetch offset counts though the log differs below it."""

    def lenient(asked, **kwargs):
        return judge_fetch(asked._replace(last_epoch=-1), **kwargs)

    patch.setattr(replica, "judge_fetch", lenient)


@mutant
def a_follower_judges_sequences(patch):
    """KAFKA-6003."""
    before = replica.Replica.on_records

    def on_records(self, asked, batches, watermark, start):
        for facts in batches:
            try:
                self.log.producers.check_append(facts)
            except Exception:
                return
        before(self, asked, batches, watermark, start)

    patch.setattr(replica.Replica, "on_records", on_records)


# ---------------------------------------------------------------- in-sync replicas


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
def who_is_behind_the_watermark_joins(patch):
    def propose(self, node, high_watermark, epoch_start, eligible, leader_end, mono_ms):
        if self.state is not isr.State.COMMITTED or node in self.isr or node not in eligible:
            return None
        return self._propose(isr.Event.EXPAND, self.isr | {node})

    patch.setattr(InSync, "propose_expansion", propose)


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
def the_watermark_advances_under_min_isr(patch):
    """KAFKA-15583."""
    before = leader.Leader._advance

    def advance(self, effects):
        kept, self.min_isr = self.min_isr, 1
        before(self, effects)
        self.min_isr = kept

    patch.setattr(leader.Leader, "_advance", advance)


@mutant
def the_watermark_of_a_leader_follows_its_own_log(patch):
    patch.setattr(leader, "high_watermark", lambda current, ends: max(current, next(iter(ends))))


@mutant
def an_acknowledgement_does_not_wait_for_the_watermark(patch):
    before = leader.Leader.on_appended

    def on_appended(self, batches, acks, receiver, wall_ms, deadline_ms, marker=None):
        return before(self, batches, 1, receiver, wall_ms, deadline_ms, marker)

    patch.setattr(leader.Leader, "on_appended", on_appended)


@mutant
def a_duplicate_is_answered_before_its_first_is_committed(patch):
    before = leader.Leader.on_produce

    def on_produce(self, batches, acks, receiver, guard=None, deadline_ms=0):
        kept, self.high_watermark = self.high_watermark, 1 << 40
        effects = before(self, batches, acks, receiver, guard, deadline_ms)
        self.high_watermark = kept
        return effects

    patch.setattr(leader.Leader, "on_produce", on_produce)


# ---------------------------------------------------------------- producers


@mutant
def a_sequence_is_not_checked(patch):
    """KIP-98."""
    patch.setattr(ProducerStates, "check_append", lambda self, facts, guard=None: None)


@mutant
def a_gap_in_sequences_is_taken(patch):
    """KIP-98."""
    patch.setattr(producers, "_check_sequence", lambda facts, entry: None)


@mutant
def an_older_epoch_of_a_producer_is_taken(patch):
    """KIP-98, KIP-360."""
    before = ProducerStates.check_append

    def check(self, facts, guard=None):
        try:
            return before(self, facts, guard)
        except InvalidProducerEpoch:
            return None

    patch.setattr(ProducerStates, "check_append", check)


@mutant
def a_follower_knows_nothing_of_producers(patch):
    """KAFKA-10832: state is built from what is appended."""
    patch.setattr(ProducerStates, "replay", lambda self, facts, control=None: None)


@mutant
def a_cut_leaves_what_is_known_of_producers(patch):
    """KAFKA-10832, KAFKA-12153."""
    before = list_log.ListLog.truncate

    def truncate(self, offset):
        replay, self._replay = self._replay, lambda: None
        before(self, offset)
        self._replay = replay

    patch.setattr(list_log.ListLog, "truncate", truncate)


# ---------------------------------------------------------------- the controller


@mutant
def any_living_replica_is_elected(patch):
    def elect(self, candidates):
        for node in candidates.assignment:
            if node in candidates.alive:
                return Elected(node, (node,))
        return None

    patch.setattr(clean.Clean, "elect", elect)
    patch.setattr(GuardedElection, "elect", lambda self, candidates: elect(self, candidates))


@mutant
def an_isr_changes_without_a_new_leader_epoch(patch):
    before = election_rules._without

    def without(rows, broker, electing):
        known = dict(rows)
        for index, row in before(rows, broker, electing):
            if row.leader == known[index].leader:
                row = evolve(row, leader_epoch=known[index].leader_epoch)
            yield index, row

    patch.setattr(election_rules, "_without", without)


@mutant
def a_leader_that_comes_back_keeps_its_epoch(patch):
    before = election_rules._with

    def with_(topic, broker, electing, leading):
        for index, row in before(topic, broker, electing, leading):
            if row.leader != topic.partitions[index].leader:
                yield index, row

    patch.setattr(election_rules, "_with", with_)
    patch.setattr(election_rules, "_without", lambda *args: ())


@mutant
def a_controller_writes_without_its_term(patch):
    """KAFKA-6082."""

    def commit(self, changes, term):
        self._store.commit(changes)

    patch.setattr(coordination.StoreSession, "commit_as_controller", commit)


@mutant
def a_write_without_an_answer_is_taken_for_failed(patch):
    """A controller that is unsure goes on with the image that it has."""
    before = controller.Controller._do

    def do(self, doing):
        if self.state.state is State.SUSPENDED and doing is ToDo.DROP:
            self.state.state = State.ACTIVE
            self.session.make_sure()
        else:
            before(self, doing)

    patch.setattr(controller.Controller, "_do", do)


@mutant
def an_order_for_an_earlier_life_is_obeyed(patch):
    """KIP-380, KAFKA-7235."""
    before = broker.Broker._fence

    def fence(self, request):
        return before(self, evolve(request, broker_epoch=1 << 40))

    patch.setattr(broker.Broker, "_fence", fence)


@mutant
def an_older_order_is_taken(patch):
    patch.setattr(replica.Replica, "leader_epoch", property(lambda self: -1))

    def on_leader(self, node, epoch):
        self.leader, self.leader_epoch = node, epoch
        return True

    patch.setattr(follower.Follower, "on_leader", on_leader)


@mutant
def a_broker_that_came_back_is_the_one_that_went(patch):
    """A controller that compares who is alive, and not their epochs."""

    def deal(self):
        if self.orders is None or self.session is None:
            return False
        try:
            self._known = dict(self.session.broker_epochs())
        except controller.KafkaStorageError:
            return False
        gone = [node for node in self.dealt if node not in self._known]
        if gone:
            return self._broker_gone(self.orders, gone[0], [node for node in self.dealt if node not in gone])
        came = [node for node in self._known if node not in self.dealt]
        for node, epoch in self._known.items():
            if node in self.dealt and self.dealt[node] != epoch:
                self.dealt[node] = epoch
                self.orders.broker_came(node, epoch)
        return bool(came) and self._broker_came(self.orders, came[0], self._known[came[0]])

    patch.setattr(controller.Controller, "_deal", deal)


@mutant
def the_last_of_the_isr_is_taken_out(patch):
    before = election_rules._without

    def without(rows, broker, electing):
        for index, row in before(rows, broker, electing):
            alive = tuple(node for node in row.replicas if node in electing.alive)
            yield index, evolve(row, isr=alive[:1] or row.isr) if row.leader == -1 else row

    patch.setattr(election_rules, "_without", without)


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
