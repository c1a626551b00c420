"""TxnOffsetCommit: offsets that hold once their transaction is committed (KIP-98, KIP-447, KIP-890).

    TxnOffsetCommit ─► the transaction's coordinator confirms this log, or adds it ─► the group is checked ─► pending
                    └► its transaction is known to be open here ───────────────────┘                            │
                                                                    commit marker ◄─────────────────────────────┤
                                            the newest in the log of what was pending and committed holds       │
                                                                    abort marker ◄──────────────────────────────┘
                                                                          what was pending is gone

A marker that comes between the question and its answer ends the transaction that was asked for: the commit is
refused, or it would be pending for ever. Of transactions v2 a marker has the next transaction's epoch, so one of the
commit's own epoch ended the transaction before, whose markers may still be on their way.

While an offset is pending, it is not told to those who want stable ones, and neither the offset that it will replace
nor its group ages away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.errors import (
    ClusterAuthorizationFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidGroupId,
    InvalidProducerEpoch,
    InvalidTxnState,
    NetworkException,
    NotEnoughReplicas,
    OffsetMetadataTooLarge,
    ProducerFenced,
    RequestTimedOut,
    StaleMemberEpoch,
    TransactionAbortable,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from logkernel.requests.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from .. import offsets_topic
from .by_epochs import commits
from .coordinator import Asked, GroupCoordinator, Transaction
from .records import CommittedOffset, OffsetKey, encode_offset, is_metadata_too_large, offset_key
from .state import Group, State

OFFSETS_TOPIC: Final = offsets_topic.TOPIC.name

AS_PRODUCERS_KNOW: Final[Mapping[int, int]] = {
    ProducerFenced.code: InvalidProducerEpoch.code,
    ClusterAuthorizationFailed.code: InvalidTxnState.code,
    NetworkException.code: CoordinatorLoadInProgress.code,
    UnknownTopicOrPartition.code: CoordinatorNotAvailable.code,
    NotEnoughReplicas.code: CoordinatorNotAvailable.code,
    RequestTimedOut.code: CoordinatorNotAvailable.code,
}
"""Error code of a transaction's coordinator → error code for the producer."""
AS_COMMITTERS_KNOW: Final[Mapping[int, int]] = {StaleMemberEpoch.code: IllegalGeneration.code}
"""Error code of a KIP-848 group for a member's commit → error code for the producer."""


# ---------------------------------------------------------------- the request


def on_commit(
    coordinator: GroupCoordinator, request: TxnOffsetCommitRequest, context: RequestContext, ticket: int
) -> None:
    if not request.group_id:
        coordinator.reply(ticket, refusal(request, InvalidGroupId.code))
        return
    if not any(_exists(coordinator, topic.name, row) for topic in request.topics for row in topic.partitions):
        coordinator.reply(ticket, refusal(request, UnknownTopicOrPartition.code))
        return
    known = coordinator.transactions.get(request.producer_id)
    if known is not None and known.epoch == request.producer_epoch:
        write(coordinator, request, ticket)
        return
    coordinator.last_token += 1
    bumps = "transactions_v2" in context.capabilities
    coordinator.asked[coordinator.last_token] = Asked(
        request, ticket, "transaction_abortable" in context.capabilities, bumps
    )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        verify_only=not bumps,
        topics=[AddPartitionsToTxnTopic(OFFSETS_TOPIC, [coordinator.number])],
    )
    coordinator.out.sends.append((coordinator.last_token, AddPartitionsToTxnRequest([transaction])))


def on_response(coordinator: GroupCoordinator, token: int, response: AddPartitionsToTxnResponse) -> None:
    """Take the coordinator's answer."""
    asked = coordinator.asked.pop(token)
    code = _code_of(response) or (InvalidTxnState.code if asked.ended else 0)
    if code == TransactionAbortable.code and not asked.knows_abortable:
        code = InvalidTxnState.code
    if code:
        coordinator.answer(asked.ticket, refusal(asked.request, AS_PRODUCERS_KNOW.get(code, code)))
    else:
        write(coordinator, asked.request, asked.ticket)


def _code_of(response: AddPartitionsToTxnResponse) -> int:
    rows = [
        row
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for row in topic.results_by_partition
    ]
    return response.error_code or (rows[0].partition_error_code if rows else UnknownServerError.code)


