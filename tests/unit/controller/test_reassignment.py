"""Partitions that move to other brokers: each row of the table, and steps that are not taken."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.contracts import MetadataChange
from logkernel.controller import reassignment
from logkernel.controller.image import ClusterImage, Partition, Topic
from logkernel.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)

ALIVE = (1, 2, 3, 4)


def nodes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text))


def row(replicas: str, isr: str, leader: int, epoch: int, adding: str = "", removing: str = "") -> Partition:
    return Partition(nodes(replicas), nodes(isr), leader, epoch, epoch, nodes(adding), nodes(removing))


def image(*rows: Partition) -> ClusterImage:
    return ClusterImage.of([Topic("t", UUID(int=1), list(rows)).change()])


def asked(target: str | None, *, index: int = 0, factor_may_change: bool = True) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(index, None if target is None else list(nodes(target)))
    return AlterPartitionReassignmentsRequest(60_000, factor_may_change, [ReassignableTopic("t", [partition])])


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        (row("12", "12", 1, 0), "34", row("3412", "12", 1, 1, "34", "12")),
        (row("12", "12", 1, 0), "13", row("132", "12", 1, 1, "3", "2")),
        (row("12", "12", 1, 0), "123", row("123", "12", 1, 1, "3")),
        (row("12", "12", 1, 0), "12", row("12", "12", 1, 0)),
        (row("12", "12", 1, 0), "21", row("21", "12", 1, 1)),
        (row("12", "12", 1, 0), "2", row("2", "2", 2, 1)),
        (row("3412", "12", 1, 1, "34", "12"), "14", row("142", "12", 1, 2, "4", "2")),
        (row("3412", "312", 3, 1, "34", "12"), "42", row("421", "12", 2, 2, "4", "1")),
        (row("3412", "12", 1, 1, "34", "12"), None, row("12", "12", 1, 2)),
        (row("3412", "312", 3, 1, "34", "12"), None, row("12", "12", 1, 2)),
    ],
)
def test_a_move_begins_is_replaced_and_is_cancelled(before: Partition, target: str | None, after: Partition) -> None:
    cluster = image(before)
    result = reassignment.alter_reassignments(asked(target), cluster, ALIVE)
    assert result.response.responses[0].partitions[0].error_code == 0
    assert len(result.changes) == len(result.effects.leaders) == (before != after)
    cluster.apply_all(result.changes)
    assert cluster.topics["t"].partitions == [after]
    assert ClusterImage.of(cluster.snapshot()) == cluster


@pytest.mark.parametrize(
    ("before", "alive", "after"),
    [
        (row("3412", "3412", 1, 1, "34", "12"), ALIVE, row("34", "34", 3, 2)),
        (row("3412", "3412", 4, 1, "34", "12"), ALIVE, row("34", "34", 4, 2)),
        (row("132", "132", 1, 1, "3", "2"), ALIVE, row("13", "13", 1, 2)),
        (row("3412", "3412", 1, 1, "34", "12"), (1, 2, 4), row("34", "34", 4, 2)),
        (row("3412", "312", 1, 1, "34", "12"), ALIVE, None),
        (row("3412", "3412", 1, 1, "34", "12"), (1, 2), None),
        (row("12", "12", 1, 1), ALIVE, None),
    ],
)
def test_a_move_ends_when_its_target_is_in_sync(
    before: Partition, alive: tuple[int, ...], after: Partition | None
) -> None:
    cluster = image(before)
    result = reassignment.finish(cluster, [("t", 0), ("t", 9), ("gone", 0)], alive)
    cluster.apply_all(result.changes)
    assert cluster.topics["t"].partitions == [after or before]


@pytest.mark.parametrize(
    ("request_", "before", "error"),
    [
        (asked(None), row("12", "12", 1, 0), NoReassignmentInProgress),
        (asked("19"), row("12", "12", 1, 0), InvalidReplicaAssignment),
        (asked("11"), row("12", "12", 1, 0), InvalidReplicaAssignment),
        (asked("123", factor_may_change=False), row("12", "12", 1, 0), InvalidReplicationFactor),
        (asked("12", index=1), row("12", "12", 1, 0), UnknownTopicOrPartition),
        (asked("12"), row("3412", "3", 3, 1, "34", "12"), InvalidReplicaAssignment),
        (asked(None), row("3412", "3", 3, 1, "34", "12"), InvalidReplicaAssignment),
    ],
)
def test_what_cannot_be_is_refused(
    request_: AlterPartitionReassignmentsRequest, before: Partition, error: type
) -> None:
    result = reassignment.alter_reassignments(request_, image(before), ALIVE)
    assert result.response.responses[0].partitions[0].error_code == error.code  # type: ignore[attr-defined]
    assert result.changes == []


def test_what_moves_is_listed() -> None:
    cluster = image(row("12", "12", 1, 0), row("3412", "12", 1, 1, "34", "12"))
    (topic,) = reassignment.list_reassignments(ListPartitionReassignmentsRequest(), cluster).topics
    (found,) = topic.partitions
    assert (found.partition_index, found.replicas, found.adding_replicas, found.removing_replicas) == (
        1, [3, 4, 1, 2], [3, 4], [1, 2]
    )  # fmt: skip
    named = ListPartitionReassignmentsRequest(topics=[ListPartitionReassignmentsTopics("t", [0, 7])])
    assert reassignment.list_reassignments(named, cluster).topics == []


def move_asked(target: str, *, index: int = 0, topic: str = "t") -> MetadataChange:
    return MetadataChange("asked_move", f"{topic}:{index}", {"replicas": list(nodes(target))})


@pytest.mark.parametrize(
    ("before", "target", "after", "is_answered"),
    [
        (row("12", "12", 1, 0), "34", row("3412", "12", 1, 1, "34", "12"), False),
        (row("12", "12", 1, 0), "21", row("21", "12", 1, 1), True),
        (row("12", "12", 1, 0), "12", row("12", "12", 1, 0), True),
        (row("3412", "12", 1, 1, "34", "12"), "34", row("3412", "12", 1, 1, "34", "12"), False),
        (row("3412", "12", 1, 1, "34", "12"), "14", row("142", "12", 1, 2, "4", "2"), False),
    ],
)
def test_a_move_that_was_asked_for_over_the_coordination_begins_once(
    before: Partition, target: str, after: Partition, is_answered: bool
) -> None:
    now = image(before)
    found = reassignment.take_up(now, [move_asked(target)], ALIVE)
    assert found.response == []
    now.apply_all(found.changes)
    assert now.topics["t"].partitions[0] == after
    assert (MetadataChange("asked_move", "t:0", None) in found.changes) is is_answered


@pytest.mark.parametrize("wrong", [move_asked("15"), move_asked("1", index=7), move_asked("1", topic="none")])
def test_a_move_that_was_asked_for_and_cannot_be_is_answered_and_hinders_no_other(wrong: MetadataChange) -> None:
    found = reassignment.take_up(image(row("12", "12", 1, 0)), [wrong, move_asked("13")], ALIVE)
    assert [key for key, _ in found.response] == [wrong.key]
    assert [(change.kind, change.key) for change in found.changes] == [
        ("asked_move", wrong.key), ("partition", "t:0"),
    ]  # fmt: skip
