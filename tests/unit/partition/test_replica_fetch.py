"""A leader's verdict on a follower's fetch: one case for each row of the table, in its order."""

import re

import pytest
from drawn import drawn

from logkernel.partition import replica_fetch as module
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


CASES = {
    "names an older leader epoch": [judged(99, 9, 4, is_replica=False)],
    "names a newer leader epoch": [judged(99, 9, 6, is_replica=False)],
    "comes from no replica of the partition": [judged(99, 9, is_replica=False), judged(3, 9, is_replica=False)],
    "offset below the log start": [judged(3, 4), judged(3, -1)],
    "last epoch known otherwise, or ends before": [judged(15, 4), judged(25, 3), judged(31, 5), judged(10, 7)],
    "offset above the log end": [judged(31, -1)],
    "all else": [judged(30, 5), judged(20, 3), judged(15, 3), judged(4, -1), judged(10, 2)],
}
TABLE = drawn(module.__doc__, "the fetch", "verdict")


def told(verdict: Verdict) -> str:
    """As the table names it."""
    if verdict.error is not None:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(verdict.error).__name__).upper()
    return "records from the offset to the log end" if verdict == READ else "diverging"


@pytest.mark.parametrize(("fetch", "verdict"), TABLE)
def test_a_fetch_is_judged_as_drawn(fetch: str, verdict: str) -> None:
    assert {told(one) for one in CASES[fetch]} == {verdict.split(":")[0]}


def test_every_row_is_tried_in_its_order() -> None:
    assert [fetch for fetch, _ in TABLE] == list(CASES)


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
