"""How a transaction ends: EndTxn and timeouts decide it, markers carry it out, the Complete record closes it.

    Prepare committed ──▶ WriteTxnMarkers for every partition ──▶ all written ──▶ Complete
                              ▲        │ some not
                              └────────┘ after a pause

Markers are safe to repeat: a machine that finds a Prepare in its log sends them all again, a moment later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from logkernel.contracts import RequestContext
from logkernel.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    KafkaError,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from logkernel.requests.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logkernel.vocabulary import TopicPartition

from .coordinator import Ending, TransactionCoordinator
from .records import by_topic
from .state import DONE, NO_PRODUCER, V2, Transaction

FIRST_PAUSE_MS: Final = 100
LONGEST_PAUSE_MS: Final = 10_000
ABORTS_AT_ONCE: Final = 1_000
"""Timed out transactions that one turn aborts; the others follow in the next."""

NEEDS_NO_MARKER: Final = frozenset(
    (0, UnsupportedForMessageFormat.code, UnsupportedVersion.code, InvalidProducerEpoch.code)
)
"""Written; or a log of an old format, which cannot hold the transaction either; or the partition has a later epoch of
this producer, so that nothing of this one is open there."""

Token = tuple[str, int, int]
"""(transactional id, producer id, epoch of the marker)."""


# ---------------------------------------------------------------- deciding


def on_end(coordinator: TransactionCoordinator, request: EndTxnRequest, context: RequestContext, ticket: int) -> None:
    """Answered when the decision is committed; markers follow on their own."""
    version = V2 if "transactions_v2" in context.capabilities else 0
    txn = coordinator.transactions.get(request.transactional_id)
    if txn is None:
        coordinator.answer(ticket, EndTxnResponse(error_code=InvalidProducerIdMapping.code))
        return
    code = txn.judge_end(request.producer_id, request.producer_epoch, request.committed, version >= V2)
    if code is None:
        txn, code = _decide(coordinator, request, txn, version)
    if code == DONE:
        coordinator.answer(ticket, EndTxnResponse(producer_id=txn.producer_id, producer_epoch=txn.epoch))
    else:
        coordinator.answer(ticket, EndTxnResponse(error_code=code))


def _decide(
    coordinator: TransactionCoordinator, request: EndTxnRequest, txn: Transaction, version: int
) -> tuple[Transaction, int]:
    """The transaction as it will be when it is complete, and an error code."""
    try:
        next_id = _next_id(coordinator, txn, version)
    except KafkaError as error:
        return txn, error.code
    prepared = txn.end(request.committed, coordinator.wall_ms, version, next_id)
    coordinator.append(request.transactional_id, prepared)
    carry_out(coordinator, request.transactional_id, prepared)
    return prepared.complete(coordinator.wall_ms), DONE


def abort(coordinator: TransactionCoordinator, transactional_id: str, txn: Transaction) -> None:
    """Take an Ongoing transaction away from its producer. Raises `KafkaError`."""
    version = V2 if coordinator.level >= V2 else 0
    fenced = txn.fence(coordinator.wall_ms, version, _next_id(coordinator, txn, version))
    coordinator.append(transactional_id, fenced)
    carry_out(coordinator, transactional_id, fenced)


def _next_id(coordinator: TransactionCoordinator, txn: Transaction, version: int) -> int:
    return coordinator.cluster.next_producer_id() if txn.needs_producer_id(version) else NO_PRODUCER


def abort_timed_out(coordinator: TransactionCoordinator) -> None:
    late = [name for name in coordinator.ongoing if coordinator.transactions[name].has_timed_out(coordinator.wall_ms)]
    for name in sorted(late)[:ABORTS_AT_ONCE]:
        try:
            abort(coordinator, name, coordinator.transactions[name])
        except KafkaError:
            break  # no producer ids to be had: the next turn tries again
    if len(late) > ABORTS_AT_ONCE:
        coordinator.abort_due_ms = coordinator.mono_ms + 1


# ---------------------------------------------------------------- carrying out


def carry_out(coordinator: TransactionCoordinator, transactional_id: str, prepared: Transaction) -> None:
    """Begin with a Prepare that this decision appends."""
    ending = Ending(prepared.producer_id, prepared.epoch, set(prepared.partitions))
    coordinator.endings[transactional_id] = ending
    _drop_deleted(coordinator, ending)
    _go_on(coordinator, transactional_id, prepared, ending)


def _go_on(coordinator: TransactionCoordinator, transactional_id: str, prepared: Transaction, ending: Ending) -> None:
    if not ending.left:
        coordinator.append(transactional_id, prepared.complete(coordinator.wall_ms))
        return
    ending.attempts += 1
    ending.due_ms = None
    coordinator.waiting.discard(transactional_id)
    coordinator.send((transactional_id, ending.producer_id, ending.epoch), _markers(coordinator, prepared, ending))


def _markers(coordinator: TransactionCoordinator, prepared: Transaction, ending: Ending) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(topic, numbers) for topic, numbers in by_topic(ending.left).items()]
    marker = WritableTxnMarker(
        producer_id=ending.producer_id,
        producer_epoch=ending.epoch,
        transaction_result=prepared.is_commit,
        topics=topics,
        coordinator_epoch=coordinator.epoch,
        transaction_version=prepared.client_version,
    )
    return WriteTxnMarkersRequest([marker])


def _drop_deleted(coordinator: TransactionCoordinator, ending: Ending) -> None:
    """A deleted partition needs no marker."""
    ending.left = {one for one in ending.left if _may_exist(coordinator, one)}


def _may_exist(coordinator: TransactionCoordinator, one: TopicPartition) -> bool:
    """False for a partition that was deleted. One that this broker was not told of yet exists: a coordinator that
    leaves its marker out loses what was committed there."""
    count = coordinator.cluster.partition_count(one.topic)
    if count is not None and one.partition < count:
        return True
    try:
        count = coordinator.cluster.find_partition_count(one.topic)
    except KafkaError:
        return True  # the next attempt asks again
    return count is not None and one.partition < count


def on_markers(coordinator: TransactionCoordinator, token: Token, response: WriteTxnMarkersResponse) -> None:
    """What became of the markers of one transaction; answers to what is over are passed over."""
    transactional_id, producer_id, epoch = token
    ending = coordinator.endings.get(transactional_id)
    if ending is None or (ending.producer_id, ending.epoch) != (producer_id, epoch):
        return
    for one, code in _codes(response, producer_id):
        if code in NEEDS_NO_MARKER or (code == UnknownTopicOrPartition.code and not _may_exist(coordinator, one)):
            ending.left.discard(one)
    if ending.left:
        ending.due_ms = coordinator.mono_ms + min(FIRST_PAUSE_MS << min(ending.attempts - 1, 16), LONGEST_PAUSE_MS)
        coordinator.waiting.add(transactional_id)
    else:
        _go_on(coordinator, transactional_id, coordinator.transactions[transactional_id], ending)


def _codes(response: Any, producer_id: int) -> Iterator[tuple[TopicPartition, int]]:
    for marker in response.markers:
        if marker.producer_id == producer_id:
            for topic in marker.topics:
                for row in topic.partitions:
                    yield TopicPartition(topic.name, row.partition_index), row.error_code


def retry_due(coordinator: TransactionCoordinator) -> None:
    for transactional_id in sorted(coordinator.waiting):
        ending = coordinator.endings[transactional_id]
        if ending.due_ms is not None and ending.due_ms <= coordinator.mono_ms:
            _drop_deleted(coordinator, ending)
            _go_on(coordinator, transactional_id, coordinator.transactions[transactional_id], ending)


def resume(coordinator: TransactionCoordinator) -> None:
    """The log was read: carry out what it says is decided.

    After a pause, for this may be the machine that follows a failed append: else one that fails for long would keep the
    broker busy with nothing else.
    """
    for transactional_id, txn in coordinator.transactions.items():
        if txn.is_ending:
            ending = Ending(
                txn.producer_id, txn.epoch, set(txn.partitions), due_ms=coordinator.mono_ms + FIRST_PAUSE_MS
            )
            coordinator.endings[transactional_id] = ending
            coordinator.waiting.add(transactional_id)


def forget_topics(coordinator: TransactionCoordinator, topics: Collection[str]) -> None:
    """Continue ends that wait for markers of deleted topics."""
    for transactional_id, ending in list(coordinator.endings.items()):
        before = len(ending.left)
        ending.left = {one for one in ending.left if one.topic not in topics}
        if before and not ending.left:
            _go_on(coordinator, transactional_id, coordinator.transactions[transactional_id], ending)
