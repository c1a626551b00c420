"""Rules broken on purpose in the machines, or in the hands that carry them out: what the simulation of the protocol has
to notice. A file holds the rules of one part."""

from __future__ import annotations

from broken_rules import REPLICATION, Mutants

from . import controllers, elections, followers, in_sync_replicas, producers

MUTANTS = Mutants.of(
    REPLICATION,
    followers.MUTANTS,
    in_sync_replicas.MUTANTS,
    producers.MUTANTS,
    elections.MUTANTS,
    controllers.MUTANTS,
)
UNTOLD = {
    "a_leader_notes_no_epoch_until_it_writes": "an unknown last epoch is answered with the leader's log end: the same",
    "a_refusal_of_an_older_attempt_counts": "whoever was refused is never eligible again in that life",
    "an_older_partition_epoch_is_written": "proposals are not overtaken",
    "a_controller_behind_the_leader_fences_it": "a controller loads all that was kept before it answers",
}
"""Mutants that no history can tell from the original, and why; unit tests hold their rules (decision 043)."""
