"""The service: what goes to which shard, how parts come together, and how a request is refused."""

from __future__ import annotations

from typing import Any

import pluggy
import pytest

from logkernel import contracts, hookspecs
from logkernel.contracts import RequestContext
from logkernel.errors import CoordinatorNotAvailable
from logkernel.plugins.services import transactions
from logkernel.requests import producers as producer_requests
from logkernel.requests import transactions as requests
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.sharding import shard_of
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)

CONTEXT = RequestContext()
TOPICS = [AddPartitionsToTxnTopic("orders", [0, 2])]


class Ids:
    def next_producer_id(self) -> int:
        return 77


class NoIds:
    def next_producer_id(self) -> int:
        raise CoordinatorNotAvailable


def service(cluster: Any = None) -> contracts.Service:
    manager = pluggy.PluginManager("logkernel")
    manager.add_hookspecs(hookspecs)
    manager.register(transactions)
    assert ("service", "transactions") in next(iter(manager.hook.logkernel_names()))
    assert manager.hook.logkernel_service(name="other", settings={}, cluster=None) is None
    found = manager.hook.logkernel_service(name="transactions", settings={}, cluster=cluster or Ids())
    return found  # type: ignore[no-any-return]


def test_its_topic_and_feature_are_kafkas() -> None:
    declared = transactions.DECLARATION
    assert declared.topic is not None
    assert (declared.topic.name, declared.topic.partitions_setting) == (
        "__transaction_state",
        "transaction.state.log.num.partitions",
    )
    assert declared.topic.config["cleanup.policy"] == "compact"
    assert declared.features == {"transaction.version": (0, 2, 2)}


def test_every_request_that_it_declares_has_its_classes() -> None:
    for name in transactions.DECLARATION.requests:
        assert hasattr(requests, name) or hasattr(producer_requests, name)


@pytest.mark.parametrize(
    "request_",
    [
        InitProducerIdRequest("tx"),
        AddOffsetsToTxnRequest("tx"),
        EndTxnRequest("tx"),
    ],
)
def test_a_transactional_id_has_one_shard(request_: Any) -> None:
    assert service().split(request_, 50) == [(shard_of("tx", 50), request_)]


def test_lists_are_split() -> None:
    found = service()
    one, two = (AddPartitionsToTxnTransaction(name, topics=TOPICS) for name in ("a", "b"))
    assert found.split(AddPartitionsToTxnRequest([one, two]), 50) == [
        (47, AddPartitionsToTxnRequest([one])),
        (48, AddPartitionsToTxnRequest([two])),
    ]
    assert found.split(DescribeTransactionsRequest(["a", "b"]), 50) == [
        (47, DescribeTransactionsRequest(["a"])),
        (48, DescribeTransactionsRequest(["b"])),
    ]
    assert [shard for shard, _ in found.split(ListTransactionsRequest(), 3)] == [0, 1, 2]


def test_lists_are_joined() -> None:
    found = service()
    parts = AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction(name, topics=TOPICS) for name in ("a", "b")])
    refusals = [found.refusal(part, 14) for _, part in found.split(parts, 50)]
    joined = found.join(parts, refusals, CONTEXT)
    assert joined == found.refusal(parts, 14)
    assert [row.transactional_id for row in joined.results_by_transaction] == ["a", "b"]
    described = DescribeTransactionsRequest(["a", "b"])
    refusals = [found.refusal(part, 14) for _, part in found.split(described, 50)]
    assert found.join(described, refusals, CONTEXT) == found.refusal(described, 14)
    assert found.join(DescribeTransactionsRequest(), (), CONTEXT).transaction_states == []
    assert found.join(AddPartitionsToTxnRequest(), (), CONTEXT).results_by_transaction == []


def test_lists_of_every_shard_are_joined() -> None:
    rows = [ListTransactionsResponseTransactionState(name, 1, "Empty") for name in "ab"]
    parts = [ListTransactionsResponse(unknown_state_filters=["x"], transaction_states=[row]) for row in rows]
    whole = service().join(ListTransactionsRequest(), parts, CONTEXT)
    assert whole == ListTransactionsResponse(unknown_state_filters=["x"], transaction_states=rows)
    broken = ListTransactionsResponse(error_code=14)
    assert service().join(ListTransactionsRequest(), [parts[0], broken], CONTEXT) == broken


@pytest.mark.parametrize(
    "request_",
    [InitProducerIdRequest(""), InitProducerIdRequest("tx", producer_id=1), InitProducerIdRequest("x" * 40_000),
     InitProducerIdRequest(None, producer_epoch=1), AddOffsetsToTxnRequest(""), EndTxnRequest("")],
)  # fmt: skip
def test_what_has_no_usable_id_is_refused_without_a_shard(request_: Any) -> None:
    found = service()
    assert found.split(request_, 50) == ()
    assert found.join(request_, (), CONTEXT).error_code == 42


def test_plain_idempotent_producers_need_no_shard() -> None:
    for request in (InitProducerIdRequest(), InitProducerIdRequest(None, 0, 5, 1)):
        assert service().split(request, 50) == ()
        answer = service().join(request, (), CONTEXT)
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, 77, 0)
    answer = service(NoIds()).join(InitProducerIdRequest(), (), CONTEXT)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (15, -1, -1)


FAULTS = [(3, 15), (19, 15), (20, 15), (7, 15), (6, 16), (56, 16), (10, -1), (14, 14)]


@pytest.mark.parametrize(("code", "told"), FAULTS)
def test_faults_of_the_log_send_clients_to_the_coordinator_again(code: int, told: int) -> None:
    found = service()
    assert found.refusal(EndTxnRequest("tx"), code).error_code == told
    assert found.refusal(AddOffsetsToTxnRequest("tx"), code).error_code == told
    assert found.refusal(ListTransactionsRequest(), code).error_code == told
    init = found.refusal(InitProducerIdRequest("tx"), code)
    assert (init.error_code, init.producer_id, init.producer_epoch) == (told, -1, -1)
    (row,) = found.refusal(DescribeTransactionsRequest(["tx"]), code).transaction_states
    assert (row.error_code, row.transactional_id) == (told, "tx")
    (result,) = found.refusal(
        AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction("tx", topics=TOPICS)]), code
    ).results_by_transaction
    (topic,) = result.topic_results
    assert [(one.partition_index, one.partition_error_code) for one in topic.results_by_partition] == [
        (0, told),
        (2, told),
    ]
    with pytest.raises(TypeError):
        found.refusal(object(), code)
