"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets: what share-state keeps, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from logkernel.contracts import RequestContext
from logkernel.errors import (
    GroupIdNotFound,
    InvalidRequest,
    KafkaError,
    NonEmptyGroup,
    UnknownTopicOrPartition,
)
from logkernel.requests import share_offsets as requests
from logkernel.requests.share_delivery import ForgetShareRequest
from logkernel.requests.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateData,
    DeleteStateDataPartitionData,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryData,
    ReadStateSummaryDataPartitionData,
    ReadStateSummaryResultPartitionResult,
)
from logkernel.vocabulary import NO_ID

from .coordinator import GroupUpdate, ShareGroupCoordinator
from .group import Group, State
from .heartbeat import initialize_request, when_free, with_initialized
from .records import GroupValue, Kind, StateValue


def existing(coordinator: ShareGroupCoordinator, group_id: str) -> Group:
    """Raises `GroupIdNotFound`."""
    group = coordinator.groups.get(group_id)
    if group is None:
        raise GroupIdNotFound(f"Group {group_id} not found.")
    return group


def empty(coordinator: ShareGroupCoordinator, group_id: str) -> Group:
    """Raises `GroupIdNotFound`, `NonEmptyGroup`."""
    group = existing(coordinator, group_id)
    if group.state is not State.EMPTY:
        raise NonEmptyGroup(f"Group {group_id} is not empty.")
    return group


# ---------------------------------------------------------------- describe


def on_describe(
    coordinator: ShareGroupCoordinator,
    request: requests.DescribeShareGroupOffsetsRequest,
    context: RequestContext,
    ticket: int,
) -> None:
    """A part has one group. Where nothing is kept, be it for want of the group or of the topic, the start is -1."""
    asked = request.groups[0]
    group = coordinator.groups.get(asked.group_id)
    known = {} if group is None else {**group.topics.initializing, **group.topics.initialized}
    wanted: list[tuple[str, UUID, list[int]]] = []
    if asked.topics is None:
        wanted = [(name, topic_id, list(rows)) for topic_id, (name, rows) in known.items()]
    else:
        for topic in asked.topics:
            wanted.append((topic.topic_name, coordinator.cluster.topic_id(topic.topic_name) or NO_ID, topic.partitions))
    read = [
        ReadStateSummaryData(
            topic_id,
            [ReadStateSummaryDataPartitionData(row, -1) for row in rows if row in known[topic_id][1]],
        )
        for _, topic_id, rows in wanted
        if topic_id in known
    ]

    def answered(response: ReadShareGroupStateSummaryResponse) -> None:
        states = {(one.topic_id, row.partition): row for one in response.results for row in one.partitions}
        topics = [
            requests.DescribeShareGroupOffsetsResponseTopic(
                name, topic_id, [_described(coordinator, asked.group_id, name, topic_id, row, states) for row in rows]
            )
            for name, topic_id, rows in wanted
        ]
        answer = requests.DescribeShareGroupOffsetsResponseGroup(asked.group_id, topics)
        coordinator.answer(ticket, requests.DescribeShareGroupOffsetsResponse(groups=[answer]))

    if any(topic.partitions for topic in read):
        coordinator.ask(ReadShareGroupStateSummaryRequest(asked.group_id, read), answered)
    else:
        answered(ReadShareGroupStateSummaryResponse())


def _described(
    coordinator: ShareGroupCoordinator,
    group_id: str,
    name: str,
    topic_id: UUID,
    partition: int,
    states: Mapping[tuple[UUID, int], ReadStateSummaryResultPartitionResult],
) -> requests.DescribeShareGroupOffsetsResponsePartition:
    row = requests.DescribeShareGroupOffsetsResponsePartition(partition, start_offset=-1)
    state = states.get((topic_id, partition))
    if state is None:
        return row
    row.start_offset, row.leader_epoch, row.error_code = state.start_offset, state.leader_epoch, state.error_code
    offsets = coordinator.cluster.offsets(name, partition)
    if offsets is not None and state.start_offset >= 0 and state.delivery_complete_count >= 0:
        committed = coordinator.cluster.group_setting(group_id, "share.isolation.level") == "read_committed"
        end = offsets[1] if committed else offsets[2]
        row.lag = max(-1, end - state.start_offset - state.delivery_complete_count)  # -1: it begins beyond the end
    return row


# ---------------------------------------------------------------- alter


def on_alter(
    coordinator: ShareGroupCoordinator,
    request: requests.AlterShareGroupOffsetsRequest,
    context: RequestContext,
    ticket: int,
) -> None:
    """The share state is made anew, in a new state epoch: whoever still writes in the old one is fenced.

    A group that is not there comes into being, so that it can be told where to begin before anybody joins.
    """

    def refuse(error: KafkaError) -> None:
        refused = requests.AlterShareGroupOffsetsResponse(error_code=error.code, error_message=str(error))
        coordinator.answer(ticket, refused)

    when_free(coordinator, request.group_id, lambda: _alter(coordinator, request, ticket), refuse)


