"""Producers and transactions: list, describe, find hanging ones, abort, fence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from logkernel.attrs_lite import frozen
from logkernel.client.admin.plans import (
    Ask,
    Partition,
    Plan,
    at_brokers,
    at_leaders,
    by_topic,
    in_rows,
    row_error,
    several,
    values_or_raise,
)
from logkernel.errors import KafkaError, TransactionalIdNotFound
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TopicRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from logkernel.vocabulary import TopicPartition

FENCE_TIMEOUT_MS: Final = 30_000
LONGEST_MS: Final = 15 * 60_000
"""The default of the brokers' transaction.max.timeout.ms."""
OVER: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


@frozen
class ProducerState:
    """A producer as a partition knows it; `transaction_start` is the first offset of its open transaction, or -1."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    transaction_start: int


@frozen
class TransactionListing:
    id: str
    producer_id: int
    state: str


@frozen
class TransactionDescription:
    """`started_ms` (since 1970) is -1 if no transaction is open."""

    id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...]


@frozen
class HangingTransaction:
    """A transaction that is open on a partition without a coordinator to end it."""

    partition: TopicPartition
    transactional_id: str | None
    producer: ProducerState


@frozen
class FencedProducer:
    """The new producer id and epoch; older epochs are refused."""

    producer_id: int
    epoch: int


def describe_producers(
    partitions: Partition | Iterable[Partition],
) -> Plan[dict[TopicPartition, tuple[ProducerState, ...]]]:
    """Return the producers that each partition's leader knows (KIP-664). Raises `UnknownTopicOrPartition`."""
    wanted = _partitions(partitions)

    def make(names: list[TopicPartition]) -> DescribeProducersRequest:
        return DescribeProducersRequest([TopicRequest(topic, rows) for topic, rows in by_topic(names).items()])

    def rows(response: Any) -> Any:
        for topic in response.topics:
            for row in topic.partitions:
                name = TopicPartition(topic.name, row.partition_index)
                yield name, row.error_code, row.error_message, row

    found = values_or_raise((yield from at_leaders(dict.fromkeys(wanted), make, rows)))
    return {name: tuple(map(_state, row.active_producers)) for name, row in found.items()}


def _partitions(given: Partition | Iterable[Partition]) -> list[TopicPartition]:
    rows: Any = [given] if isinstance(given, tuple) and isinstance(given[0], str) else given
    return list(dict.fromkeys(TopicPartition(*row) for row in rows))


def _state(row: Any) -> ProducerState:
    return ProducerState(
        row.producer_id,
        row.producer_epoch,
        row.last_sequence,
        row.last_timestamp,
        row.coordinator_epoch,
        row.current_txn_start_offset,
    )


def list_transactions(
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    running_longer_than_ms: int = -1,
    pattern: str | None = None,
) -> Plan[dict[str, TransactionListing]]:
    """Return the transactional ids of all brokers that match the filters. `pattern` is RE2 and matches whole ids.

    Raises `InvalidRegularExpression`, `UnsupportedVersion` for a filter that a broker does not know.
    """
    request = ListTransactionsRequest(list(states), list(producer_ids), running_longer_than_ms, pattern)
    found: dict[str, TransactionListing] = {}
    for response in (yield from at_brokers(request)).values():
        if response.error_code:
            raise row_error(response, "transactions") or KafkaError()
        for row in response.transaction_states:
            found[row.transactional_id] = TransactionListing(
                row.transactional_id, row.producer_id, row.transaction_state
            )
    return dict(sorted(found.items()))


def describe_transactions(ids: str | Iterable[str]) -> Plan[dict[str, TransactionDescription]]:
    """Return transactions by transactional id, from their coordinators. Raises `TransactionalIdNotFound`."""
    return values_or_raise((yield from _described(several(ids))))


