"""DeleteRecords: a log starts later, first on its leader, then on its followers.

The leader moves its log start at once, and durably. Its followers learn of that by their next fetch, and tell theirs by
the one after it: the request waits until every replica that is alive is there, at most `timeout_ms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.broker.handlers.context import HandlerContext, Handlers, on
from logkernel.contracts import Answer, RequestContext
from logkernel.errors import (
    InvalidTopicException,
    KafkaError,
    OffsetOutOfRange,
    PolicyViolation,
    RequestTimedOut,
)
from logkernel.requests.offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica


class _Waiting:
    """A partition whose followers are not there yet."""

    __slots__ = ("deletion", "offset", "replica", "row")

    def __init__(
        self, deletion: _Deletion, replica: LeaderReplica, offset: int, row: DeleteRecordsPartitionResult
    ) -> None:
        self.deletion = deletion
        self.replica = replica
        self.offset = offset
        self.row = row

    def on_news(self) -> None:
        self.deletion.heard()

    def is_over(self, ctx: HandlerContext) -> bool:
        """Return whether `row` has its result; if not, subscribe to the next change."""
        replica = self.replica
        if not replica.in_service:
            self.row.low_watermark, self.row.error_code = -1, ctx.replicas.absence(*replica.name).code
            return True
        self.row.low_watermark = replica.leader.low_watermark()
        if replica.end_news is None or self.row.low_watermark >= self.offset:
            return True
        replica.end_news.subscribe(self)
        return False

    def forget(self) -> None:
        if self.replica.end_news is not None:
            self.replica.end_news.unsubscribe(self)


class _Deletion:
    """A request that waits for followers."""

    __slots__ = ("_answer", "_ctx", "_number", "_response", "waiting")

    def __init__(self, ctx: HandlerContext, response: DeleteRecordsResponse, answer: Answer) -> None:
        self._ctx = ctx
        self._response = response
        self._answer = answer
        self._number = 0
        self.waiting: list[_Waiting] = []

    def begin(self, deadline_ms: int) -> None:
        if not self.attempt(final=False):
            self._number = self._ctx.purgatory.park(self, deadline_ms)

    def heard(self) -> None:
        self._ctx.purgatory.retry_soon(self._number)

    def retry(self) -> None:
        self.attempt(final=False)

    def attempt(self, *, final: bool) -> bool:
        self.waiting = [each for each in self.waiting if not each.is_over(self._ctx)]
        if self.waiting and not final:
            return False
        for each in self.waiting:
            each.forget()
            each.row.low_watermark, each.row.error_code = -1, RequestTimedOut.code
        if self._number:
            self._ctx.purgatory.drop(self._number)
        self._answer(self._response)
        return True


def delete_records(ctx: HandlerContext, request: DeleteRecordsRequest, context: RequestContext, answer: Answer) -> None:
    response = DeleteRecordsResponse()
    deletion = _Deletion(ctx, response, answer)
    for topic in request.topics:
        rows = []
        for asked in topic.partitions:
            row = DeleteRecordsPartitionResult(partition_index=asked.partition_index)
            row.low_watermark = -1
            try:
                if ctx.metadata.is_internal(topic.name) and not context.internal:
                    raise InvalidTopicException(
                        f"{topic.name} holds a service's state, which the service trims itself; choose another topic"
                    )
                replica = ctx.replicas.get(TopicPartition(topic.name, asked.partition_index))
                offset = _delete_before(ctx, replica, asked.offset)
                row.low_watermark = replica.leader.low_watermark()
                if row.low_watermark < offset:
                    deletion.waiting.append(_Waiting(deletion, replica, offset, row))
            except KafkaError as error:
                row.error_code = error.code
            rows.append(row)
        response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=rows))
    deletion.begin(ctx.runtime.clock.mono_ms() + request.timeout_ms)


def _delete_before(ctx: HandlerContext, replica: LeaderReplica, offset: int) -> int:
    """Have a log start at `offset` (-1: at its watermark), or where it does already; returns `offset`."""
    if "delete" not in replica.settings.cleanup_policy:
        raise PolicyViolation(
            f"{replica.name}: cleanup.policy has no delete, so records can't be deleted; add delete to it"
        )
    watermark = replica.leader.high_watermark
    offset = watermark if offset == -1 else offset
    if not 0 <= offset <= watermark:
        raise OffsetOutOfRange(
            f"{replica.name}: {offset} is not in 0..{watermark}; give an offset up to the high watermark"
        )
    if offset > replica.log.start_offset:
        replica.advance_log_start(offset)
        ctx.logs.write_log_starts()
    return offset


HANDLERS: Handlers = dict([on(DeleteRecordsRequest, delete_records)])
