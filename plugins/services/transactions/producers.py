"""InitProducerId with a transactional id: an epoch that fences every producer that had the id before.

    state            answer
    unknown          a new producer id, epoch 0
    Empty, Complete  the next epoch; a new producer id where the epochs are used up
    Ongoing          it is aborted against its producer; CONCURRENT_TRANSACTIONS, so that the client asks again
    Prepare          CONCURRENT_TRANSACTIONS

A producer that names the id and epoch it has (KIP-360) goes on after an error: it gets the next epoch if it is the
owner still, the present one if it asks a second time, and PRODUCER_FENCED otherwise. Unlike Kafka we say so also while
a transaction is Ongoing: a producer that is fenced must not abort its successor's transaction.
"""

from __future__ import annotations

from logkernel.contracts import RequestContext
from logkernel.errors import (
    ConcurrentTransactions,
    InvalidTransactionTimeout,
    KafkaError,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
)
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse

from .coordinator import TransactionCoordinator
from .ending import abort
from .state import LAST_CLIENT_EPOCH, NO_EPOCH, NO_PRODUCER, State, Transaction


def on_init(
    coordinator: TransactionCoordinator, request: InitProducerIdRequest, context: RequestContext, ticket: int
) -> None:
    response = InitProducerIdResponse(producer_id=NO_PRODUCER, producer_epoch=NO_EPOCH)
    try:
        txn = init(coordinator, request)
    except KafkaError as error:
        response.error_code = error.code
    else:
        response.producer_id, response.producer_epoch = txn.producer_id, txn.epoch
    coordinator.answer(ticket, response)


def init(coordinator: TransactionCoordinator, request: InitProducerIdRequest) -> Transaction:
    """Return the appended transaction. Raises the `KafkaError` to answer with."""
    transactional_id, timeout_ms = request.transactional_id, request.transaction_timeout_ms
    assert transactional_id, "the service answers for those without"
    _check(coordinator, request)
    expected = None if request.producer_id == NO_PRODUCER else (request.producer_id, request.producer_epoch)
    txn = coordinator.transactions.get(transactional_id)
    if txn is None:
        txn = Transaction.first(coordinator.cluster.next_producer_id(), timeout_ms, coordinator.wall_ms)
    elif txn.is_ending:
        raise ConcurrentTransactions(f"{transactional_id}: the last transaction is still ending")
    elif expected is not None and not _may_go_on(txn, *expected):
        raise ProducerFenced(f"{transactional_id}: producer {expected} is not {txn.producer_id}, {txn.epoch}")
    if txn.state is State.ONGOING:
        abort(coordinator, transactional_id, txn)
        raise ConcurrentTransactions(f"{transactional_id}: the transaction at hand is aborted first")
    after = _next(coordinator, txn, timeout_ms, None if expected is None else expected[1])
    coordinator.append(transactional_id, after)
    return after


def _check(coordinator: TransactionCoordinator, request: InitProducerIdRequest) -> None:
    if request.enable2_pc:
        raise TransactionalIdAuthorizationFailed("two-phase commit is not enabled")
    if request.keep_prepared_txn:
        raise UnsupportedVersion("prepared transactions are not kept")
    if not 0 < request.transaction_timeout_ms <= coordinator.settings.max_timeout_ms:
        raise InvalidTransactionTimeout(
            f"{request.transaction_timeout_ms} ms are not in 1 to {coordinator.settings.max_timeout_ms} ms"
        )


def _may_go_on(txn: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether one who names this id and epoch may be the owner; the epoch is judged by `Transaction.init`."""
    if txn.state is State.ONGOING:
        return (producer_id, epoch) == (txn.producer_id, txn.epoch)
    rotated = producer_id == txn.previous_producer_id and epoch >= LAST_CLIENT_EPOCH
    return producer_id == txn.producer_id or rotated


def _next(
    coordinator: TransactionCoordinator, txn: Transaction, timeout_ms: int, expected_epoch: int | None
) -> Transaction:
    if txn.is_exhausted and expected_epoch in (None, txn.epoch):
        new_id = coordinator.cluster.next_producer_id()
        return txn.rotate(new_id, timeout_ms, coordinator.wall_ms, known=expected_epoch is not None)
    return txn.init(timeout_ms, coordinator.wall_ms, expected_epoch)