def _described(ids: list[str]) -> Plan[dict[str, Any]]:
    asks = [
        Ask(DescribeTransactionsRequest([name]), ("transaction", name), in_rows("transaction_states")) for name in ids
    ]
    outcomes = yield asks
    found: dict[str, Any] = {}
    for name, asked, outcome in zip(ids, asks, outcomes, strict=True):
        if isinstance(outcome, Exception):
            found[name] = outcome
            continue
        row = outcome.transaction_states[0]
        places = [TopicPartition(topic.topic, index) for topic in row.topics for index in topic.partitions]
        found[name] = row_error(row, name) or TransactionDescription(
            name,
            asked.node,
            row.transaction_state,
            row.producer_id,
            row.producer_epoch,
            row.transaction_timeout_ms,
            row.transaction_start_time_ms,
            tuple(sorted(places)),
        )
    return found


def abort_transaction(
    partition: Partition, producer_id: int, producer_epoch: int, coordinator_epoch: int = -1
) -> Plan[None]:
    """Abort a hanging transaction (see `find_hanging_transactions`) on one partition, by an abort marker.

    Raises `InvalidProducerEpoch`, `TransactionCoordinatorFenced`, `UnknownTopicOrPartition`.
    """
    name = TopicPartition(*partition)

    def make(names: list[TopicPartition]) -> WriteTxnMarkersRequest:
        topics = [WritableTxnMarkerTopic(topic, rows) for topic, rows in by_topic(names).items()]
        marker = WritableTxnMarker(producer_id, producer_epoch, False, topics, max(coordinator_epoch, 0))
        return WriteTxnMarkersRequest([marker])

    def rows(response: Any) -> Any:
        for marker in response.markers:
            for topic in marker.topics:
                for row in topic.partitions:
                    yield TopicPartition(topic.name, row.partition_index), row.error_code, None, row

    values_or_raise((yield from at_leaders({name: None}, make, rows)))


def fence_producers(ids: str | Iterable[str]) -> Plan[dict[str, FencedProducer]]:
    """Fence the producers of transactional ids: abort their open transactions, and refuse their epochs."""
    wanted: list[str] = several(ids)
    outcomes = yield [
        Ask(InitProducerIdRequest(name, FENCE_TIMEOUT_MS, -1, -1), ("transaction", name)) for name in wanted
    ]
    found: dict[str, FencedProducer | Exception] = {}
    for name, outcome in zip(wanted, outcomes, strict=True):
        found[name] = (
            outcome if isinstance(outcome, Exception) else FencedProducer(outcome.producer_id, outcome.producer_epoch)
        )
    return values_or_raise(found)


def find_hanging_transactions(
    partitions: Partition | Iterable[Partition], now_ms: int, *, longest_ms: int = LONGEST_MS
) -> Plan[list[HangingTransaction]]:
    """Return transactions that are open on these partitions for longer than `longest_ms`, and that no coordinator
    will end: readers of committed records wait for them forever. `now_ms` is the time in ms since 1970 (KIP-664)."""
    known = yield from describe_producers(partitions)
    open_: list[tuple[TopicPartition, ProducerState]] = [
        (name, producer)
        for name, rows in known.items()
        for producer in rows
        if producer.transaction_start >= 0 and producer.last_timestamp_ms < now_ms - longest_ms
    ]
    if not open_:
        return []
    listed = yield from list_transactions(producer_ids=sorted({producer.producer_id for _, producer in open_}))
    names = {row.producer_id: name for name, row in listed.items()}
    described = yield from _described(list(listed))
    found = []
    for name, producer in open_:
        txn_id = names.get(producer.producer_id)
        if txn_id is None or _lost(described[txn_id], name):
            found.append(HangingTransaction(name, txn_id, producer))
    return found


def _lost(transaction: Any, partition: TopicPartition) -> bool:
    """Whether the coordinator does not know that this transaction is open on `partition`."""
    if isinstance(transaction, TransactionalIdNotFound):
        return True
    if isinstance(transaction, Exception):
        raise transaction
    return transaction.state in OVER or partition not in transaction.partitions
