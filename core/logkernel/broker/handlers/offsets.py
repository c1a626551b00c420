"""ListOffsets and OffsetForLeaderEpoch: questions about where a log's offsets lie.

| who asks ListOffsets | is answered by | sees |
|---|---|---|
| a client, replica id -1 | the leader | up to the watermark, or the last stable offset |
| a follower, over a listener by which brokers command | the leader | all |
| somebody who debugs, replica id -2 | the leader or a follower, of its own log | all; as with Kafka |

A client that names a partition more than once is refused it, as by Kafka: to find an offset may take a look into a
batch. A service asks for several offsets of one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.handlers.fetch import check_epoch
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import InvalidRequest, KafkaError
from logkernel.requests.offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochEpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.broker.replicas.replica import Replica

DEBUGGING_REPLICA = -2
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
"""Special timestamps of ListOffsets (KIP-734, KIP-405, KIP-1005, KIP-1023)."""


def list_offsets(ctx: HandlerContext, request: ListOffsetsRequest, context: RequestContext, answer: Answer) -> None:
    response = ListOffsetsResponse()
    times = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    debugs = request.replica_id == DEBUGGING_REPLICA
    by_replica = context.commands and request.replica_id >= 0
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            named = 1 if context.internal else times.pop((topic.name, asked.partition_index), 0)
            if not named:
                continue  # it was answered where it was named first
            row = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            row.timestamp = row.offset = row.leader_epoch = -1
            try:
                if named > 1:
                    raise InvalidRequest(
                        f"the request names {topic.name}-{asked.partition_index} {named} times; name it once"
                    )
                name = TopicPartition(topic.name, asked.partition_index)
                replica: Replica = ctx.replicas.held(name) if debugs else ctx.replicas.get(name)
                check_epoch(replica, asked.current_leader_epoch)
                if debugs or by_replica:
                    end = replica.log.end_offset
                else:
                    end = ctx.replicas.get(name).leader.readable_end(request.isolation_level)
                _find(ctx, replica, asked, end, row)
            except KafkaError as error:
                row.error_code = error.code
            rows.append(row)
        if rows or not topic.partitions:
            response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=rows))
    answer(response)


def _find(
    ctx: HandlerContext, replica: Replica, asked: ListOffsetsPartition, end: int, row: ListOffsetsPartitionResponse
) -> None:
    """`end`: the first offset that is not visible."""
    disk_log, epoch = replica.log, replica.leader_epoch
    timestamp = asked.timestamp
    if timestamp == LATEST:
        row.offset, row.leader_epoch = end, epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        row.offset = disk_log.start_offset
        row.leader_epoch = disk_log.epochs.epoch_at(row.offset, epoch)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        pass  # nothing is tiered: the answer is "none"
    else:
        if timestamp == MAX_TIMESTAMP:
            found = disk_log.offset_of_max_timestamp(ctx.runtime.kernel.codec_for)
        else:
            found = disk_log.offset_for_timestamp(timestamp, ctx.runtime.kernel.codec_for)
        if found is not None and found.offset < end:
            row.timestamp, row.offset = found.timestamp_ms, found.offset
            row.leader_epoch = disk_log.epochs.epoch_at(row.offset, epoch)


def offset_for_leader_epoch(
    ctx: HandlerContext, request: OffsetForLeaderEpochRequest, context: RequestContext, answer: Answer
) -> None:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            row = OffsetForLeaderEpochEpochEndOffset(partition=asked.partition)
            row.leader_epoch = row.end_offset = -1
            try:
                replica = ctx.replicas.get(TopicPartition(topic.topic, asked.partition))
                check_epoch(replica, asked.current_leader_epoch)
                if asked.leader_epoch == replica.leader.leader_epoch:
                    row.leader_epoch, row.end_offset = asked.leader_epoch, replica.log.end_offset
                else:
                    row.leader_epoch, row.end_offset = _epoch_end(replica, asked.leader_epoch)
            except KafkaError as error:
                row.error_code = error.code
            rows.append(row)
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=rows))
    answer(response)


def _epoch_end(replica: LeaderReplica, epoch: int) -> tuple[int, int]:
    found = replica.log.epochs.end_offset_for(epoch, replica.log.end_offset)
    return (found.epoch, found.offset) if found is not None else (-1, -1)


HANDLERS: Handlers = dict(
    [
        on(ListOffsetsRequest, list_offsets),
        on(OffsetForLeaderEpochRequest, offset_for_leader_epoch),
    ]
)
