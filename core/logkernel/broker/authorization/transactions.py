"""Transactions: their ids need WRITE or DESCRIBE, what they write to needs what writing needs."""

from __future__ import annotations

from typing import Final

from logkernel.attrs_lite import evolve
from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.names import apart, without
from logkernel.broker.authorization.outcome import Answered, Outcome, Part, Refused
from logkernel.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from logkernel.requests import producers, transactions
from logkernel.vocabulary import AclOperation, ResourceType

ID: Final = ResourceType.TRANSACTIONAL_ID
NO_ID: Final = TransactionalIdAuthorizationFailed.code
NO_GROUP: Final = GroupAuthorizationFailed.code
NO_TOPIC: Final = TopicAuthorizationFailed.code


def init_producer_id(asking: Asking, request: producers.InitProducerIdRequest) -> Outcome:
    """Without a transactional id: who may write to some topic may be idempotent (KIP-679)."""
    name = request.transactional_id
    if name is not None:
        if not asking.may(AclOperation.WRITE, ID, name):
            return Refused(TransactionalIdAuthorizationFailed)
        if request.enable2_pc and not asking.may(AclOperation.TWO_PHASE_COMMIT, ID, name):
            return Refused(TransactionalIdAuthorizationFailed)
        return None
    if asking.any_of(AclOperation.WRITE, ResourceType.TOPIC) or asking.may_cluster(AclOperation.IDEMPOTENT_WRITE):
        return None
    return Refused(ClusterAuthorizationFailed)


def add_partitions_to_txn(asking: Asking, request: transactions.AddPartitionsToTxnRequest) -> Outcome:
    """A broker asks by later versions for a client that wrote; a client's own request is about one transaction, of
    which nothing is added where a part is refused."""
    if "transactions_v2" in asking.context.capabilities:
        return None if asking.may_cluster(AclOperation.CLUSTER_ACTION) else Refused(ClusterAuthorizationFailed)
    kept, rows = [], []
    for one in request.transactions:
        if not asking.may(AclOperation.WRITE, ID, one.transactional_id):
            rows.append(_not_added(one, dict.fromkeys((topic.name for topic in one.topics), NO_ID)))
            continue
        allowed = asking.those(AclOperation.WRITE, ResourceType.TOPIC, (topic.name for topic in one.topics))
        if all(topic.name in allowed for topic in one.topics):
            kept.append(one)
        else:
            other = OperationNotAttempted.code
            rows.append(_not_added(one, {t.name: other if t.name in allowed else NO_TOPIC for t in one.topics}))
    return without(
        request, "transactions", kept, transactions.AddPartitionsToTxnResponse(), "results_by_transaction", rows
    )


def _not_added(
    asked: transactions.AddPartitionsToTxnTransaction, codes: dict[str, int]
) -> transactions.AddPartitionsToTxnResult:
    kind = transactions.AddPartitionsToTxnPartitionResult
    topics = [
        transactions.AddPartitionsToTxnTopicResult(
            topic.name, [kind(index, codes[topic.name]) for index in topic.partitions]
        )
        for topic in asked.topics
    ]
    return transactions.AddPartitionsToTxnResult(asked.transactional_id, topics)


def add_offsets_to_txn(asking: Asking, request: transactions.AddOffsetsToTxnRequest) -> Outcome:
    if not asking.may(AclOperation.WRITE, ID, request.transactional_id):
        return Answered(transactions.AddOffsetsToTxnResponse(error_code=NO_ID))
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(transactions.AddOffsetsToTxnResponse(error_code=NO_GROUP))
    return None


def end_txn(asking: Asking, request: transactions.EndTxnRequest) -> Outcome:
    if asking.may(AclOperation.WRITE, ID, request.transactional_id):
        return None
    return Answered(transactions.EndTxnResponse(error_code=NO_ID))


def txn_offset_commit(asking: Asking, request: transactions.TxnOffsetCommitRequest) -> Outcome:
    if not asking.may(AclOperation.WRITE, ID, request.transactional_id):
        return Answered(_uncommitted(request.topics, NO_ID))
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(_uncommitted(request.topics, NO_GROUP))
    kept, refused = apart(asking, AclOperation.READ, request.topics, lambda topic: topic.name)
    rows = _uncommitted(refused, NO_TOPIC).topics
    return without(request, "topics", kept, transactions.TxnOffsetCommitResponse(), "topics", rows)


def _uncommitted(
    topics: list[transactions.TxnOffsetCommitRequestTopic], code: int
) -> transactions.TxnOffsetCommitResponse:
    kind = transactions.TxnOffsetCommitResponsePartition
    rows = [
        transactions.TxnOffsetCommitResponseTopic(
            topic.name, [kind(row.partition_index, code) for row in topic.partitions]
        )
        for topic in topics
    ]
    return transactions.TxnOffsetCommitResponse(topics=rows)


def write_txn_markers(asking: Asking, request: transactions.WriteTxnMarkersRequest) -> Outcome:
    """A coordinator's, or an administrator's who ends a hanging transaction."""
    if asking.may_cluster(AclOperation.ALTER, told=False) or asking.may_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return Refused(ClusterAuthorizationFailed)


# ---------------------------------------------------------------- described


def describe_producers(asking: Asking, request: transactions.DescribeProducersRequest) -> Outcome:
    kept, refused = apart(asking, AclOperation.READ, request.topics, lambda topic: topic.name)
    kind, text = transactions.PartitionResponse, TopicAuthorizationFailed.__doc__
    rows = [
        transactions.TopicResponse(topic.name, [kind(index, NO_TOPIC, text) for index in topic.partition_indexes])
        for topic in refused
    ]
    return without(request, "topics", kept, transactions.DescribeProducersResponse(), "topics", rows)


def describe_transactions(asking: Asking, request: transactions.DescribeTransactionsRequest) -> Outcome:
    """Of the topics in a transaction, those that the client may not describe are left out."""
    kept, refused = apart(asking, AclOperation.DESCRIBE, request.transactional_ids, lambda name: name, ID)
    rows = [transactions.TransactionState(NO_ID, name) for name in refused]
    if not kept:
        return Answered(transactions.DescribeTransactionsResponse(transaction_states=rows))

    def amend(response: transactions.DescribeTransactionsResponse) -> transactions.DescribeTransactionsResponse:
        for state in response.transaction_states:
            names = [topic.topic for topic in state.topics]
            seen = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, names)
            state.topics = [topic for topic in state.topics if topic.topic in seen]
        response.transaction_states.extend(rows)
        return response

    return Part(evolve(request, transactional_ids=kept), amend)


def list_transactions(asking: Asking, request: transactions.ListTransactionsRequest) -> Outcome:
    def amend(response: transactions.ListTransactionsResponse) -> transactions.ListTransactionsResponse:
        ids = [state.transactional_id for state in response.transaction_states]
        seen = asking.those(AclOperation.DESCRIBE, ID, ids, told=False)
        response.transaction_states = [one for one in response.transaction_states if one.transactional_id in seen]
        return response

    return Part(request, amend)
