"""DescribeTransactions and ListTransactions, for operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.errors import InvalidRegularExpression, InvalidRequest, TransactionalIdNotFound
from logkernel.requests.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
    TransactionState,
)
from logkernel.vocabulary import TopicPartition

from .coordinator import TransactionCoordinator
from .records import by_topic
from .state import State, Transaction

STATES: Final = {**{state.value: state for state in State}, "PrepareEpochFence": State.DEAD}
"""By Kafka's names; its PrepareEpochFence is a state that nothing is ever seen in, as Dead is."""


def on_describe(
    coordinator: TransactionCoordinator, request: DescribeTransactionsRequest, context: RequestContext, ticket: int
) -> None:
    rows = [describe(coordinator, name) for name in request.transactional_ids]
    coordinator.answer(ticket, DescribeTransactionsResponse(transaction_states=rows))


def describe(coordinator: TransactionCoordinator, transactional_id: str) -> TransactionState:
    txn = coordinator.transactions.get(transactional_id)
    if txn is None:
        code = TransactionalIdNotFound.code if transactional_id else InvalidRequest.code
        return TransactionState(code, transactional_id)
    topics = by_topic(_partitions_left(coordinator, transactional_id))
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=txn.state.value,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.started_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.epoch,
        topics=[TopicData(topic, numbers) for topic, numbers in topics.items()],
    )


def _partitions_left(coordinator: TransactionCoordinator, transactional_id: str) -> frozenset[TopicPartition]:
    """Those that take part; of an end that is carried out, those whose marker is missing."""
    ending = coordinator.endings.get(transactional_id)
    return coordinator.transactions[transactional_id].partitions if ending is None else frozenset(ending.left)


def on_list(
    coordinator: TransactionCoordinator, request: ListTransactionsRequest, context: RequestContext, ticket: int
) -> None:
    unknown = [name for name in request.state_filters if name not in STATES]
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    try:
        matches = _matcher(request.transactional_id_pattern)
    except InvalidRegularExpression as error:
        coordinator.answer(ticket, ListTransactionsResponse(error_code=error.code))
        return
    states = {STATES[name] for name in request.state_filters if name in STATES}
    ids = set(request.producer_id_filters)

    def wanted(name: str, txn: Transaction) -> bool:
        if (request.state_filters and txn.state not in states) or (ids and txn.producer_id not in ids):
            return False
        if request.duration_filter >= 0 and coordinator.wall_ms - txn.started_ms <= request.duration_filter:
            return False
        return matches(name)

    response.transaction_states = [
        ListTransactionsResponseTransactionState(name, txn.producer_id, txn.state.value)
        for name, txn in coordinator.transactions.items()
        if wanted(name, txn)
    ]
    coordinator.answer(ticket, response)


@lru_cache(maxsize=8)
def _matcher(pattern: str | None) -> Callable[[str], bool]:
    """Whole ids by an RE2 pattern, whose time is linear whatever it says; raises `InvalidRegularExpression`."""
    if not pattern:
        return lambda _: True
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        found = re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidRegularExpression(str(error)) from None
    return lambda name: found.fullmatch(name) is not None
