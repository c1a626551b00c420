"""A share-partition: who holds which record, until when, and what becomes of it."""

from __future__ import annotations

import pytest

from logkernel.errors import InvalidRecordState, InvalidRequest
from logkernel.plugins.services.shares.partitions.partition import (
    TRANSITIONS,
    Change,
    Event,
    Limits,
    SharePartition,
    State,
    Stretch,
)

ACCEPT, RELEASE, REJECT, RENEW, GAP = [1], [2], [3], [4], [0]
LOCK_MS = 100


def made(start: int = 0, known: tuple[Change, ...] = (), *, delivery: int = 3, in_flight: int = 1000) -> SharePartition:
    return SharePartition(start, known, Limits(delivery, in_flight, LOCK_MS))


def rows(*spans: tuple[int, int]) -> list[Stretch]:
    return [Stretch(first, last) for first, last in spans]


def shown(partition: SharePartition) -> str:
    """Runs as `0-4 ACQUIRED/1 m`, after the start offset."""
    parts = [
        f"{run.first}-{run.last} {run.state.name}/{run.deliveries}" + (f" {run.member}" if run.member else "")
        for run in partition.runs
    ]
    return f"{partition.start}| " + ", ".join(parts)


def settle(partition: SharePartition) -> None:
    while partition.begin_write() is not None:
        partition.end_write(kept=True)


def test_the_table_names_every_change() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)
    assert {state for state, _ in TRANSITIONS} == {State.AVAILABLE, State.ACQUIRED}


def test_new_records_are_acquired_by_whole_batches() -> None:
    partition = made()
    given = partition.acquire("m", 0, rows((0, 3), (4, 9), (10, 12)), 6, 0)
    assert given == [(0, 9, 1)]
    assert partition.next_offset() == 10
    assert shown(partition) == "0| 0-9 ACQUIRED/1 m"


def test_a_record_limit_may_cut_a_batch() -> None:
    partition = made()
    assert partition.acquire("m", 0, rows((0, 3), (4, 9)), 6, 0, strict=True) == [(0, 5, 1)]
    assert partition.next_offset() == 6
    assert partition.acquire("n", 6, rows((4, 9)), 2, 0, strict=True) == [(6, 7, 1)]


def test_acquired_rows_are_cut_near_the_batch_size() -> None:
    partition = made()
    assert partition.acquire("m", 0, rows((0, 1), (2, 3), (4, 5), (6, 6)), 100, 0, batch_size=3) == [
        (0, 3, 1),
        (4, 6, 1),
    ]


def test_a_record_is_acquired_once() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 9)), 5, 0)
    assert partition.acquire("n", 0, rows((0, 9)), 5, 0) == []


def test_in_flight_records_are_limited() -> None:
    partition = made(in_flight=10)
    partition.acquire("m", 0, rows((0, 4), (5, 11), (12, 13)), 100, 0)
    assert shown(partition) == "0| 0-11 ACQUIRED/1 m"
    assert partition.next_offset() is None
    partition.acknowledge("m", 0, 5, ACCEPT, 0)
    settle(partition)
    assert partition.next_offset() == 12


@pytest.mark.parametrize(
    ("types", "left"),
    [
        (ACCEPT, "10| "),
        (REJECT, "10| "),
        (GAP, "10| "),
        (RELEASE, "0| 0-9 AVAILABLE/1"),
        (RENEW, "0| 0-9 ACQUIRED/1 m"),
    ],
)
def test_every_word(types: list[int], left: str) -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 9)), 5, 0)
    partition.acknowledge("m", 0, 9, types, 50)
    settle(partition)
    assert shown(partition) == left


def test_a_word_for_each_record_splits_a_batch() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 4)), 5, 0)
    partition.acknowledge("m", 0, 4, [1, 2, 3, 1, 4], 0)
    settle(partition)
    assert shown(partition) == ("1| 1-1 AVAILABLE/1, 2-2 ARCHIVED/1, 3-3 ACKNOWLEDGED/1, 4-4 ACQUIRED/1 m")
    assert partition.acquire("n", 1, rows((0, 4)), 5, 0) == [(1, 1, 2)]


def test_what_is_released_at_the_limit_is_archived() -> None:
    partition = made(delivery=2)
    for _ in range(2):
        assert partition.next_offset() == 0
        partition.acquire("m", 0, rows((0, 0)), 1, 0)
        partition.acknowledge("m", 0, 0, RELEASE, 0)
        settle(partition)
    assert shown(partition) == "1| "


def test_a_lock_times_out_and_a_renewed_one_later() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 1)), 5, 0)
    partition.acknowledge("m", 1, 1, RENEW, 60)
    assert partition.next_due_ms() == LOCK_MS
    assert not partition.expire(LOCK_MS - 1)
    assert partition.expire(LOCK_MS)
    assert shown(partition) == "0| 0-0 AVAILABLE/1, 1-1 ACQUIRED/1 m"
    assert partition.next_due_ms() == 60 + LOCK_MS


def test_what_is_being_written_neither_times_out_nor_hears_another_word() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 1)), 5, 0)
    partition.acknowledge("m", 0, 1, ACCEPT, 0)
    assert partition.begin_write() is not None
    assert not partition.expire(LOCK_MS)
    assert not partition.release("m")
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("m", 0, 0, RELEASE, 0)
    partition.end_write(kept=False)
    assert partition.expire(LOCK_MS)
    assert shown(partition) == "0| 0-1 AVAILABLE/1"


def test_only_the_holder_has_a_word() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 1)), 5, 0)
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("n", 0, 1, ACCEPT, 0)
    with pytest.raises(InvalidRequest):
        partition.acknowledge("m", 0, 2, ACCEPT, 0)
    partition.expire(LOCK_MS)
    with pytest.raises(InvalidRecordState):
        partition.acknowledge("m", 0, 1, ACCEPT, LOCK_MS)


