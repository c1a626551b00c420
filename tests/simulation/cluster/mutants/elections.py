"""Rules of elections: who leads, in which epoch."""

from __future__ import annotations

from broken_rules import Mutants

from logkernel.attrs_lite import evolve
from logkernel.contracts import Elected
from logkernel.controller import election_rules
from logkernel.guards.election import GuardedElection
from logkernel.plugins.election import clean

MUTANTS = Mutants()
mutant = MUTANTS.add


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
def the_last_of_the_isr_is_taken_out(patch):
    before = election_rules._without

    def without(rows, broker, electing):
        for index, row in before(rows, broker, electing):
            alive = tuple(node for node in row.replicas if node in electing.alive)
            yield index, evolve(row, isr=alive[:1] or row.isr) if row.leader == -1 else row

    patch.setattr(election_rules, "_without", without)
