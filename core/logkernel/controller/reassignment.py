"""Reassignment of partitions to other brokers (KIP-455).

A reassignment begins, waits until every target replica is in sync, and ends. Meanwhile the partition has both the old
and the target replicas, and names those that are being added and removed:

    event                          replicas          adding      removing   leader
    at rest                        O                                        of O
    target T is asked for          T, then O - T     T - O       O - T      stays
    another target U, meanwhile    U, then O - U     U - O       O - U      stays, if it is one of these
    cancelled, meanwhile           O                                        stays if of O, else the first in sync
    all of T are in sync           T                                        stays if of T, else the first in sync

Each step has a new leader epoch, so that the replicas get orders. O are the replicas without a reassignment: the
present ones without those being added. Removed replicas leave the ISR. A step that would leave no replica in sync, or
no live leader, is not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from logkernel.attrs_lite import evolve
from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects, LeaderChange
from logkernel.controller.image import ClusterImage, Partition, partition_change
from logkernel.controller.placement import check_assignment
from logkernel.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
)
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

Name = tuple[str, int]
"""(topic, partition)."""


def is_moving(row: Partition) -> bool:
    return bool(row.adding or row.removing)


def alter_reassignments(
    request: AlterPartitionReassignmentsRequest, image: ClusterImage, alive: Collection[int]
) -> ControllerResult:
    """Begin, replace or cancel reassignments, each partition on its own."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    result = ControllerResult([], response, Effects())
    for topic in request.topics:
        answers = ReassignableTopicResponse(topic.name)
        response.responses.append(answers)
        for asked in topic.partitions:
            answer = ReassignablePartitionResponse(asked.partition_index)
            answers.partitions.append(answer)
            try:
                before = image.partition(topic.name, asked.partition_index)
                after = _judged(before, asked, alive, factor_may_change=request.allow_replication_factor_change)
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, str(error)
            else:
                _write(result, (topic.name, asked.partition_index), before, after)
    return result


def take_up(image: ClusterImage, asked: Iterable[MetadataChange], alive: Collection[int]) -> ControllerResult:
    """Begin the moves that facts of kind "asked_move" ask for. What does not move by that is answered at once. The
    response has the refused ones: (topic:index, error)."""
    refused: list[tuple[str, KafkaError]] = []
    result = ControllerResult([], refused, Effects())
    for change in asked:
        topic, _, index = change.key.rpartition(":")
        wanted = ReassignablePartition(int(index), (change.value or {})["replicas"])
        try:
            before = image.partition(topic, int(index))
            after = (
                before
                if _target(before) == tuple(wanted.replicas or ())
                else _judged(before, wanted, alive, factor_may_change=True)
            )
        except KafkaError as error:
            refused.append((change.key, error))
            result.changes.append(MetadataChange(change.kind, change.key, None))
            continue
        _write(result, (topic, int(index)), before, after)
        if not is_moving(after):
            result.changes.append(MetadataChange(change.kind, change.key, None))
    return result


def _target(row: Partition) -> tuple[int, ...]:
    return tuple(node for node in row.replicas if node not in row.removing)


def _judged(
    row: Partition, asked: ReassignablePartition, alive: Collection[int], *, factor_may_change: bool
) -> Partition:
    if asked.replicas is None:
        if not is_moving(row):
            raise NoReassignmentInProgress("no reassignment of this partition is under way, so none can be cancelled")
        cancelled = _with_replicas(row, _at_rest(row), alive)
        if cancelled is None:
            raise InvalidReplicaAssignment("none of the former replicas is alive and in sync; wait for one, try again")
        return cancelled
    check_assignment(asked.replicas, None, sorted(alive))
    if not factor_may_change and len(asked.replicas) != len(_at_rest(row)):
        raise InvalidReplicationFactor(
            f"{len(asked.replicas)} replicas are asked for where there are {len(_at_rest(row))},"
            f" and the request does not allow another number"
        )
    return _begun(row, tuple(asked.replicas), alive)


def _at_rest(row: Partition) -> tuple[int, ...]:
    return tuple(node for node in row.replicas if node not in row.adding)


def _begun(row: Partition, target: tuple[int, ...], alive: Collection[int]) -> Partition:
    rest = _at_rest(row)
    if target == row.replicas and not is_moving(row):
        return row
    replicas = (*target, *(node for node in rest if node not in target))
    isr = tuple(node for node in row.isr if node in replicas)
    leader = row.leader if row.leader in replicas else _first(replicas, isr, alive)
    if not isr or leader is None:
        raise InvalidReplicaAssignment("the leader is a replica that this would take away; wait until the move is over")
    moving = evolve(
        row,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=row.leader_epoch + 1,
        partition_epoch=row.partition_epoch + 1,
        adding=tuple(node for node in target if node not in rest),
        removing=tuple(node for node in rest if node not in target),
    )
    if set(target) <= set(isr):
        return _with_replicas(row, target, alive) or moving
    return moving


def _with_replicas(row: Partition, target: tuple[int, ...], alive: Collection[int]) -> Partition | None:
    """Return the partition with the replicas `target` and no reassignment; None while none of them could lead."""
    isr = tuple(node for node in row.isr if node in target)
    leader = row.leader if row.leader in target else _first(target, isr, alive)
    if not isr or leader is None:
        return None
    return Partition(target, isr, leader, row.leader_epoch + 1, row.partition_epoch + 1)


def _first(replicas: Sequence[int], isr: Collection[int], alive: Collection[int]) -> int | None:
    return next((node for node in replicas if node in isr and node in alive), None)


def finish(image: ClusterImage, names: Iterable[Name], alive: Collection[int]) -> ControllerResult:
    """End those of these reassignments whose target replicas are all in sync. The response is None."""
    result = ControllerResult([], None, Effects())
    for topic, index in names:
        found = image.topics.get(topic)
        row = None if found is None or index >= len(found.partitions) else found.partitions[index]
        if row is None or not is_moving(row):
            continue
        target = _target(row)
        if set(target) <= set(row.isr):
            after = _with_replicas(row, target, alive)
            if after is not None:
                _write(result, (topic, index), row, after)
    return result


def moving(image: ClusterImage) -> list[Name]:
    """Return the partitions that are being reassigned."""
    return [
        (topic.name, index)
        for topic in image.topics.values()
        for index, row in enumerate(topic.partitions)
        if is_moving(row)
    ]


def list_reassignments(
    request: ListPartitionReassignmentsRequest, image: ClusterImage
) -> ListPartitionReassignmentsResponse:
    """Of all partitions (null), or of those named: what moves."""
    if request.topics is None:
        asked = moving(image)
    else:
        asked = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    response = ListPartitionReassignmentsResponse()
    rows: dict[str, OngoingTopicReassignment] = {}
    for name, index in asked:
        found = image.topics.get(name)
        if found is None or not 0 <= index < len(found.partitions) or not is_moving(found.partitions[index]):
            continue
        row = found.partitions[index]
        if name not in rows:
            rows[name] = OngoingTopicReassignment(name)
            response.topics.append(rows[name])
        rows[name].partitions.append(
            OngoingPartitionReassignment(index, list(row.replicas), list(row.adding), list(row.removing))
        )
    return response


def _write(result: ControllerResult, name: Name, before: Partition, after: Partition) -> None:
    if after is not before:
        change: MetadataChange = partition_change(*name, after)
        result.changes.append(change)
        result.effects.leaders.append(LeaderChange(*name, after.leader, after.leader_epoch, after.isr))
