"""Rules broken on purpose, which a simulation has to notice; those that every simulation of replication breaks.

A mutant patches one part so that one rule no longer holds. Its docstring names who paid for the rule.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logkernel.partition import isr, leader
from logkernel.partition.producers import ProducerStates
from logkernel.partition.replica_fetch import READ, judge_fetch

Patch = Callable[[pytest.MonkeyPatch], None]


class Mutants(dict[str, Patch]):
    """Mutants by name."""

    def add(self, patch: Patch) -> Patch:
        """Take one in; a decorator."""
        assert patch.__name__ not in self
        self[patch.__name__] = patch
        return patch

    @classmethod
    def of(cls, *parts: Mutants) -> Mutants:
        """All of several parts."""
        found = cls()
        for part in parts:
            for patch in part.values():
                found.add(patch)
        return found


REPLICATION = Mutants()
mutant = REPLICATION.add


def judge_that_never_diverges(*args, **kwargs):
    """In place of `judge_fetch`, by which a leader tells a follower where their logs part."""
    verdict = judge_fetch(*args, **kwargs)
    return READ if verdict.diverging is not None else verdict


@mutant
def the_watermark_follows_the_leaders_own_log(patch):
    patch.setattr(leader, "high_watermark", lambda current, ends: max(current, next(iter(ends))))


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
def acks_all_is_answered_at_append(patch):
    before = leader.Leader.on_appended

    def on_appended(self, batches, acks, receiver, wall_ms, deadline_ms, marker=None):
        return before(self, batches, 1 if marker is None else acks, receiver, wall_ms, deadline_ms, marker)

    patch.setattr(leader.Leader, "on_appended", on_appended)


@mutant
def who_is_behind_the_watermark_joins(patch):
    """KIP-497."""

    def propose(self, node, high_watermark, epoch_start, eligible, *rest):
        if self.state is not isr.State.COMMITTED or node in self.isr or node not in eligible:
            return None
        return self._propose(isr.Event.EXPAND, self.isr | {node})

    patch.setattr(isr.InSyncReplicas, "propose_expansion", propose)


@mutant
def a_sequence_is_not_checked(patch):
    """KIP-98."""
    patch.setattr(ProducerStates, "check_append", lambda self, facts, guard=None: None)
