"""Records and offsets of partitions: Produce, a follower's Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from __future__ import annotations

from typing import Any, Final

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.names import apart, without
from logkernel.broker.authorization.outcome import Answered, Outcome, Refused
from logkernel.broker.fetch_sessions import replica_of
from logkernel.errors import TopicAuthorizationFailed, TransactionalIdAuthorizationFailed
from logkernel.requests import data, offsets
from logkernel.vocabulary import AclOperation, ResourceType

REFUSED: Final = TopicAuthorizationFailed.code
WRITE: Final = AclOperation.WRITE
TOPIC: Final = ResourceType.TOPIC
MAGIC_AT, ATTRIBUTES_AT = 16, 22
"""Places in a batch's header: of its magic, and of the low byte of its attributes."""
TRANSACTIONAL: Final = 0x10
"""The bit of the attributes."""


def produce(asking: Asking, request: data.ProduceRequest) -> Outcome:
    if _is_transactional(request):
        name = request.transactional_id
        if name is None or not asking.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            return Refused(TransactionalIdAuthorizationFailed)
    asked = request.topic_data
    if len(asked) == 1 and asked[0].name and asking.may(WRITE, TOPIC, asked[0].name, told=False):
        return None  # most requests of a producer at work
    kept, refused = apart(asking, WRITE, asked, lambda topic: asking.topic_name(topic.name, topic.topic_id))
    if not refused:
        return None
    rows = [
        data.TopicProduceResponse(
            topic.name, [data.PartitionProduceResponse(row.index, REFUSED, -1) for row in topic.partition_data],
            topic.topic_id,
        )
        for topic in refused
    ]  # fmt: skip
    return without(request, "topic_data", kept, data.ProduceResponse(), "responses", rows)


def _is_transactional(request: data.ProduceRequest) -> bool:
    """Whether a first batch says so. As in Kafka, the request's transactional id alone needs no right."""
    for topic in request.topic_data:
        for row in topic.partition_data:
            records: Any = row.records
            if records is None or len(records) <= ATTRIBUTES_AT or records[MAGIC_AT] != 2:
                continue
            if records[ATTRIBUTES_AT] & TRANSACTIONAL:
                return True
    return False


def fetch(asking: Asking, request: data.FetchRequest) -> Outcome:
    """A follower's; a consumer's partitions are judged by the handler, as its session has others than its request."""
    if replica_of(request) < 0 or asking.may_cluster(AclOperation.CLUSTER_ACTION):
        return None
    rows = [
        data.FetchableTopicResponse(
            topic.topic,
            [
                data.PartitionData(row.partition, REFUSED, high_watermark=-1, records=b"")
                for row in topic.partitions
            ],
            topic.topic_id,
        )
        for topic in request.topics
    ]  # fmt: skip
    return Answered(data.FetchResponse(responses=rows))


def list_offsets(asking: Asking, request: offsets.ListOffsetsRequest) -> Outcome:
    """A follower looks where the leader's log begins."""
    follows = asking.context.commands and request.replica_id >= 0
    if follows and asking.may_cluster(AclOperation.CLUSTER_ACTION, told=False):
        return None
    kept, refused = apart(asking, AclOperation.DESCRIBE, request.topics, lambda topic: topic.name)
    rows = [
        offsets.ListOffsetsTopicResponse(
            topic.name, [offsets.ListOffsetsPartitionResponse(row.partition_index, REFUSED) for row in topic.partitions]
        )
        for topic in refused
    ]
    return without(request, "topics", kept, offsets.ListOffsetsResponse(), "topics", rows)


def offset_for_leader_epoch(asking: Asking, request: offsets.OffsetForLeaderEpochRequest) -> Outcome:
    """Followers ask, too; whoever may act for the cluster may ask of every topic."""
    if asking.may_cluster(AclOperation.CLUSTER_ACTION, told=False):
        return None
    kept, refused = apart(asking, AclOperation.DESCRIBE, request.topics, lambda topic: topic.topic)
    rows = [
        offsets.OffsetForLeaderTopicResult(
            topic.topic,
            [offsets.OffsetForLeaderEpochEpochEndOffset(REFUSED, row.partition) for row in topic.partitions],
        )
        for topic in refused
    ]
    return without(request, "topics", kept, offsets.OffsetForLeaderEpochResponse(), "topics", rows)


def delete_records(asking: Asking, request: offsets.DeleteRecordsRequest) -> Outcome:
    kept, refused = apart(asking, AclOperation.DELETE, request.topics, lambda topic: topic.name)
    rows = [
        offsets.DeleteRecordsTopicResult(
            topic.name,
            [offsets.DeleteRecordsPartitionResult(row.partition_index, -1, REFUSED) for row in topic.partitions],
        )
        for topic in refused
    ]
    return without(request, "topics", kept, offsets.DeleteRecordsResponse(), "topics", rows)
