"""Rules of a follower: where it cuts its log, and which answers it takes."""

from __future__ import annotations

from broken_rules import Mutants, judge_that_never_diverges

from logkernel.partition import follower, leader
from logkernel.partition.replica_fetch import READ, Verdict, judge_fetch
from logkernel.testing.simulation import list_log
from logkernel.testing.simulation.protocol import replica
from logkernel.vocabulary import OffsetAndEpoch

MUTANTS = Mutants()
mutant = MUTANTS.add


@mutant
def a_follower_is_never_told_that_it_diverges(patch):
    """KIP-101."""
    patch.setattr(replica, "judge_fetch", judge_that_never_diverges)


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
