"""OffsetCommit, OffsetFetch and OffsetDelete, and how offsets age away.

- A commit with a generation comes from a member and must be of the group's generation. One without (-1) comes from
  somebody who assigns partitions to himself, or from an operator: it is taken while the group is Empty.
- Offsets expire (KIP-211) `offsets.retention.minutes` after their group became Empty; after their commit where nobody
  ever joined the group, or where its members, being Stable, do not read the topic any more; or at the
  time that the commit itself named, as old clients could.
- A group without offsets goes when it is Empty.
- An offset that a transaction may be about to change is not told to those who want stable ones, and does not expire.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from logkernel.contracts import RequestContext
from logkernel.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    NonEmptyGroup,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from logkernel.vocabulary import NO_ID

from . import transactions
from .by_epochs import commits
from .consumer import cleanup
from .coordinator import RETENTION, GroupCoordinator
from .records import NO_TIME, CommittedOffset, group_key, is_metadata_too_large, offset_key, offset_value
from .state import CONSUMER, Group, State
from .streams import leaving

MAX_SWEPT = 1_000
"""Tombstones that one sweep writes; what is left is swept by the next, which then follows at once."""
NO_OFFSET = -1
MAX_TIME_MS = 2**63 - 1
HEARING = (State.STABLE, State.PREPARING)
"""A member's commit is a sign of life then."""

# ---------------------------------------------------------------- OffsetCommit


def on_commit(
    coordinator: GroupCoordinator, request: OffsetCommitRequest, context: RequestContext, ticket: int
) -> None:
    group = coordinator.groups.get(request.group_id)
    taken = request.group_id in coordinator.foreign
    fault = GroupIdNotFound.code if taken else commit_fault_of(group, request, context)
    if group is not None and not fault and group.state in HEARING:
        member = group.members.get(request.member_id)
        if member is not None:
            coordinator.alive(group, member)
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        name: str | None = topic.name
        if topic.topic_id is not NO_ID and topic.topic_id != NO_ID:
            name = coordinator.cluster.topic_name(topic.topic_id)
        rows = commit(coordinator, group, request, name, topic.partitions, fault)
        topics.append(OffsetCommitResponseTopic(topic.name or name or "", rows, topic.topic_id))
    coordinator.answer(ticket, OffsetCommitResponse(topics=topics))


def commit_fault_of(group: Group | None, request: OffsetCommitRequest, context: RequestContext) -> int:
    """The error code for all partitions, else 0."""
    generation = request.generation_id_or_member_epoch
    newer = group.newer if group is not None else None
    if newer is not None:
        return commits.fault_of(newer, request.member_id, request.group_instance_id, generation, context)
    if group is None:
        if generation < 0:
            return 0
        return GroupIdNotFound.code if "group_not_found" in context.capabilities else IllegalGeneration.code
    if generation < 0 and group.state is State.EMPTY:
        return 0
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return UnknownMemberId.code
    code = group.fault_of(request.member_id, request.group_instance_id)
    if code:
        return code
    if generation != group.generation:
        return IllegalGeneration.code
    return RebalanceInProgress.code if group.state is State.COMPLETING else 0


def commit(
    coordinator: GroupCoordinator,
    group: Group | None,
    request: OffsetCommitRequest,
    topic: str | None,
    rows: Sequence[OffsetCommitRequestPartition],
    fault: int,
) -> list[OffsetCommitResponsePartition]:
    """Append the offsets of one topic. `fault` is the error code for all partitions that exist, else 0. A member of a
    newer protocol must have held its partitions in its epoch."""
    if topic is None:
        return [OffsetCommitResponsePartition(row.partition_index, UnknownTopicId.code) for row in rows]
    count, topic_id = coordinator.cluster.partition_count(topic), coordinator.cluster.topic_id(topic)
    id_bytes = b"" if topic_id is None else topic_id.bytes
    expire_ms = NO_TIME
    if request.retention_time_ms != -1:
        expire_ms = max(0, min(coordinator.wall_ms + request.retention_time_ms, MAX_TIME_MS))
    newer = group.newer if group is not None else None
    results: list[OffsetCommitResponsePartition] = []
    for row in rows:
        partition = row.partition_index
        code = fault if count is not None and 0 <= partition < count else UnknownTopicOrPartition.code
        if newer is not None and not code:
            epoch = request.generation_id_or_member_epoch
            code = commits.fault_of_partition(newer, request.member_id, epoch, topic, topic_id, partition)
        metadata = row.committed_metadata or ""
        if not code and is_metadata_too_large(metadata, coordinator.settings.offset_metadata_max_bytes):
            code = OffsetMetadataTooLarge.code
        if not code:
            value = offset_value(
                row.committed_offset,
                row.committed_leader_epoch,
                metadata,
                coordinator.wall_ms,
                expire_ms,
                id_bytes,
            )
            coordinator.append(offset_key(request.group_id, topic, partition), value)
        results.append(OffsetCommitResponsePartition(partition, code))
    return results


