"""Rules broken on purpose in real brokers and clients: what the simulation of the world has to notice.

Each mutant patches one part, so that one rule no longer holds. Some bring a defect back that the simulation found;
those that one seed in fifty finds are held by the named tests of their parts.
"""

from __future__ import annotations

from broken_rules import REPLICATION, Mutants, judge_that_never_diverges

from logkernel.broker.controller.leader_elections import LeaderElections
from logkernel.broker.controller.live_brokers import LiveBrokers
from logkernel.broker.governance import settings_reads
from logkernel.broker.handlers import replica_fetch
from logkernel.broker.replicas import follower_replica, leader_replica
from logkernel.broker.service_host import loading
from logkernel.partition import leader
from logkernel.partition.effects import Effects
from logkernel.partition.follower import Follower
from logkernel.storage.flush import Flush
from logkernel.storage.log import Log

MUTANTS = Mutants.of(REPLICATION)
mutant = MUTANTS.add


# ---------------------------------------------------------------- leaders and followers


@mutant
def a_follower_is_never_told_that_it_diverges(patch):
    """KIP-101."""
    patch.setattr(replica_fetch, "judge_fetch", judge_that_never_diverges)


@mutant
def a_follower_does_not_truncate(patch):
    patch.setattr(Follower, "on_diverging", lambda self, asked, epoch, end_offset: Effects())


@mutant
def a_follower_waits_for_a_flush_that_nobody_begins(patch):
    """Seed 0 found it."""

    patch.setattr(follower_replica.FollowerReplica, "flush_if_owed", lambda self: None)
    patch.setattr(follower_replica.FollowerReplica, "next_deadline", lambda self: self.follower.next_deadline())


@mutant
def a_flush_syncs_nothing(patch):
    patch.setattr(Flush, "run", lambda self: None)


@mutant
def a_new_topic_is_led_by_defaults(patch):
    """What the broker has heard of its settings until then, as of Kafka without `fetchLogConfig`."""
    patch.setattr(settings_reads.TopicSettingsReads, "is_read", lambda self, topic, topic_id: True)


# ---------------------------------------------------------------- the controller


@mutant
def a_broker_that_came_back_is_the_one_that_went(patch):
    """A controller that compares who is alive, and not their epochs."""

    restarted = set()
    compare = LiveBrokers.compare

    def compared(self, registered):
        gone, came = compare(self, registered)
        restarted.clear()
        restarted.update(set(gone) & set(came))
        return gone, came

    def unless_restarted(elect):
        def elects(self, node, *epoch):
            if node not in restarted:
                elect(self, node, *epoch)

        return elects

    patch.setattr(LiveBrokers, "compare", compared)
    for name in ("broker_gone", "broker_came"):
        patch.setattr(LeaderElections, name, unless_restarted(getattr(LeaderElections, name)))


# ---------------------------------------------------------------- producers and transactions


@mutant
def a_committed_reader_reads_to_the_watermark(patch):
    """KIP-98."""
    patch.setattr(leader.Leader, "readable_end", lambda self, isolation: self.high_watermark)


@mutant
def an_abort_is_not_noted(patch):
    patch.setattr(Log, "note_aborted", lambda self, row: None)


@mutant
def a_marker_is_answered_and_not_written(patch):
    """In every third partition that a transaction wrote to."""
    before = leader_replica.LeaderReplica.end_transaction

    def end(self, producer_id, *args, **kwargs):
        if (producer_id + self.name.partition + self.log.end_offset) % 3:
            before(self, producer_id, *args, **kwargs)
        else:
            args[3].deliver(leader_replica.Outcome(0))

    patch.setattr(leader_replica.LeaderReplica, "end_transaction", end)


# ---------------------------------------------------------------- coordinators and groups


@mutant
def a_coordinator_answers_before_it_is_loaded(patch):
    """KAFKA-9065."""

    def replayed(self, steps):
        self._steps = None
        return True

    patch.setattr(loading.Loading, "_replayed", replayed)
