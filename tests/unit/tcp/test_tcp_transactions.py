"""What old versions of the transaction APIs turn into, both ways through bytes; no field is lost on the way."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.errors import UnsupportedVersion
from logkernel.plugins.transport.tcp import registry
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
    TopicData,
    TransactionState,
)

INIT, ADD, OFFSETS, END, DESCRIBE, LIST = 22, 24, 25, 26, 65, 66
OLD_EPOCH, FENCED = 47, 90


def through(key: int, version: int, request: Any, response: Any) -> tuple[Any, Any]:
    """What the broker sees of `request`, and the client of `response`, at `version`."""
    api = registry.load(key)
    seen = api.request_decoder(version)(memoryview(bytes(api.request_encoder(version)(request))))
    body = b"".join(api.response_encoder(version)(response))  # type: ignore[arg-type]
    return seen, api.response_decoder(version)(memoryview(body))


def transaction(name: str = "tx", *, verify_only: bool = False) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(name, 4000, 3, verify_only, [AddPartitionsToTxnTopic("orders", [1, 2])])


def result(code: int, name: str = "tx") -> AddPartitionsToTxnResult:
    rows = [AddPartitionsToTxnPartitionResult(1, code), AddPartitionsToTxnPartitionResult(2, 0)]
    return AddPartitionsToTxnResult(name, [AddPartitionsToTxnTopicResult("orders", rows)])


@pytest.mark.parametrize("version", range(6))
def test_partitions_are_added_to_a_list_of_transactions_at_every_version(version: int) -> None:
    request = AddPartitionsToTxnRequest([transaction()])
    response = AddPartitionsToTxnResponse(throttle_time_ms=7, results_by_transaction=[result(FENCED)])
    seen, got = through(ADD, version, request, response)
    assert seen == request
    (row,) = got.results_by_transaction
    assert (row.transactional_id, got.throttle_time_ms) == ("tx" if version >= 4 else "", 7)
    codes = [one.partition_error_code for one in row.topic_results[0].results_by_partition]
    assert codes == [FENCED if version >= 2 else OLD_EPOCH, 0]
    assert registry.load(ADD).capabilities_at(version) == ({"transactions_v2"} if version >= 4 else set())


@pytest.mark.parametrize("version", [4, 5])
def test_many_transactions_and_questions_are_of_version_4(version: int) -> None:
    request = AddPartitionsToTxnRequest([transaction(), transaction("other", verify_only=True)])
    response = AddPartitionsToTxnResponse(error_code=15, results_by_transaction=[result(0), result(120, "other")])
    assert through(ADD, version, request, response) == (request, response)
    for refused in (request, AddPartitionsToTxnRequest([transaction(verify_only=True)])):
        with pytest.raises(UnsupportedVersion):
            registry.load(ADD).request_encoder(3)(refused)


def test_a_client_may_name_its_transaction_in_the_old_fields() -> None:
    api, only = registry.load(ADD), transaction()
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=4000,
        v3_and_below_producer_epoch=3,
        v3_and_below_topics=only.topics,
    )
    assert api.ceiling(request) == 3
    assert api.ceiling(AddPartitionsToTxnRequest([only])) == 5
    response = AddPartitionsToTxnResponse(results_by_transaction=[result(0)])
    seen, got = through(ADD, 3, request, response)
    assert seen == AddPartitionsToTxnRequest([only])
    assert got.results_by_topic_v3_and_below == got.results_by_transaction[0].topic_results


@pytest.mark.parametrize("version", range(5))
def test_add_offsets(version: int) -> None:
    request = AddOffsetsToTxnRequest("tx", 4000, 3, "group")
    seen, got = through(OFFSETS, version, request, AddOffsetsToTxnResponse(7, FENCED))
    assert seen == request
    assert (got.throttle_time_ms, got.error_code) == (7, FENCED if version >= 2 else OLD_EPOCH)
    assert through(OFFSETS, version, request, AddOffsetsToTxnResponse(0, 51))[1].error_code == 51


@pytest.mark.parametrize("version", range(6))
def test_end_txn(version: int) -> None:
    request = EndTxnRequest("tx", 4000, 3, True)
    seen, got = through(END, version, request, EndTxnResponse(7, FENCED, 4001, 4))
    assert seen == request
    assert (got.throttle_time_ms, got.error_code) == (7, FENCED if version >= 2 else OLD_EPOCH)
    assert (got.producer_id, got.producer_epoch) == ((4001, 4) if version >= 5 else (-1, -1))
    assert registry.load(END).capabilities_at(version) == ({"transactions_v2"} if version >= 5 else set())


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(version: int) -> None:
    request = InitProducerIdRequest("tx", 60_000, *((4000, 3) if version >= 3 else (-1, -1)))
    seen, got = through(INIT, version, request, InitProducerIdResponse(7, FENCED, 4000, 5))
    assert seen == request
    assert (got.throttle_time_ms, got.producer_id, got.producer_epoch) == (7, 4000, 5)
    assert got.error_code == (FENCED if version >= 4 else OLD_EPOCH)


def test_describe_transactions_crosses_the_wire() -> None:
    row = TransactionState(5, "tx", "Ongoing", 60_000, 1_700_000_000_000, 4000, 3, [TopicData("orders", [1, 2])])
    request, response = DescribeTransactionsRequest(["tx", "other"]), DescribeTransactionsResponse(7, [row])
    assert through(DESCRIBE, 0, request, response) == (request, response)


@pytest.mark.parametrize("version", range(3))
def test_list_transactions_crosses_the_wire_in_every_version(version: int) -> None:
    request = ListTransactionsRequest(["Ongoing"], [4000], 9 if version else -1, "t.*" if version == 2 else None)
    row = ListTransactionsResponseTransactionState("tx", 4000, "Ongoing")
    response = ListTransactionsResponse(7, 5, ["What"], [row])
    assert through(LIST, version, request, response) == (request, response)


@pytest.mark.parametrize(
    ("version", "filters"),
    [(0, {"duration_filter": 0}), (1, {"transactional_id_pattern": "t"}), (0, {"transactional_id_pattern": "t"})],
)
def test_a_filter_that_a_version_lacks_is_not_dropped_in_silence(version: int, filters: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedVersion):
        registry.load(LIST).request_encoder(version)(ListTransactionsRequest(**filters))