# ---------------------------------------------------------------- OffsetFetch


def on_fetch(coordinator: GroupCoordinator, request: OffsetFetchRequest, context: RequestContext, ticket: int) -> None:
    by_id = "topic_ids" in context.capabilities
    stable = request.require_stable
    coordinator.answer(
        ticket, OffsetFetchResponse(groups=[fetch(coordinator, asked, by_id, stable) for asked in request.groups])
    )


def fetch(
    coordinator: GroupCoordinator, asked: OffsetFetchRequestGroup, by_id: bool, stable: bool
) -> OffsetFetchResponseGroup:
    group = coordinator.groups.get(asked.group_id)
    newer = group.newer if group is not None else None
    code = commits.fetch_fault_of(newer, asked.member_id, asked.member_epoch) if newer is not None else 0
    if code:
        return OffsetFetchResponseGroup(asked.group_id, error_code=code)
    kept = group.offsets if group is not None else {}
    topics: list[OffsetFetchResponseTopics] = []
    if asked.topics is None:
        topics = list(_all_topics(coordinator, kept, by_id))
        if stable and group is not None and group.uncommitted:
            for found_topic in topics:
                _hide_unstable(group, found_topic.name, found_topic.partitions)
    for topic in asked.topics or ():
        name: str | None = topic.name
        if topic.topic_id != NO_ID:
            name = coordinator.cluster.topic_name(topic.topic_id)
        found = kept.get(name, {}) if name is not None else {}
        code = 0 if name is not None else UnknownTopicId.code
        rows = [_row(partition, found.get(partition), code) for partition in topic.partition_indexes]
        topics.append(OffsetFetchResponseTopics(topic.name or name or "", rows, topic.topic_id))
        if stable and group is not None and group.uncommitted and name is not None:
            _hide_unstable(group, name, rows)
    return OffsetFetchResponseGroup(asked.group_id, topics)


def _hide_unstable(group: Group, topic: str, rows: list[OffsetFetchResponsePartitions]) -> None:
    for index, row in enumerate(rows):
        if group.is_unstable(topic, row.partition_index):
            rows[index] = _row(row.partition_index, None, UnstableOffsetCommit.code)


def _all_topics(
    coordinator: GroupCoordinator, kept: dict[str, dict[int, CommittedOffset]], by_id: bool
) -> Iterator[OffsetFetchResponseTopics]:
    for name, found in kept.items():
        topic_id = coordinator.cluster.topic_id(name) or NO_ID
        if by_id and topic_id == NO_ID:
            continue  # a topic that is gone has no id to be named by
        rows = [_row(partition, entry, 0) for partition, entry in found.items()]
        yield OffsetFetchResponseTopics(name, rows, topic_id)


def _row(partition: int, entry: CommittedOffset | None, code: int) -> OffsetFetchResponsePartitions:
    if entry is None:
        return OffsetFetchResponsePartitions(partition, NO_OFFSET, -1, "", code)
    return OffsetFetchResponsePartitions(partition, entry.offset, entry.leader_epoch, entry.metadata, code)


# ---------------------------------------------------------------- OffsetDelete


