"""AddPartitionsToTxn and AddOffsetsToTxn: what takes part in a transaction, so that its end is marked there.

Nothing is written to a partition in a transaction's name before the coordinator's log says that it takes part: else an
end could miss it, and its readers would wait for ever. A leader that is not sure asks by `verify_only`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.errors import (
    CoordinatorLoadInProgress,
    InvalidProducerIdMapping,
    InvalidRequest,
    KafkaError,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from logkernel.requests.sharding import shard_of
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from logkernel.vocabulary import TopicPartition

from .. import offsets_topic
from .coordinator import TransactionCoordinator
from .state import V2, State

OFFSETS_TOPIC: Final = offsets_topic.TOPIC.name


def result_of(
    asked: AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], int]
) -> AddPartitionsToTxnResult:
    topics = [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(number, code_of(TopicPartition(topic.name, number)))
                for number in topic.partitions
            ],
        )
        for topic in asked.topics
    ]
    return AddPartitionsToTxnResult(asked.transactional_id, topics)


def on_add_partitions(
    coordinator: TransactionCoordinator, request: AddPartitionsToTxnRequest, context: RequestContext, ticket: int
) -> None:
    """One transaction a coordinator's part (`TransactionsService.split`)."""
    by_broker = context.internal or "transactions_v2" in context.capabilities
    (asked,) = request.transactions
    result = _add(coordinator, asked, by_broker)
    coordinator.answer(ticket, AddPartitionsToTxnResponse(results_by_transaction=[result]))


def _add(
    coordinator: TransactionCoordinator, asked: AddPartitionsToTxnTransaction, by_broker: bool
) -> AddPartitionsToTxnResult:
    partitions = [TopicPartition(topic.name, number) for topic in asked.topics for number in topic.partitions]
    faults = {one: code for one in partitions if (code := _fault(coordinator, one, by_broker))}
    if faults:
        return result_of(asked, lambda one: faults.get(one, OperationNotAttempted.code))
    if not asked.transactional_id:
        return result_of(asked, lambda _: InvalidRequest.code)
    if asked.verify_only:
        found = _verify(coordinator, asked, partitions)
        return result_of(asked, found.__getitem__)
    version = V2 if by_broker else 0
    code = add(coordinator, asked.transactional_id, asked.producer_id, asked.producer_epoch, partitions, version)
    return result_of(asked, lambda _: code)


def _fault(coordinator: TransactionCoordinator, one: TopicPartition, by_broker: bool) -> int:
    """Clients do not write to internal topics; brokers do in their name."""
    if not by_broker and coordinator.cluster.is_internal(one.topic):
        return TopicAuthorizationFailed.code
    try:
        return 0 if 0 <= one.partition < _count(coordinator, one.topic) else UnknownTopicOrPartition.code
    except KafkaError:
        return CoordinatorLoadInProgress.code


def _count(coordinator: TransactionCoordinator, topic: str) -> int:
    """Partitions of a topic; that of the groups' offsets is created by their first write, which may be this one.
    Raises `KafkaError` while that cannot be known."""
    known = coordinator.cluster.partition_count(topic)
    if known is None and topic == OFFSETS_TOPIC:
        known = coordinator.cluster.find_partition_count(topic)
        return coordinator.settings.offsets_partitions if known is None else known
    return known or 0


def _verify(
    coordinator: TransactionCoordinator, asked: AddPartitionsToTxnTransaction, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    txn = coordinator.transactions.get(asked.transactional_id)
    code = InvalidProducerIdMapping.code if txn is None else txn.judge(asked.producer_id, asked.producer_epoch)
    if txn is None or code:
        return dict.fromkeys(partitions, code)
    return {one: 0 if one in txn.partitions else TransactionAbortable.code for one in partitions}


def add(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Iterable[TopicPartition],
    client_version: int,
) -> int:
    """Error code, 0 when they take part (once this decision is committed)."""
    txn = coordinator.transactions.get(transactional_id)
    if txn is None:
        return InvalidProducerIdMapping.code
    code = txn.judge(producer_id, epoch)
    if code == 0 and not (txn.state is State.ONGOING and txn.partitions.issuperset(partitions)):
        coordinator.append(transactional_id, txn.add(partitions, coordinator.wall_ms, client_version))
    return code


def on_add_offsets(
    coordinator: TransactionCoordinator, request: AddOffsetsToTxnRequest, context: RequestContext, ticket: int
) -> None:
    """The partition of __consumer_offsets that keeps the group takes part."""
    try:
        partition = TopicPartition(OFFSETS_TOPIC, shard_of(request.group_id, _count(coordinator, OFFSETS_TOPIC)))
        code = add(coordinator, request.transactional_id, request.producer_id, request.producer_epoch, [partition], 0)
    except KafkaError:
        code = CoordinatorLoadInProgress.code
    coordinator.answer(ticket, AddOffsetsToTxnResponse(error_code=code))