def _alter(coordinator: ShareGroupCoordinator, request: requests.AlterShareGroupOffsetsRequest, ticket: int) -> None:
    if request.group_id in coordinator.groups or coordinator.is_foreign(request.group_id):
        empty(coordinator, request.group_id)
    update = coordinator.begin_update(request.group_id)
    answer = requests.AlterShareGroupOffsetsResponse()
    rows: dict[tuple[UUID, int], requests.AlterShareGroupOffsetsResponsePartition] = {}
    starts: dict[UUID, dict[int, int]] = {}
    names: dict[UUID, str] = {}
    for topic in request.topics:
        topic_id = coordinator.cluster.topic_id(topic.topic_name)
        answered = requests.AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id or NO_ID)
        answer.responses.append(answered)
        for asked in topic.partitions:
            row = requests.AlterShareGroupOffsetsResponsePartition(asked.partition_index)
            answered.partitions.append(row)
            if topic_id is None or asked.partition_index not in range(
                coordinator.cluster.partition_count(topic.topic_name) or 0
            ):
                _refuse(row, UnknownTopicOrPartition(f"{topic.topic_name}-{asked.partition_index} does not exist."))
            elif asked.start_offset < 0:
                _refuse(row, InvalidRequest(f"{asked.start_offset} is no offset."))
            else:
                starts.setdefault(topic_id, {})[asked.partition_index] = asked.start_offset
                rows[topic_id, asked.partition_index] = row
                names[topic_id] = topic.topic_name
    if not starts:
        coordinator.answer(ticket, answer)
        return
    update.emit(Kind.GROUP, GroupValue(update.group.epoch + 1, update.group.metadata_hash))

    def made(response: InitializeShareGroupStateResponse) -> None:
        done: dict[UUID, tuple[str, tuple[int, ...]]] = {}
        for result in response.results:
            for one in result.partitions:
                row = rows[result.topic_id, one.partition]
                row.error_code, row.error_message = one.error_code, one.error_message
                if not one.error_code:
                    name, before = done.get(result.topic_id, (names[result.topic_id], ()))
                    done[result.topic_id] = (name, (*before, one.partition))
        later = coordinator.begin_update(request.group_id)
        if done:
            later.emit(Kind.STATE, with_initialized(later.group.topics, done))
        coordinator.answer(ticket, answer)

    coordinator.ask(ForgetShareRequest(request.group_id))
    coordinator.ask(initialize_request(request.group_id, update.group.epoch, starts), made)


def _refuse(row: requests.AlterShareGroupOffsetsResponsePartition, error: KafkaError) -> None:
    row.error_code, row.error_message = error.code, str(error)


# ---------------------------------------------------------------- delete


def on_delete(
    coordinator: ShareGroupCoordinator,
    request: requests.DeleteShareGroupOffsetsRequest,
    context: RequestContext,
    ticket: int,
) -> None:
    group = empty(coordinator, request.group_id)
    known = {**group.topics.initializing, **group.topics.initialized}
    answer = requests.DeleteShareGroupOffsetsResponse()
    rows: dict[UUID, requests.DeleteShareGroupOffsetsResponseTopic] = {}
    for topic in request.topics:
        topic_id = coordinator.cluster.topic_id(topic.topic_name)
        row = requests.DeleteShareGroupOffsetsResponseTopic(topic.topic_name, topic_id or NO_ID)
        answer.responses.append(row)
        if topic_id is None:
            row.error_code = UnknownTopicOrPartition.code
            row.error_message = "This server does not host this topic-partition."
        elif topic_id not in known:
            row.error_code = UnknownTopicOrPartition.code
            row.error_message = "There is no offset information to delete."
        else:
            rows[topic_id] = row
    if not rows:
        coordinator.answer(ticket, answer)
        return

    def deleted(response: DeleteShareGroupStateResponse) -> None:
        gone = set(rows)
        for result in response.results:
            for one in result.partitions:
                if one.error_code:
                    gone.discard(result.topic_id)
                    rows[result.topic_id].error_code = one.error_code
                    rows[result.topic_id].error_message = one.error_message
        without(coordinator.begin_update(request.group_id), gone)
        coordinator.answer(ticket, answer)

    coordinator.ask(ForgetShareRequest(request.group_id))
    coordinator.ask(delete_request(request.group_id, {topic_id: known[topic_id][1] for topic_id in rows}), deleted)


def delete_request(group_id: str, places: Mapping[UUID, tuple[int, ...]]) -> DeleteShareGroupStateRequest:
    return DeleteShareGroupStateRequest(
        group_id,
        [
            DeleteStateData(topic_id, [DeleteStateDataPartitionData(row) for row in rows])
            for topic_id, rows in places.items()
        ],
    )


def without(update: GroupUpdate, gone: set[UUID]) -> None:
    """The group knows nothing of these topics any more."""
    topics = update.group.topics
    if gone & {*topics.initializing, *topics.initialized, *topics.deleting}:
        update.emit(
            Kind.STATE,
            StateValue(
                {topic_id: row for topic_id, row in topics.initializing.items() if topic_id not in gone},
                {topic_id: row for topic_id, row in topics.initialized.items() if topic_id not in gone},
                {topic_id: row for topic_id, row in topics.deleting.items() if topic_id not in gone},
            ),
        )
