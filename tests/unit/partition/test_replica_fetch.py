"""A leader's verdict on a follower's fetch: one case for each row of the table, in its order."""

import pytest

from logkernel.errors import FencedLeaderEpoch, OffsetOutOfRange, UnknownLeaderEpoch
from logkernel.partition.follower import FetchPosition
from logkernel.partition.replica_fetch import READ, Verdict, judge_fetch
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import OffsetAndEpoch


def judged(offset: int, last_epoch: int, leader_epoch: int = 5, *, is_replica: bool = True) -> Verdict:
    epochs = LeaderEpochCache(SimulatedDisk(), "/epochs")
    for epoch, start in ((2, 0), (3, 10), (5, 20)):
        epochs.assign(epoch, start)
    return judge_fetch(
        FetchPosition(offset, last_epoch, leader_epoch, 0),
        is_replica=is_replica, leader_epoch=5, log_start=4, log_end=30, epochs=epochs,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        (judged(99, 9, 4, is_replica=False), FencedLeaderEpoch),
        (judged(99, 9, 6, is_replica=False), UnknownLeaderEpoch),
        (judged(99, 9, is_replica=False), UnknownLeaderEpoch),
        (judged(3, 4), OffsetOutOfRange),
        (judged(31, 5), None),
        (judged(31, -1), OffsetOutOfRange),
    ],
)
def test_what_is_refused(verdict: Verdict, error: type | None) -> None:
    assert (type(verdict.error) if verdict.error else None) is error


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (15, 4, OffsetAndEpoch(20, 3)),
        (25, 3, OffsetAndEpoch(20, 3)),
        (12, 2, OffsetAndEpoch(10, 2)),
        (31, 5, OffsetAndEpoch(30, 5)),
        (10, 7, OffsetAndEpoch(30, 5)),
    ],
)
def test_where_logs_diverge(offset: int, last_epoch: int, diverging: OffsetAndEpoch) -> None:
    assert judged(offset, last_epoch).diverging == diverging


@pytest.mark.parametrize(("offset", "last_epoch"), [(30, 5), (20, 3), (15, 3), (4, -1), (10, 2)])
def test_what_may_be_read(offset: int, last_epoch: int) -> None:
    assert judged(offset, last_epoch) == READ
