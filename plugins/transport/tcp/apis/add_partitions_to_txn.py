"""AddPartitionsToTxn (key 24), versions 0-5: partitions join a transaction, or a leader asks whether they did.

- Versions 0 to 3 come from clients and carry one transaction in fields of their own; the broker sees `transactions`
  and answers `results_by_transaction` at every version.
- PRODUCER_FENCED is INVALID_PRODUCER_EPOCH to versions below 2, which do not know it.
- Capability: "transactions_v2" (4+, which brokers speak for clients that add partitions by producing to them).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidProducerEpoch, ProducerFenced, UnsupportedVersion
from logkernel.requests.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

from ..api import Api


class AddPartitionsToTxn(Api):
    capabilities = (("transactions_v2", 4),)

    def upgrade_request(self, version: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnRequest:
        if version >= 4:
            return request
        only = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return AddPartitionsToTxnRequest(transactions=[only])

    def downgrade_response(self, version: int, response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
        if version >= 4:
            return response
        topics = [
            AddPartitionsToTxnTopicResult(topic.name, [_old_row(version, row) for row in topic.results_by_partition])
            for result in response.results_by_transaction
            for topic in result.topic_results
        ]
        return AddPartitionsToTxnResponse(
            throttle_time_ms=response.throttle_time_ms, results_by_topic_v3_and_below=topics
        )

    def ceiling(self, request: AddPartitionsToTxnRequest) -> int:
        """A client may name its one transaction in the fields of version 3."""
        return self.row.max_version if request.transactions else 3

    def downgrade_request(self, version: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnRequest:
        if version >= 4 or not request.transactions:
            return request
        if len(request.transactions) != 1 or request.transactions[0].verify_only:
            raise UnsupportedVersion(f"AddPartitionsToTxn version {version} adds to one transaction at a time")
        only = request.transactions[0]
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=only.transactional_id,
            v3_and_below_producer_id=only.producer_id,
            v3_and_below_producer_epoch=only.producer_epoch,
            v3_and_below_topics=only.topics,
        )

    def upgrade_response(self, version: int, response: AddPartitionsToTxnResponse) -> AddPartitionsToTxnResponse:
        """Versions below 4 do not repeat the transactional id; it stays ""."""
        if version >= 4:
            return response
        only = AddPartitionsToTxnResult(topic_results=response.results_by_topic_v3_and_below)
        return evolve(response, results_by_transaction=[only])


def _old_row(version: int, row: AddPartitionsToTxnPartitionResult) -> AddPartitionsToTxnPartitionResult:
    fenced = version < 2 and row.partition_error_code == ProducerFenced.code
    code = InvalidProducerEpoch.code if fenced else row.partition_error_code
    return AddPartitionsToTxnPartitionResult(row.partition_index, code)
