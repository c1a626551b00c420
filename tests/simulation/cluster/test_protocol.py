"""Replication under many seeds: no history breaks an invariant, and each rule that is broken on purpose is caught.

A failure prints its seed; `Protocol(seed).run()` replays it. What a seed found becomes a test with a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from logkernel.attrs_lite import evolve
from logkernel.contracts import Candidates, Elected
from logkernel.controller import elections
from logkernel.partition import follower, isr, leader
from logkernel.partition.replica_fetch import READ, judge_fetch
from logkernel.testing.simulation import list_log
from logkernel.testing.simulation.protocol import RARE, Protocol, Violation, broker, controller

SEEDS = 1200


def test_no_seed_breaks_an_invariant_and_every_rare_state_is_seen() -> None:
    rare: Counter[str] = Counter()
    for seed in range(SEEDS):
        rare.update(Protocol(seed).run().rare)
    assert {name: rare[name] for name in RARE if not rare[name]} == {}


def test_an_empty_follower_takes_the_batch_in_which_its_leaders_log_starts() -> None:
    """It left that batch out, led, and an acknowledged record was lost (KAFKA-6975)."""
    Protocol(38).run()


def test_a_seed_gives_the_same_history_twice() -> None:
    one, other = Protocol(11).run(), Protocol(11).run()
    assert one.trace == other.trace
    assert Protocol(12).run().trace != one.trace


Patch = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Patch] = {}


def mutant(patch: Patch) -> Patch:
    MUTANTS[patch.__name__] = patch
    return patch


@mutant
def a_follower_is_never_told_that_it_diverges(patch: pytest.MonkeyPatch) -> None:
    def lenient(*args, **kwargs):
        verdict = judge_fetch(*args, **kwargs)
        return READ if verdict.diverging is not None else verdict

    patch.setattr(broker, "judge_fetch", lenient)


@mutant
def a_follower_cuts_to_its_watermark(patch: pytest.MonkeyPatch) -> None:  # KIP-101
    before = broker.Broker._follow

    def follow(self, row):
        known = self.follower.leader_epoch if self.follower else -1
        before(self, row)
        now = self.follower
        if now is not None and now.leader_epoch > known:
            self.log.truncate(now.high_watermark)
            now.on_truncated(self.log.end)

    patch.setattr(broker.Broker, "_follow", follow)


@mutant
def an_expansion_counts_only_when_it_is_confirmed(patch: pytest.MonkeyPatch) -> None:  # KIP-497
    patch.setattr(isr.InSyncReplicas, "maximal", property(lambda self: self.isr))


@mutant
def an_expansion_counts_for_nobody_until_it_is_confirmed(patch: pytest.MonkeyPatch) -> None:  # KAFKA-3861 as well
    def holding(self, leader_end, mono_ms, eligible):
        return [state.log_end for node, state in self.followers.items() if node in self.isr]

    patch.setattr(isr.InSyncReplicas, "holding", holding)


@mutant
def a_shrink_counts_before_it_is_confirmed(patch: pytest.MonkeyPatch) -> None:  # KAFKA-13091
    def maximal(self):
        return self.isr if self._proposal is None else self._proposal.isr

    patch.setattr(isr.InSyncReplicas, "maximal", property(maximal))
    patch.setattr(isr.InSyncReplicas, "_is_caught_up", lambda self, state, end, now: now - state.caught_up_ms <= 50)


@mutant
def who_is_behind_the_watermark_joins(patch: pytest.MonkeyPatch) -> None:
    def propose(self, node, high_watermark, epoch_start, eligible):
        if self.state is not isr.State.COMMITTED or node in self.isr or node not in eligible:
            return None
        return self._propose(isr.Event.EXPAND, self.isr | {node})

    patch.setattr(isr.InSyncReplicas, "propose_expansion", propose)


@mutant
def any_living_replica_is_elected(patch: pytest.MonkeyPatch) -> None:
    def elect(self, candidates: Candidates):
        for node in candidates.assignment:
            if node in candidates.alive:
                return Elected(node, (node,))
        return None

    patch.setattr(controller.PreferInSync, "elect", elect)


@mutant
def an_isr_changes_without_a_new_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    before = elections._without

    def without(rows, broker, electing):
        old = dict(rows)
        for index, row in before(old.items(), broker, electing):
            if row.leader == old[index].leader:
                row = evolve(row, leader_epoch=old[index].leader_epoch)
            yield index, row

    patch.setattr(elections, "_without", without)


@mutant
def who_held_a_prefix_of_the_leaders_epochs_is_in_sync(patch: pytest.MonkeyPatch) -> None:
    """The fetch offset counts though the log differs below it."""

    def lenient(asked, **kwargs):
        return judge_fetch(asked._replace(last_epoch=-1), **kwargs)

    patch.setattr(broker, "judge_fetch", lenient)


@mutant
def an_older_order_is_taken(patch: pytest.MonkeyPatch) -> None:  # KIP-380
    def on_leader(self, node, epoch):
        self.leader, self.leader_epoch = node, epoch
        return True

    patch.setattr(follower.Follower, "on_leader", on_leader)
    before = broker.Broker._take_order

    def take(self, order):
        self._heard = -1
        before(self, evolve(order, broker_epoch=self.broker_epoch))

    patch.setattr(broker.Broker, "_take_order", take)


@mutant
def a_sequence_is_not_checked(patch: pytest.MonkeyPatch) -> None:  # KIP-98
    from logkernel.partition.producers import ProducerStates

    patch.setattr(ProducerStates, "check_append", lambda self, facts, guard=None: None)


@mutant
def an_acknowledgement_does_not_wait_for_the_watermark(patch: pytest.MonkeyPatch) -> None:
    before = leader.Leader.on_appended

    def on_appended(self, batches, acks, ticket, wall_ms, deadline_ms, marker=None):
        return before(self, batches, 1, ticket, wall_ms, deadline_ms, marker)

    patch.setattr(leader.Leader, "on_appended", on_appended)


@mutant
def the_watermark_of_a_leader_follows_its_own_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader, "high_watermark", lambda current, ends: max(current, next(iter(ends))))


@mutant
def epochs_outlive_the_records_that_are_cut(patch: pytest.MonkeyPatch) -> None:  # KAFKA-10706
    patch.setattr(list_log.LeaderEpochCache, "truncate_from_end", lambda self, offset: None)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    for seed in range(3000):
        try:
            Protocol(seed).run()
        except (Violation, AssertionError, RuntimeError):
            return
    pytest.fail(f"3000 seeds do not notice that {name.replace('_', ' ')}")
