"""WriteTxnMarkers and DescribeProducers: ends of transactions in a partition, and its producers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from logkernel.attrs_lite import evolve
from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.broker.pending_response import PendingResponse
from logkernel.contracts import Answer, RequestContext
from logkernel.controller.names import check_name
from logkernel.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from logkernel.partition.effects import Outcome
from logkernel.record.control import EndTxnMarker, marker_record
from logkernel.requests.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from logkernel.vocabulary import TopicPartition


class _MarkerReceiver:
    """Takes the outcome of one marker in one partition into the response."""

    __slots__ = ("_ctx", "_marker", "_name", "_pending", "_row", "_wall_ms")

    def __init__(
        self,
        ctx: HandlerContext,
        pending: PendingResponse[WriteTxnMarkersResponse],
        name: TopicPartition,
        marker: WritableTxnMarker,
        row: WritableTxnMarkerPartitionResult,
        wall_ms: int,
    ) -> None:
        self._ctx, self._pending, self._name, self._marker, self._row = ctx, pending, name, marker, row
        self._wall_ms = wall_ms
        pending.open_parts += 1

    def appended(self, base_offset: int) -> None:
        """Replay the marker into a service whose state is in this log, as reading the log would."""
        marker = self._marker
        record = marker_record(marker.transaction_result, marker.coordinator_epoch, self._wall_ms)
        record.offset = base_offset
        self._ctx.services.control_appended(self._name, marker.producer_id, marker.producer_epoch, [record])

    def deliver(self, outcome: Outcome) -> None:
        self._row.error_code = outcome.error_code
        self._pending.part_done()


def write_txn_markers(
    ctx: HandlerContext, request: WriteTxnMarkersRequest, context: RequestContext, answer: Answer
) -> None:
    """Markers as their coordinator, or an operator who ends a hanging transaction, wants them written.

    A coordinator of this broker hands in all of them: those for partitions that are led elsewhere are sent there.
    """
    elsewhere = _Elsewhere(ctx) if context.internal and not context.commands else None
    pending = PendingResponse(answer, WriteTxnMarkersResponse())
    wall_ms = ctx.runtime.clock.wall_ms()
    deadline_ms = ctx.runtime.clock.mono_ms() + int(ctx.runtime.config.get("request.timeout.ms", 30_000))
    for marker in request.markers:
        result = WritableTxnMarkerResult(marker.producer_id)
        pending.response.markers.append(result)
        decision = EndTxnMarker(marker.transaction_result, marker.coordinator_epoch)
        for topic in marker.topics:
            rows = [WritableTxnMarkerPartitionResult(index) for index in topic.partition_indexes]
            result.topics.append(WritableTxnMarkerTopicResult(topic.name, rows))
            for row in rows:
                name = TopicPartition(topic.name, row.partition_index)
                replica = ctx.replicas.led.get(name)
                if replica is None and elsewhere is not None and elsewhere.take(name, marker, row):
                    continue
                if replica is None:
                    row.error_code = ctx.replicas.absence(*name).code
                    continue
                receiver = _MarkerReceiver(ctx, pending, name, marker, row, wall_ms)
                replica.end_transaction(
                    marker.producer_id,
                    marker.producer_epoch,
                    decision,
                    marker.transaction_version,
                    receiver,
                    wall_ms,
                    deadline_ms,
                    receiver.appended,
                )
    if elsewhere is not None:
        elsewhere.send(pending)
    pending.part_done()


class _Elsewhere:
    """Markers for partitions that other brokers lead, a request each broker."""

    __slots__ = ("_by_leader", "_ctx")

    def __init__(self, ctx: HandlerContext) -> None:
        self._ctx = ctx
        self._by_leader: dict[int, list[tuple[TopicPartition, WritableTxnMarker, WritableTxnMarkerPartitionResult]]]
        self._by_leader = {}

    def take(self, name: TopicPartition, marker: WritableTxnMarker, row: WritableTxnMarkerPartitionResult) -> bool:
        """Whether another broker leads the partition: then `row` is filled in from its answer."""
        leader = self._ctx.cluster.leader(*name)
        if self._ctx.governance.forward is None or leader is None or leader == self._ctx.runtime.node_id:
            return False
        self._by_leader.setdefault(leader, []).append((name, marker, row))
        return True

    def send(self, pending: PendingResponse[WriteTxnMarkersResponse]) -> None:
        forward = self._ctx.governance.forward
        for leader, rows in self._by_leader.items():
            assert forward is not None, "only a member of a cluster has others to ask"
            pending.open_parts += 1
            markers = [evolve(marker, topics=[WritableTxnMarkerTopic(name.topic, [name.partition])])
                       for name, marker, _ in rows]  # fmt: skip
            forward(leader, WriteTxnMarkersRequest(markers), partial(_answered_elsewhere, rows, pending))


def _answered_elsewhere(
    rows: Sequence[tuple[TopicPartition, WritableTxnMarker, WritableTxnMarkerPartitionResult]],
    pending: PendingResponse[WriteTxnMarkersResponse],
    response: WriteTxnMarkersResponse | None,
) -> None:
    """The answer has a marker each row, in their order. Without one the coordinator tries again."""
    told = [] if response is None else [part for each in response.markers for topic in each.topics
                                        for part in topic.partitions]  # fmt: skip
    for index, (_, _, row) in enumerate(rows):
        row.error_code = told[index].error_code if index < len(told) else NotLeaderOrFollower.code
    pending.part_done()


# ---------------------------------------------------------------- DescribeProducers


def describe_producers(
    ctx: HandlerContext, request: DescribeProducersRequest, context: RequestContext, answer: Answer
) -> None:
    response = DescribeProducersResponse()
    for topic in request.topics:
        rows = [_described(ctx, topic.name, index) for index in topic.partition_indexes]
        response.topics.append(TopicResponse(topic.name, rows))
    answer(response)


def _described(ctx: HandlerContext, topic: str, index: int) -> PartitionResponse:
    row = PartitionResponse(index)
    try:
        check_name(topic)
        if ctx.cluster.partition_count(topic) is None:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; create it first")
        replica = ctx.replicas.get(TopicPartition(topic, index))
    except KafkaError as error:
        row.error_code, row.error_message = error.code, str(error)
        return row
    row.active_producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.producer_epoch,
            last_sequence=entry.batches[-1][0] if entry.batches else -1,
            last_timestamp=entry.last_timestamp_ms,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.current_txn_first_offset,
        )
        for entry in replica.leader.producers.entries()
    ]
    return row


HANDLERS: Handlers = dict(
    [
        on(WriteTxnMarkersRequest, write_txn_markers),
        on(DescribeProducersRequest, describe_producers),
    ]
)
