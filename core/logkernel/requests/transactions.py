"""Versionless requests and responses: transactions."""

from __future__ import annotations

from logkernel.attrs_lite import field, mutable


@mutable
class AddPartitionsToTxnTopic:
    name: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class AddPartitionsToTxnTransaction:
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(factory=list)


@mutable
class AddPartitionsToTxnRequest:
    """AddPartitionsToTxnRequest (API key 24), versionless."""

    transactions: list[AddPartitionsToTxnTransaction] = field(factory=list)
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(factory=list)


@mutable
class AddPartitionsToTxnPartitionResult:
    partition_index: int = 0
    partition_error_code: int = 0


@mutable
class AddPartitionsToTxnTopicResult:
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(factory=list)


@mutable
class AddPartitionsToTxnResult:
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(factory=list)


@mutable
class AddPartitionsToTxnResponse:
    """AddPartitionsToTxnResponse (API key 24), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = field(factory=list)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(factory=list)


@mutable
class AddOffsetsToTxnRequest:
    """AddOffsetsToTxnRequest (API key 25), versionless."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


@mutable
class AddOffsetsToTxnResponse:
    """AddOffsetsToTxnResponse (API key 25), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0


@mutable
class EndTxnRequest:
    """EndTxnRequest (API key 26), versionless."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


@mutable
class EndTxnResponse:
    """EndTxnResponse (API key 26), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


@mutable
class WritableTxnMarkerTopic:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@mutable
class WritableTxnMarker:
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(factory=list)
    coordinator_epoch: int = 0
    transaction_version: int = 0


@mutable
class WriteTxnMarkersRequest:
    """WriteTxnMarkersRequest (API key 27), versionless."""

    markers: list[WritableTxnMarker] = field(factory=list)


@mutable
class WritableTxnMarkerPartitionResult:
    partition_index: int = 0
    error_code: int = 0


@mutable
class WritableTxnMarkerTopicResult:
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(factory=list)


@mutable
class WritableTxnMarkerResult:
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(factory=list)


@mutable
class WriteTxnMarkersResponse:
    """WriteTxnMarkersResponse (API key 27), versionless."""

    markers: list[WritableTxnMarkerResult] = field(factory=list)


@mutable
class TxnOffsetCommitRequestPartition:
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


@mutable
class TxnOffsetCommitRequestTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = field(factory=list)


@mutable
class TxnOffsetCommitRequest:
    """TxnOffsetCommitRequest (API key 28), versionless."""

    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TxnOffsetCommitRequestTopic] = field(factory=list)


@mutable
class TxnOffsetCommitResponsePartition:
    partition_index: int = 0
    error_code: int = 0


@mutable
class TxnOffsetCommitResponseTopic:
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = field(factory=list)


@mutable
class TxnOffsetCommitResponse:
    """TxnOffsetCommitResponse (API key 28), versionless."""

    throttle_time_ms: int = 0
    topics: list[TxnOffsetCommitResponseTopic] = field(factory=list)


@mutable
class TopicRequest:
    name: str = ""
    partition_indexes: list[int] = field(factory=list)


@mutable
class DescribeProducersRequest:
    """DescribeProducersRequest (API key 61), versionless."""

    topics: list[TopicRequest] = field(factory=list)


@mutable
class ProducerState:
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


@mutable
class PartitionResponse:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: list[ProducerState] = field(factory=list)


@mutable
class TopicResponse:
    name: str = ""
    partitions: list[PartitionResponse] = field(factory=list)


@mutable
class DescribeProducersResponse:
    """DescribeProducersResponse (API key 61), versionless."""

    throttle_time_ms: int = 0
    topics: list[TopicResponse] = field(factory=list)


@mutable
class DescribeTransactionsRequest:
    """DescribeTransactionsRequest (API key 65), versionless."""

    transactional_ids: list[str] = field(factory=list)


@mutable
class TopicData:
    topic: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class TransactionState:
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = field(factory=list)


@mutable
class DescribeTransactionsResponse:
    """DescribeTransactionsResponse (API key 65), versionless."""

    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = field(factory=list)


@mutable
class ListTransactionsRequest:
    """ListTransactionsRequest (API key 66), versionless."""

    state_filters: list[str] = field(factory=list)
    producer_id_filters: list[int] = field(factory=list)
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


@mutable
class ListTransactionsResponseTransactionState:
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


@mutable
class ListTransactionsResponse:
    """ListTransactionsResponse (API key 66), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(factory=list)
    transaction_states: list[ListTransactionsResponseTransactionState] = field(factory=list)