def write(coordinator: GroupCoordinator, request: TxnOffsetCommitRequest, ticket: int) -> None:
    """Append what may be committed, pending."""
    group = coordinator.groups.get(request.group_id)
    fault = GroupIdNotFound.code if request.group_id in coordinator.foreign else fault_of(group, request)
    topics: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        rows = [
            TxnOffsetCommitResponsePartition(
                row.partition_index,
                (0 if _exists(coordinator, topic.name, row) else UnknownTopicOrPartition.code)
                or fault
                or _fault_of_partition(coordinator, group, request, topic.name, row.partition_index)
                or _append(coordinator, request, topic.name, row),
            )
            for row in topic.partitions
        ]
        topics.append(TxnOffsetCommitResponseTopic(topic.name, rows))
    coordinator.out.producer = (request.producer_id, request.producer_epoch)
    coordinator.answer(ticket, TxnOffsetCommitResponse(topics=topics))


def _append(
    coordinator: GroupCoordinator, request: TxnOffsetCommitRequest, topic: str, row: TxnOffsetCommitRequestPartition
) -> int:
    """The error code of one partition."""
    metadata = row.committed_metadata or ""
    if is_metadata_too_large(metadata, coordinator.settings.offset_metadata_max_bytes):
        return OffsetMetadataTooLarge.code
    entry = CommittedOffset(row.committed_offset, row.committed_leader_epoch, metadata, coordinator.wall_ms)
    coordinator.append(offset_key(request.group_id, topic, row.partition_index), encode_offset(entry))
    return 0


def _exists(coordinator: GroupCoordinator, topic: str, row: TxnOffsetCommitRequestPartition) -> bool:
    count = coordinator.cluster.partition_count(topic)
    return count is not None and 0 <= row.partition_index < count


def fault_of(group: Group | None, request: TxnOffsetCommitRequest) -> int:
    """The error code for all partitions, else 0. Old producers name neither generation nor member."""
    generation = request.generation_id
    if group is None:
        return IllegalGeneration.code if generation >= 0 else 0
    if group.newer is not None:
        code = commits.fault_of(
            group.newer,
            request.member_id,
            request.group_instance_id,
            generation,
            RequestContext(),
            transactional=True,
        )
        return AS_COMMITTERS_KNOW.get(code, code)
    if generation < 0 and group.state is State.EMPTY:
        return 0
    if generation < 0 and not request.member_id and request.group_instance_id is None:
        return 0
    code = group.fault_of(request.member_id, request.group_instance_id)
    return code or (IllegalGeneration.code if generation != group.generation else 0)


def _fault_of_partition(
    coordinator: GroupCoordinator, group: Group | None, request: TxnOffsetCommitRequest, topic: str, partition: int
) -> int:
    newer = group.newer if group is not None else None
    if newer is None:
        return 0
    topic_id = coordinator.cluster.topic_id(topic)
    code = commits.fault_of_partition(newer, request.member_id, request.generation_id, topic, topic_id, partition)
    return AS_COMMITTERS_KNOW.get(code, code)


def refusal(request: TxnOffsetCommitRequest, code: int) -> TxnOffsetCommitResponse:
    topics = [
        TxnOffsetCommitResponseTopic(
            topic.name, [TxnOffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)


# ---------------------------------------------------------------- replay


def replay(
    coordinator: GroupCoordinator, key: OffsetKey, entry: CommittedOffset, producer_id: int, producer_epoch: int
) -> None:
    """Replay a pending offset."""
    group = coordinator.group(key.group_id)
    group.is_known = True
    group.uncommitted.setdefault(producer_id, {})[key.topic, key.partition] = entry
    transaction = coordinator.transactions.get(producer_id)
    if transaction is None:
        transaction = coordinator.transactions[producer_id] = Transaction(producer_epoch)
    transaction.epoch = producer_epoch
    transaction.groups.add(key.group_id)


def end(coordinator: GroupCoordinator, producer_id: int, producer_epoch: int, committed: bool) -> None:
    """Replay a marker. An offset that was committed after the pending one stays."""
    for asked in coordinator.asked.values():
        if asked.request.producer_id == producer_id and not (
            asked.epoch_bump and asked.request.producer_epoch >= producer_epoch
        ):
            asked.ended = True
    transaction = coordinator.transactions.pop(producer_id, None)
    for group_id in transaction.groups if transaction is not None else ():
        group = coordinator.groups.get(group_id)
        if group is None:
            continue
        for (topic, partition), entry in group.uncommitted.pop(producer_id, {}).items():
            before = group.offsets.get(topic, {}).get(partition)
            if committed and (before is None or before.record_offset < entry.record_offset):
                group.offsets.setdefault(topic, {})[partition] = entry


def drop(group: Group, topic: str, partition: int) -> None:
    """A tombstone takes along what is pending for its partition."""
    for producer_id, entries in list(group.uncommitted.items()):
        entries.pop((topic, partition), None)
        if not entries:
            del group.uncommitted[producer_id]