def on_delete_offsets(
    coordinator: GroupCoordinator, request: OffsetDeleteRequest, context: RequestContext, ticket: int
) -> None:
    group = coordinator.groups.get(request.group_id)
    code = delete_fault_of(group, request.group_id)
    if code or group is None:
        coordinator.reply(ticket, OffsetDeleteResponse(error_code=code))
        return
    topics: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        count = coordinator.cluster.partition_count(topic.name)
        rows = [
            OffsetDeleteResponsePartition(
                row.partition_index, delete(coordinator, group, topic.name, count, row.partition_index)
            )
            for row in topic.partitions
        ]
        topics.append(OffsetDeleteResponseTopic(topic.name, rows))
    coordinator.answer(ticket, OffsetDeleteResponse(topics=topics))


def delete_fault_of(group: Group | None, group_id: str) -> int:
    if not group_id:
        return InvalidGroupId.code
    if group is None:
        return GroupIdNotFound.code
    if not group.is_classic:
        return 0
    return 0 if group.state is State.EMPTY or group.protocol_type == CONSUMER else NonEmptyGroup.code


def delete(coordinator: GroupCoordinator, group: Group, topic: str, partitions: int | None, partition: int) -> int:
    if partitions is None or not 0 <= partition < partitions:
        return UnknownTopicOrPartition.code
    if group.reads(topic):
        return GroupSubscribedToTopic.code
    if partition in group.offsets.get(topic, ()) or group.is_unstable(topic, partition):
        coordinator.append(offset_key(group.group_id, topic, partition), None)
    return 0


# ---------------------------------------------------------------- replay


def replay(
    coordinator: GroupCoordinator, group_id: str, topic: str, partition: int, entry: CommittedOffset | None
) -> None:
    """What the log says of one offset; None is a tombstone. A group that loses its last one is there until a sweep."""
    if entry is not None:
        group = coordinator.group(group_id)
        group.is_known = True
        group.offsets.setdefault(topic, {})[partition] = entry
        return
    found = coordinator.groups.get(group_id)
    if found is None:
        return
    transactions.drop(found, topic, partition)
    kept = found.offsets.get(topic)
    if kept is not None:
        kept.pop(partition, None)
        if not kept:
            del found.offsets[topic]


# ---------------------------------------------------------------- age


def sweep(coordinator: GroupCoordinator) -> None:
    """Write tombstones for what has expired, and have the next sweep come."""
    room = MAX_SWEPT
    for group in coordinator.groups.values():
        room -= _sweep_group(coordinator, group, room)
        if room <= 0:
            coordinator.after(RETENTION, 0)
            return
    if coordinator.groups:
        coordinator.after(RETENTION, coordinator.settings.retention_check_interval_ms)


def _sweep_group(coordinator: GroupCoordinator, group: Group, room: int) -> int:
    """Returns the number of tombstones, at most `room`."""
    written = 0
    left = bool(group.uncommitted)
    for topic, partition, entry in group.each_offset():
        if not expired(coordinator, group, topic, entry) or group.is_unstable(topic, partition):
            left = True
        elif written == room:
            return written
        else:
            coordinator.append(offset_key(group.group_id, topic, partition), None)
            written += 1
    if not left and written < room and group.consumer is not None and group.is_empty:
        cleanup.erase(coordinator, group.group_id, group.consumer)
        written += 1
    if not left and written < room and group.streams is not None and group.is_empty:
        leaving.erase(coordinator, group.group_id, group.streams)
        written += 1
    if not left and written < room and group.is_forsaken:
        coordinator.append(group_key(group.group_id), None)
        written += 1
    return written


def expired(coordinator: GroupCoordinator, group: Group, topic: str, entry: CommittedOffset) -> bool:
    if group.protocol_type is None or not group.is_classic:
        since_ms = entry.commit_ms
    elif group.state is State.EMPTY:
        since_ms = group.state_ms if group.state_ms != NO_TIME else entry.commit_ms
    elif group.state is State.STABLE and group.subscribed is not None:
        since_ms = entry.commit_ms
    else:
        return False
    if group.reads(topic):
        return False
    if entry.expire_ms != NO_TIME:
        return coordinator.wall_ms >= entry.expire_ms
    return coordinator.wall_ms - since_ms >= coordinator.settings.retention_ms


def forget_topics(coordinator: GroupCoordinator, topics: Collection[str]) -> None:
    """Offsets of topics that were deleted go with them, lest a new topic of that name begin in its middle."""
    for group in coordinator.groups.values():
        for topic, partition in group.places(topics):
            coordinator.append(offset_key(group.group_id, topic, partition), None)
