"""The durable state of share-partitions: batches laid over one another, fencing, snapshots, pruning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any, overload
from uuid import UUID

import pytest
from attrs import define, field

from logkernel.contracts import Decision, RequestContext
from logkernel.plugins.services.shares.state.batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, Batch, overlay
from logkernel.plugins.services.shares.state.machine import MAX_BATCHES, ShareStateMachine
from logkernel.plugins.services.shares.state.records import SNAPSHOT, decode_key
from logkernel.requests import share_state as requests
from logkernel.requests.offsets import DeleteRecordsRequest
from logkernel.vocabulary import Record

ID = UUID(int=7)


@pytest.mark.parametrize(
    ("old", "new", "start", "expected"),
    [
        ([], [(0, 9, 2, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 9, 0, 1)], [(3, 4, 2, 2)], 0, [(0, 2, 0, 1), (3, 4, 2, 2), (5, 9, 0, 1)]),
        ([(0, 2, 0, 1), (5, 9, 0, 1)], [(1, 6, 4, 2)], 0, [(0, 0, 0, 1), (1, 6, 4, 2), (7, 9, 0, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], 0, [(0, 9, 2, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], 3, [(3, 9, 2, 1)]),
        ([(0, 4, 2, 1)], [], 5, []),
        ([(0, 4, 2, 3)], [(0, 4, 0, 2)], 0, [(0, 4, 2, 3)]),
        ([(0, 4, 2, 2)], [(0, 4, 0, 2)], 0, [(0, 4, 2, 2)]),
        ([(2, 3, 0, 1)], [(0, 9, 0, 2)], 0, [(0, 9, 0, 2)]),
    ],
)
def test_newer_batches_over_older_ones(old: Any, new: Any, start: int, expected: Any) -> None:
    found = overlay([Batch(*one) for one in old], [Batch(*one) for one in new], start)
    assert [tuple(batch) for batch in found] == expected


@define
class Log:
    """A shard in a host that appends and replays."""

    machine: ShareStateMachine
    wall_ms: int = 1_000_000
    mono_ms: int = 0
    records: list[Record] = field(factory=list)

    def carry(self, decision: Decision) -> Decision:
        for record in decision.records:
            record.offset = len(self.records)
            self.records.append(record)
            self.machine.replay(record)
        return decision

    def ask(self, request: Any) -> Any:
        decision = self.carry(self.machine.on_request(request, RequestContext(), 1, self.wall_ms, self.mono_ms))
        return decision.answers[0][1].results[0].partitions[0]

    def write(self, *batches: tuple[int, int, int, int], start: int = -1, state: int = 1, leader: int = 0) -> int:
        rows = [requests.WriteStateDataPartitionDataStateBatch(*batch) for batch in batches]
        row = requests.WriteStateDataPartitionData(0, state, leader, start, 5, rows)
        return int(self.ask(requests.WriteShareGroupStateRequest("g", [requests.WriteStateData(ID, [row])])).error_code)

    def initialize(self, state: int, start: int, group: str = "g") -> int:
        row = requests.InitializeStateDataPartitionData(0, state, start)
        request = requests.InitializeShareGroupStateRequest(group, [requests.InitializeStateData(ID, [row])])
        return int(self.ask(request).error_code)

    def read(self, leader: int = 0) -> Any:
        row = requests.ReadStateDataPartitionData(0, leader)
        return self.ask(requests.ReadShareGroupStateRequest("g", [requests.ReadStateData(ID, [row])]))

    def summary(self, leader: int = -1, partition: int = 0) -> Any:
        row = requests.ReadStateSummaryDataPartitionData(partition, leader)
        return self.ask(requests.ReadShareGroupStateSummaryRequest("g", [requests.ReadStateSummaryData(ID, [row])]))

    def delete(self) -> int:
        row = requests.DeleteStateDataPartitionData(0)
        request = requests.DeleteShareGroupStateRequest("g", [requests.DeleteStateData(ID, [row])])
        return int(self.ask(request).error_code)

    def tick(self, ms: int) -> Decision:
        self.wall_ms += ms
        self.mono_ms += ms
        return self.carry(self.machine.on_timer(self.wall_ms, self.mono_ms))


class OneTopic:
    def topic_name(self, topic_id: UUID) -> str | None:
        return "t" if topic_id == ID else None

    def partition_count(self, topic: str) -> int:
        return 1


def machine() -> ShareStateMachine:
    return ShareStateMachine(3, 2, 1_000, 5_000, OneTopic())  # type: ignore[arg-type]


@pytest.fixture
def log() -> Log:
    made = Log(machine())
    assert made.initialize(1, -1) == 0
    return made


def kinds(log: Log) -> list[str]:
    found = [decode_key(record.key or b"") for record in log.records]
    return ["snapshot" if one is not None and one[0] == SNAPSHOT else "update" for one in found]


def test_what_is_written_is_read(log: Log) -> None:
    assert log.read().start_offset == -1
    assert log.write((4, 5, ACKNOWLEDGED, 1), (7, 7, AVAILABLE, 2), start=3) == 0
    row = log.read()
    assert (row.state_epoch, row.start_offset) == (1, 3)
    assert [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in row.state_batches] == [
        (4, 5, ACKNOWLEDGED, 1),
        (7, 7, AVAILABLE, 2),
    ]
    told = log.summary()
    assert (told.start_offset, told.delivery_complete_count) == (3, 5)


def test_updates_become_a_snapshot_and_the_log_folds_to_the_same(log: Log) -> None:
    for offset in range(5):
        log.write((offset, offset, ACKNOWLEDGED, 1), start=0)
    assert kinds(log) == ["snapshot", "update", "update", "snapshot", "update", "update"]
    again = machine()
    for record in log.records:
        again.replay(record)
    assert again.states == log.machine.states
    only = machine()
    for record in log.records[3:]:
        only.replay(record)
    assert only.states == log.machine.states


def test_old_leaders_and_old_states_are_fenced(log: Log) -> None:
    assert log.write((0, 0, ARCHIVED, 1), leader=5) == 0
    assert log.write((0, 0, ARCHIVED, 1), leader=4) == 74
    assert log.read(4).error_code == 74
    assert log.summary(4).error_code == 74
    assert log.write((0, 0, ARCHIVED, 1), leader=5, state=0) == 124
    assert log.initialize(0, 9) == 124
    assert log.read(6).error_code == 0
    assert log.write((0, 0, ARCHIVED, 1), leader=5) == 74, "the read of a newer leader fences the older"


def test_a_new_state_epoch_begins_anew(log: Log) -> None:
    log.write((4, 5, ACKNOWLEDGED, 1), start=3)
    assert log.initialize(2, 1) == 0
    row = log.read()
    assert (row.state_epoch, row.start_offset, row.state_batches) == (2, 1, [])
    assert log.write((1, 1, ARCHIVED, 1), state=1) == 124


def test_the_start_never_falls(log: Log) -> None:
    log.write(start=8)
    log.write(start=5)
    log.write(start=-1)
    assert log.read().start_offset == 8


def test_what_is_deleted_is_not_known(log: Log) -> None:
    assert log.delete() == 0
    assert log.delete() == 0
    assert (log.read().start_offset, log.read().state_epoch) == (-1, 0)
    assert log.machine.states == {}
    assert log.write((4, 4, ACKNOWLEDGED, 1), start=4, state=0) == 0
    assert log.read().start_offset == 4


def test_a_late_write_does_not_bring_back_what_was_deleted(log: Log) -> None:
    """It came back in its old state epoch, by which the same group was fenced off when it was made anew."""
    log.initialize(7, 0)
    log.delete()
    assert log.write((4, 4, ACKNOWLEDGED, 1), start=4, state=7) == 42
    assert log.machine.states == {}
    assert log.initialize(1, 0) == 0


@pytest.mark.parametrize(
    "batch",
    [
        (9, 3, ACKNOWLEDGED, 1),
        (-5, 3, ACKNOWLEDGED, 1),
        (0, 2**63 - 1, ACKNOWLEDGED, 1),
        (0, 9, 77, 1),
        (0, 9, -1, 1),
        (0, 9, ACQUIRED, 1),
        (0, 9, ACKNOWLEDGED, -1),
        (0, 9, AVAILABLE, 2**15 - 1),
    ],
)
def test_what_the_next_leader_could_not_read_is_refused(log: Log, batch: tuple[int, int, int, int]) -> None:
    """A delivery state that is none raised in the broker of each leader that read it, and no record was delivered."""
    assert log.write((0, 3, ACKNOWLEDGED, 1), batch) == 42
    assert kinds(log) == ["snapshot"]
    assert log.read().state_batches == []


def test_epochs_and_starts_that_no_leader_has_are_refused(log: Log) -> None:
    assert log.write(start=-2) == 42
    assert log.write(leader=-1) == 42
    assert log.write(state=-1) == 42
    assert log.initialize(-1, 0, group="h") == 42
    assert log.initialize(1, -2, group="h") == 42
    assert kinds(log) == ["snapshot"]


def test_a_state_grows_to_what_one_record_holds(log: Log) -> None:
    """Each write fitted into a record, and the snapshot of them all did not: no write was possible any more."""
    half = MAX_BATCHES // 2
    rows = [(2 * index, 2 * index, ACKNOWLEDGED, 1) for index in range(MAX_BATCHES + 1)]
    assert log.write(*rows) == 42, "more at once than a state keeps"
    assert log.write(*rows[:half]) == 0
    assert log.write(*rows[half:MAX_BATCHES]) == 0
    assert log.write(rows[MAX_BATCHES]) == 42
    assert log.write((0, 2 * MAX_BATCHES, ACKNOWLEDGED, 1)) == 0, "what makes it smaller is taken"
    assert len(log.read().state_batches) == 1
    assert max(len(record.value or b"") for record in log.records) < 2**20


def test_many_batches_that_overlap_are_laid_in_time_for_their_number() -> None:
    """Each was compared to each: a million of them held up the broker for days."""
    count = 100_000
    rows = [Batch(index, index + 500, ACKNOWLEDGED if index % 2 else ARCHIVED, 1 + index % 3) for index in range(count)]
    found = overlay((), rows, 0)
    assert (found[0].first, found[-1].last) == (0, count + 499)
    assert all(one.last + 1 == other.first for one, other in pairwise(found))


def test_a_small_write_to_a_large_state_looks_at_what_it_touches() -> None:
    """A state of 50,000 batches and 500 writes took a broker 50 seconds to load, in which it answered nobody."""

    class Looked(Sequence[Batch]):
        count = 0

        def __len__(self) -> int:
            return MAX_BATCHES

        @overload
        def __getitem__(self, at: int) -> Batch: ...

        @overload
        def __getitem__(self, at: slice) -> Sequence[Batch]: ...

        def __getitem__(self, at: int | slice) -> Batch | Sequence[Batch]:
            if isinstance(at, slice):
                return self if at == slice(0, None) else rows[at]
            self.count += 1
            return rows[at]

    rows = [Batch(2 * index, 2 * index, ACKNOWLEDGED, 1) for index in range(MAX_BATCHES)]
    looked = Looked()
    found = overlay(looked, [Batch(40_001, 40_001, ACKNOWLEDGED, 1)], 0)
    assert looked.count < 100
    assert found == (*rows[:20_000], Batch(40_000, 40_002, ACKNOWLEDGED, 1), *rows[20_002:])


@pytest.mark.parametrize("seed", range(30))
def test_each_offset_has_the_highest_of_all_batches(seed: int) -> None:
    chance = Random(seed)

    def some(count: int) -> list[Batch]:
        firsts = [chance.randrange(40) for _ in range(count)]
        return [
            Batch(first, first + chance.randrange(9), chance.choice((0, 2, 4)), chance.randrange(1, 4))
            for first in firsts
        ]

    old = overlay((), some(6), 0)
    new = some(5)
    found = overlay(old, new, 3)
    for offset in range(3, 60):
        held = [batch for batch in (*old, *new) if batch.first <= offset <= batch.last]
        best = max(((batch.deliveries, batch.state) for batch in held), default=None)
        (*ruling,) = [(batch.deliveries, batch.state) for batch in found if batch.first <= offset <= batch.last]
        assert ruling == ([best] if held else [])


def test_requests_that_are_refused(log: Log) -> None:
    assert log.write((5, 4, ACKNOWLEDGED, 1)) == 42
    assert log.summary(partition=1).error_code == 3
    assert log.summary(partition=-1).error_code == 42
    assert log.initialize(1, 0, group="") == 42


def test_what_no_state_needs_is_deleted_from_the_log(log: Log) -> None:
    log.initialize(1, 0, group="other")
    for offset in range(3):
        log.write((offset, offset, ACKNOWLEDGED, 1), start=0)
    decision = log.tick(1_000)
    (asked,) = [request for _, request in decision.sends]
    assert isinstance(asked, DeleteRecordsRequest)
    assert (asked.topics[0].name, asked.topics[0].partitions[0].partition_index) == ("__share_group_state", 3)
    assert asked.topics[0].partitions[0].offset == 1, "the snapshot of the other is still needed"
    assert log.tick(1_000).sends == []
    log.wall_ms += 5_000
    log.write((9, 9, ACKNOWLEDGED, 1), start=0)
    assert len(log.tick(1_000).records) == 1, "the cold one gets a new snapshot"
    (asked,) = [request for _, request in log.tick(1_000).sends]
    assert asked.topics[0].partitions[0].offset == 4
    log.wall_ms += 5_000
    assert log.tick(1_000).records == [], "where nobody writes nothing is held back"
