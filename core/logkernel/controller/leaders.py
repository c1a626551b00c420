"""Requests of administrators about leaders and replicas: elections, reassignments.

On one broker every partition has its one replica, so that there is never anything to move between brokers:
what is asked is checked, and what already holds is no error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from logkernel.controller import election_rules
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, Partition
from logkernel.controller.placement import check_assignment
from logkernel.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidReplicationFactor,
    InvalidRequest,
    KafkaError,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
)
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)

PREFERRED, UNCLEAN = 0, 1
Offline = Callable[[str, int], bool]
"""(topic, partition) → whether its replica is offline."""


def elect_leaders(request: ElectLeadersRequest, image: ClusterImage, offline: Offline) -> ElectLeadersResponse:
    """A request for all partitions (null) is answered with those that need an election only."""
    response = ElectLeadersResponse()
    if request.election_type not in (PREFERRED, UNCLEAN):
        response.error_code = InvalidRequest.code
        return response
    everything = request.topic_partitions is None
    if request.topic_partitions is None:
        asked = {name: list(range(len(topic.partitions))) for name, topic in image.topics.items()}
    else:
        asked = {}
        for row in request.topic_partitions:
            asked.setdefault(row.topic, []).extend(row.partitions)
    for name, partitions in asked.items():
        rows = [_election(name, index, image, offline, request.election_type) for index in dict.fromkeys(partitions)]
        if everything:
            rows = [row for row in rows if row.error_code != ElectionNotNeeded.code]
        if rows:
            response.replica_election_results.append(ReplicaElectionResult(name, rows))
    return response


def elect_in_cluster(
    request: ElectLeadersRequest, image: ClusterImage, alive: Collection[int], offline: election_rules.Offline
) -> ControllerResult:
    """As `elect_leaders`, where there are others that could lead; the response goes out when the changes are kept."""
    response = ElectLeadersResponse()
    result = ControllerResult([], response, Effects())
    if request.election_type not in (PREFERRED, UNCLEAN):
        response.error_code = InvalidRequest.code
        return result
    rows = {name: _judged_election(*name, image, alive, request.election_type) for name in _asked(request, image)}
    wanted = [name for name, row in rows.items() if not row.error_code]
    choose, absent = (
        (election_rules.prefer, PreferredLeaderNotAvailable)
        if request.election_type == PREFERRED
        else (election_rules.revive, EligibleLeadersNotAvailable)
    )
    decided = choose(image, wanted, alive, offline)
    for topic, index in decided.response:
        rows[topic, index] = PartitionResult(
            index, absent.code, f"{topic}-{index}: no such replica is alive and in sync"
        )
    by_topic: dict[str, list[PartitionResult]] = {}
    for (topic, _), row in rows.items():
        if request.topic_partitions is not None or row.error_code != ElectionNotNeeded.code:
            by_topic.setdefault(topic, []).append(row)
    response.replica_election_results = [ReplicaElectionResult(topic, found) for topic, found in by_topic.items()]
    return ControllerResult(decided.changes, response, decided.effects)


def _asked(request: ElectLeadersRequest, image: ClusterImage) -> list[tuple[str, int]]:
    if request.topic_partitions is None:
        return [(name, index) for name, topic in image.topics.items() for index in range(len(topic.partitions))]
    return [(row.topic, index) for row in request.topic_partitions for index in row.partitions]


def _judged_election(name: str, index: int, image: ClusterImage, alive: Collection[int], kind: int) -> PartitionResult:
    try:
        row = image.partition(name, index)
        if kind == PREFERRED and row.leader == row.replicas[0]:
            raise ElectionNotNeeded(f"{name}-{index} is led by its first replica")
        if kind == UNCLEAN and row.leader in alive:
            raise ElectionNotNeeded(f"{name}-{index} has a leader")
    except KafkaError as error:
        return PartitionResult(index, error.code, str(error))
    return PartitionResult(index)


def _election(name: str, index: int, image: ClusterImage, offline: Offline, kind: int) -> PartitionResult:
    try:
        image.partition(name, index)
        if not offline(name, index):
            raise ElectionNotNeeded(f"{name}-{index} has the only leader that it can have")
        absent = PreferredLeaderNotAvailable if kind == PREFERRED else EligibleLeadersNotAvailable
        raise absent(f"{name}-{index}: its only replica lies in a directory that is offline")
    except KafkaError as error:
        return PartitionResult(index, error.code, str(error))


def alter_reassignments(
    request: AlterPartitionReassignmentsRequest, image: ClusterImage, brokers: Sequence[int]
) -> AlterPartitionReassignmentsResponse:
    """A reassignment to the present replicas succeeds. With one broker, no other one is possible."""
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change
    )
    for topic in request.topics:
        result = ReassignableTopicResponse(topic.name)
        response.responses.append(result)
        for row in topic.partitions:
            answer = ReassignablePartitionResponse(row.partition_index)
            result.partitions.append(answer)
            try:
                _check_reassignment(
                    image.partition(topic.name, row.partition_index),
                    row,
                    brokers,
                    factor_may_change=request.allow_replication_factor_change,
                )
            except KafkaError as error:
                answer.error_code, answer.error_message = error.code, str(error)
    return response


def _check_reassignment(
    partition: Partition, row: ReassignablePartition, brokers: Sequence[int], *, factor_may_change: bool
) -> None:
    if row.replicas is None:
        raise NoReassignmentInProgress("no reassignment of this partition is in progress; there is nothing to cancel")
    check_assignment(row.replicas, None, brokers)
    if not factor_may_change and len(row.replicas) != len(partition.replicas):
        raise InvalidReplicationFactor(
            f"{len(row.replicas)} replicas are asked for where there are {len(partition.replicas)},"
            f" and the request does not allow another number"
        )
