"""The machine of one shard (`contracts.ServiceMachine`): dispatches requests, folds the log, lets time pass. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from logkernel.contracts import ClusterView, Decision, RequestContext
from logkernel.requests import producers as producer_requests
from logkernel.requests import transactions as requests
from logkernel.vocabulary import Record

from . import ending, listing, partitions, producers
from .coordinator import TransactionCoordinator
from .records import decode_key
from .settings import TransactionSettings
from .state import Transaction

Handler = Callable[[TransactionCoordinator, Any, RequestContext, int], None]

HANDLERS: Final[Mapping[type, Handler]] = {
    producer_requests.InitProducerIdRequest: producers.on_init,
    requests.AddPartitionsToTxnRequest: partitions.on_add_partitions,
    requests.AddOffsetsToTxnRequest: partitions.on_add_offsets,
    requests.EndTxnRequest: ending.on_end,
    requests.DescribeTransactionsRequest: listing.on_describe,
    requests.ListTransactionsRequest: listing.on_list,
}

TOMBSTONES_AT_ONCE: Final = 1_000
"""Expired ids that one turn forgets; the others follow in the next."""


class TransactionsMachine:
    """The transactional ids of one partition of __transaction_state."""

    __slots__ = ("coordinator",)

    def __init__(self, number: int, settings: TransactionSettings, cluster: ClusterView) -> None:
        self.coordinator = TransactionCoordinator(number, settings, cluster)

    @property
    def transactions(self) -> Mapping[str, Transaction]:
        """To look at."""
        return self.coordinator.transactions

    def on_request(self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        """Raises TypeError for a request that is not of this family."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise TypeError(f"transactions do not answer {type(request).__name__}")
        self.coordinator.begin(wall_ms, mono_ms)
        handler(self.coordinator, request, context, ticket)
        return self.coordinator.finish()

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        self.coordinator.begin(wall_ms, mono_ms)
        ending.on_markers(self.coordinator, token, response)
        return self.coordinator.finish()

    def on_topics_changed(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        return Decision()

    def on_topics_deleted(self, topics: Collection[str], wall_ms: int, mono_ms: int) -> Decision:
        """What is Ongoing keeps them, as in Kafka: a marker in a topic made anew ends nothing there."""
        self.coordinator.begin(wall_ms, mono_ms)
        ending.forget_topics(self.coordinator, topics)
        return self.coordinator.finish()

    def replay(self, record: Record) -> None:
        """Apply one record; other services' records are ignored. Raises `CorruptMessage`."""
        if record.key is None:
            return
        transactional_id = decode_key(record.key)
        if transactional_id is not None:
            self.coordinator.fold(transactional_id, record)

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        """Continue ends that were decided, and start the timers."""
        self.coordinator.begin(wall_ms, mono_ms)
        ending.resume(self.coordinator)
        return self.coordinator.finish()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        """Everything whose time has come."""
        coordinator = self.coordinator
        coordinator.begin(wall_ms, mono_ms)
        ending.retry_due(coordinator)
        if coordinator.abort_due_ms is not None and coordinator.abort_due_ms <= mono_ms:
            coordinator.abort_due_ms = None
            ending.abort_timed_out(coordinator)
        if coordinator.expire_due_ms is not None and coordinator.expire_due_ms <= mono_ms:
            coordinator.expire_due_ms = None
            _expire(coordinator)
        return coordinator.finish()

    def next_deadline(self) -> int | None:
        coordinator = self.coordinator
        due = [coordinator.endings[name].due_ms for name in coordinator.waiting]
        return min(
            (one for one in (*due, coordinator.abort_due_ms, coordinator.expire_due_ms) if one is not None),
            default=None,
        )


def _expire(coordinator: TransactionCoordinator) -> None:
    """Write tombstones for ids that were not used for `transactional.id.expiration.ms`."""
    expiration_ms = coordinator.settings.expiration_ms
    old = [
        name for name, txn in coordinator.transactions.items() if txn.has_expired(coordinator.wall_ms, expiration_ms)
    ]
    for name in old[:TOMBSTONES_AT_ONCE]:
        coordinator.append_tombstone(name)
    if len(old) > TOMBSTONES_AT_ONCE:
        coordinator.expire_due_ms = coordinator.mono_ms + 1
