"""The service: finds the shards of a request, and merges the responses of its parts.

InitProducerId without a transactional id has no shard: the response is a new producer id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from logkernel.contracts import ClusterView, RequestContext
from logkernel.errors import (
    InvalidRequest,
    KafkaError,
)
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse
from logkernel.requests.sharding import shard_of
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

from ..append_faults import COORDINATOR_FAULTS
from .machine import TransactionsMachine
from .partitions import result_of
from .records import fits
from .settings import TransactionSettings
from .state import NO_EPOCH, NO_PRODUCER


class TransactionsService:
    def __init__(self, settings: TransactionSettings, cluster: ClusterView) -> None:
        self._settings = settings
        self._cluster = cluster

    def machine(self, shard: int, ids: Callable[[], str]) -> TransactionsMachine:
        return TransactionsMachine(shard, self._settings, self._cluster)

    # ------------------------------------------------------------ split and join

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """Return a part for each transactional id; ListTransactions asks all shards. `join` answers for invalid ids."""
        match request:
            case ListTransactionsRequest():
                return [(shard, request) for shard in range(shards)]
            case DescribeTransactionsRequest():
                return [
                    (shard_of(name, shards), DescribeTransactionsRequest([name])) for name in request.transactional_ids
                ]
            case AddPartitionsToTxnRequest():
                return [
                    (shard_of(one.transactional_id, shards), AddPartitionsToTxnRequest([one]))
                    for one in request.transactions
                ]
            case InitProducerIdRequest() if _is_half_known(request):
                return ()
        usable = request.transactional_id and fits(request.transactional_id)
        return [(shard_of(request.transactional_id, shards), request)] if usable else ()

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        match request:
            case ListTransactionsRequest():
                return _join_lists(responses)
            case DescribeTransactionsRequest():
                rows = [row for response in responses for row in response.transaction_states]
                return DescribeTransactionsResponse(transaction_states=rows)
            case AddPartitionsToTxnRequest():
                results = [row for response in responses for row in response.results_by_transaction]
                return AddPartitionsToTxnResponse(results_by_transaction=results)
            case InitProducerIdRequest() if request.transactional_id is None and not _is_half_known(request):
                return self._idempotent()
        return responses[0] if responses else self.refusal(request, InvalidRequest.code)

    def _idempotent(self) -> InitProducerIdResponse:
        try:
            return InitProducerIdResponse(producer_id=self._cluster.next_producer_id(), producer_epoch=0)
        except KafkaError as error:
            return InitProducerIdResponse(error_code=error.code, producer_id=NO_PRODUCER, producer_epoch=NO_EPOCH)

    # ------------------------------------------------------------ refusal

    def refusal(self, request: Any, code: int) -> Any:
        """Return the response to a request whose append failed, or whose shard is not available."""
        told = COORDINATOR_FAULTS.get(code, code)
        match request:
            case InitProducerIdRequest():
                return InitProducerIdResponse(error_code=told, producer_id=NO_PRODUCER, producer_epoch=NO_EPOCH)
            case AddPartitionsToTxnRequest():
                results = [result_of(one, lambda _: told) for one in request.transactions]
                return AddPartitionsToTxnResponse(results_by_transaction=results)
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=told)
            case EndTxnRequest():
                return EndTxnResponse(error_code=told)
            case DescribeTransactionsRequest():
                rows = [TransactionState(told, name) for name in request.transactional_ids]
                return DescribeTransactionsResponse(transaction_states=rows)
            case ListTransactionsRequest():
                return ListTransactionsResponse(error_code=told)
        raise TypeError(f"transactions do not answer {type(request).__name__}")


def _is_half_known(request: InitProducerIdRequest) -> bool:
    """Whether a request has a producer id or an epoch, but not both."""
    return (request.producer_id == NO_PRODUCER) != (request.producer_epoch == NO_EPOCH)


def _join_lists(responses: Sequence[ListTransactionsResponse]) -> ListTransactionsResponse:
    """Merge the lists. All shards check the same filters: the first error is the answer."""
    fault = next((response for response in responses if response.error_code), None)
    if fault is not None:
        return fault
    rows = [row for response in responses for row in response.transaction_states]
    unknown = responses[0].unknown_state_filters if responses else []
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=rows)
