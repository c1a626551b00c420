"""Rules of producers: their sequences, and the state that a replica keeps of them."""

from __future__ import annotations

from broken_rules import Mutants

from logkernel.errors import InvalidProducerEpoch
from logkernel.partition import leader, producers
from logkernel.partition.producers import ProducerStates
from logkernel.testing.simulation import list_log
from logkernel.testing.simulation.protocol import replica

MUTANTS = Mutants()
mutant = MUTANTS.add


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


@mutant
def a_duplicate_is_answered_before_its_first_is_committed(patch):
    before = leader.Leader.on_produce

    def on_produce(self, batches, acks, receiver, guard=None, deadline_ms=0):
        kept, self.high_watermark = self.high_watermark, 1 << 40
        effects = before(self, batches, acks, receiver, guard, deadline_ms)
        self.high_watermark = kept
        return effects

    patch.setattr(leader.Leader, "on_produce", on_produce)


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