def test_a_request_holds_whole_or_not_at_all() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 3)), 5, 0)
    mark = partition.mark()
    partition.acknowledge("m", 0, 1, ACCEPT, 0)
    partition.undo(mark)
    assert shown(partition) == "0| 0-3 ACQUIRED/1 m"
    assert partition.begin_write() is None


def test_one_write_at_a_time_and_its_start_is_true() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 5)), 10, 0)
    partition.acknowledge("m", 0, 1, ACCEPT, 0)
    first = partition.begin_write()
    assert first is not None
    assert (first.start, first.complete, first.changes) == (2, 0, ())
    partition.acknowledge("m", 4, 5, ACCEPT, 0)
    assert partition.begin_write() is None
    partition.end_write(kept=True)
    second = partition.begin_write()
    assert second is not None
    assert (second.start, second.complete) == (2, 2)
    assert second.changes == ((4, 5, State.ACKNOWLEDGED, 1),)


def test_gaps_in_the_log_are_archived() -> None:
    partition = made()
    given = partition.acquire("m", 0, [Stretch(3, 4), Stretch(5, 5, deliverable=False), Stretch(8, 9)], 10, 0)
    assert given == [(3, 4, 1), (8, 9, 1)]
    assert shown(partition) == "3| 3-4 ACQUIRED/1 m, 5-7 ARCHIVED/0, 8-9 ACQUIRED/1 m"


def test_records_that_are_compacted_away_are_not_waited_for() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 9)), 10, 0)
    partition.release("m")
    assert partition.acquire("m", 0, rows((6, 9)), 10, 0) == [(6, 9, 2)]
    assert partition.start == 6


def test_the_log_start_moves_the_start() -> None:
    partition = made()
    partition.acquire("m", 0, rows((0, 9)), 10, 0)
    partition.advance(4)
    assert shown(partition) == "4| 4-9 ACQUIRED/1 m"
    partition.acknowledge("m", 0, 5, ACCEPT, 0)  # what is gone is passed over
    settle(partition)
    assert partition.start == 6
    partition.advance(20)
    assert (partition.start, partition.end, partition.next_offset()) == (20, 20, 20)
    partition.advance(3)
    assert partition.start == 20


def test_it_goes_on_from_what_was_kept() -> None:
    known = (Change(7, 8, State.ACKNOWLEDGED, 1), Change(10, 10, State.AVAILABLE, 2), Change(2, 3, State.ARCHIVED, 1))
    partition = made(5, known)
    assert shown(partition) == "5| 5-6 AVAILABLE/0, 7-8 ACKNOWLEDGED/1, 9-9 AVAILABLE/0, 10-10 AVAILABLE/2"
    assert partition.acquire("m", 5, rows((0, 20)), 100, 0) == [(5, 6, 1), (9, 9, 1)]
    assert partition.acquire("m", 10, rows((0, 20)), 100, 0) == [(10, 10, 3)], "the last time it is alone"
    assert partition.acquire("m", 11, rows((0, 20)), 100, 0) == [(11, 20, 1)]


@pytest.mark.parametrize(
    ("limit", "last", "expected"),
    [
        (2, 7, "0-7:1 0-7:2"),
        (3, 3, "0-3:1 0-3:2 0-0:3 1-1:3 2-2:3 3-3:3"),
        (4, 7, "0-7:1 0-7:2 0-3:3 0-0:4 1-1:4 2-2:4 3-3:4 4-7:3 4-4:4 5-5:4 6-6:4 7-7:4"),
        (5, 5, "0-5:1 0-5:2 0-5:3 0-2:4 0-0:5 1-1:5 2-2:5 3-5:4 3-3:5 4-4:5 5-5:5"),
        (7, 7, "0-7:1 0-7:2 0-7:3 0-7:4 0-3:5 0-1:6 0-0:7 1-1:7 2-3:6 2-2:7 3-3:7 4-7:5 4-5:6"),
        (
            10,
            63,
            "0-63:1 0-63:2 0-63:3 0-63:4 0-63:5 0-31:6 0-15:7 0-7:8 0-3:9 0-0:10 1-1:10 2-2:10 3-3:10 4-7:9 4-4:10"
            " 5-5:10 6-6:10 7-7:10 8-15:8 8-11:9 8-8:10",
        ),
    ],
)
def test_what_fails_again_and_again_comes_in_ever_smaller_parts(limit: int, last: int, expected: str) -> None:
    """The parts that Kafka 4.3.1 delivers while a member releases all that it is given."""
    partition = made(delivery=limit)
    found = []
    for _ in expected.split():
        offset = partition.next_offset()
        assert offset is not None
        (given,) = partition.acquire("m", offset, rows((0, last // 2), (last // 2 + 1, last)), 100, 0)
        found.append("{}-{}:{}".format(*given))
        partition.acknowledge("m", given.first, given.last, RELEASE, 0)
        settle(partition)
    assert " ".join(found) == expected


def test_a_part_keeps_to_the_batch_that_failed() -> None:
    partition = made(delivery=4)
    for first, last in ((0, 3), (4, 9)):
        partition.acquire("m", first, rows((first, last)), 100, 0)
    for _ in range(2):
        partition.acknowledge("m", 0, 9, RELEASE, 0)
        settle(partition)
        given = partition.acquire("m", 0, rows((0, 3), (4, 9)), 100, 0)
    assert given == [(0, 1, 3)], "half of four"
    assert partition.acquire("m", 2, rows((0, 3), (4, 9)), 100, 0) == [(2, 3, 3)]
    assert partition.acquire("m", 4, rows((0, 3), (4, 9)), 100, 0) == [(4, 6, 3)]
