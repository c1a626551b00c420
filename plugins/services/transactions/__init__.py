"""The transaction coordinator, as a service.

The parts, from the bytes up:

    state        one transactional id: its states, their transitions, the producers it accepts
    records      the bytes of __transaction_state
    coordinator  all ids of one partition of __transaction_state, and the decision being built
    producers    InitProducerId
    partitions   AddPartitionsToTxn, AddOffsetsToTxn
    ending       EndTxn, timeouts, and the markers from Prepare to Complete
    listing      DescribeTransactions, ListTransactions
    machine      `contracts.ServiceMachine`: dispatch, replay, timers
    service      `contracts.Service`: shards, splitting and joining of requests, ids for plain idempotent producers
    declared     the settings of brokers

The core keeps the partitions' part: producer state, markers, last stable offset. The service `groups` keeps offsets
that a transaction commits, and answers FindCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.config.definitions import Setting
from logkernel.contracts import Service, ServiceDeclaration, ServiceTopic
from logkernel.hookspecs import hookimpl

DECLARATION: Final = ServiceDeclaration(
    name="transactions",
    asks_all=("ListTransactionsRequest",),
    requests=(
        "InitProducerIdRequest",
        "AddPartitionsToTxnRequest",
        "AddOffsetsToTxnRequest",
        "EndTxnRequest",
        "DescribeTransactionsRequest",
        "ListTransactionsRequest",
    ),
    topic=ServiceTopic(
        name="__transaction_state",
        partitions_setting="transaction.state.log.num.partitions",
        config={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        },
        replication_setting="transaction.state.log.replication.factor",
        config_settings={
            "segment.bytes": "transaction.state.log.segment.bytes",
            "min.insync.replicas": "transaction.state.log.min.isr",
        },
    ),
    features={"transaction.version": (0, 2, 2)},
)


@hookimpl
def logkernel_services() -> Iterable[ServiceDeclaration]:
    return [DECLARATION]


@hookimpl
def logkernel_service(name: str, settings: Mapping[str, Any], cluster: Any) -> Service | None:
    if name != "transactions":
        return None
    from .service import TransactionsService
    from .settings import TransactionSettings

    return TransactionsService(TransactionSettings.read(settings), cluster)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("service", "transactions")]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    from .declared import SETTINGS

    return SETTINGS
