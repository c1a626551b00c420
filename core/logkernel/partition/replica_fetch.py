"""A leader's answer to a follower's fetch, before any record is read.

In this order (KAFKA-13837: the epoch first, then membership; KAFKA-12996: the range before what diverges):

    the fetch                                        verdict
    names an older leader epoch                      FENCED_LEADER_EPOCH
    names a newer leader epoch                       UNKNOWN_LEADER_EPOCH
    comes from no replica of the partition           UNKNOWN_LEADER_EPOCH: the leader may not know of it yet
    offset below the log start                       OFFSET_OUT_OF_RANGE
    last epoch known otherwise, or ends before       diverging: the largest epoch at or below, and its end
    offset above the log end                         OFFSET_OUT_OF_RANGE
    all else                                         records from the offset to the log end
"""

from __future__ import annotations

from typing import NamedTuple

from logkernel.errors import FencedLeaderEpoch, KafkaError, OffsetOutOfRange, UnknownLeaderEpoch
from logkernel.partition.follower import Epochs, FetchPosition
from logkernel.vocabulary import NO_EPOCH, OffsetAndEpoch


class Verdict(NamedTuple):
    """Exactly one of the two is set, or neither: then the follower may read from its offset."""

    error: KafkaError | None = None
    diverging: OffsetAndEpoch | None = None


READ = Verdict()


def judge_fetch(
    asked: FetchPosition, *, is_replica: bool, leader_epoch: int, log_start: int, log_end: int, epochs: Epochs
) -> Verdict:
    if asked.leader_epoch < leader_epoch:
        return Verdict(FencedLeaderEpoch(f"the leader's epoch is {leader_epoch}, not {asked.leader_epoch}"))
    if asked.leader_epoch > leader_epoch:
        return Verdict(UnknownLeaderEpoch(f"the leader's epoch is {leader_epoch}, not yet {asked.leader_epoch}"))
    if not is_replica:
        return Verdict(UnknownLeaderEpoch("the follower is not among the replicas that this leader knows"))
    if asked.offset < log_start:
        return Verdict(OffsetOutOfRange(f"offset {asked.offset} is below the log start {log_start}"))
    if asked.last_epoch != NO_EPOCH:
        known = epochs.end_offset_for(asked.last_epoch, log_end)
        if known is None:
            known = OffsetAndEpoch(log_end, epochs.latest)  # the follower's last epoch is above all that are known here
        if known.epoch < asked.last_epoch or known.offset < asked.offset:
            return Verdict(None, known)
    if asked.offset > log_end:
        return Verdict(OffsetOutOfRange(f"offset {asked.offset} is above the log end {log_end}"))
    return READ
