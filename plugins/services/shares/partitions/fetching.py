"""ShareFetch: one request on its way from "what may be read" to records that are acquired.

    waits for           leaves when
    share-partitions    all that it reads are loaded
    data                a Fetch that the broker parks at the next offset of each has something, or its time is up
    locks               a share-partition lets records go, or what was in flight is settled
    acknowledgements    those that rode on the request are written

The broker itself is the one who waits for data: no polling. When locks let go of records while a Fetch is parked
elsewhere in the log, another is sent, and the answer of the first is passed over.
"""

from __future__ import annotations

from uuid import UUID

from attrs import define, field

from logkernel.errors import KafkaError, KafkaStorageError, OffsetOutOfRange
from logkernel.requests import data
from logkernel.requests.share_delivery import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

from ..state.records import Key
from .acks import Acks
from .leader import Phase, SharePartitionLeader
from .partition import RECORD_LIMIT
from .reading import cut, read
from .sessions import Holder

MAX_WAIT_MS = 300_000
"""Longest wait that is believed."""


@define(eq=False)
class Work:
    """One ShareFetch under way."""

    number: int
    ticket: int
    holder: Holder
    request: ShareFetchRequest
    deadline_ms: int
    keys: list[Key] = field(factory=list)
    """What it reads, in the order of its turn."""
    rows: dict[Key, PartitionData] = field(factory=dict)
    asked: dict[Key, int | None] = field(factory=dict)
    """Where the Fetch that is parked reads; None: too many records are in flight."""
    attempt: int = 0
    """Counts Fetches: only the answer of the last one is listened to."""
    reading: bool = True
    """It has not been decided yet which records it gets."""
    acked: bool = False
    acks: Acks | None = None

    def row(self, key: Key) -> PartitionData:
        found = self.rows.get(key)
        if found is None:
            found = self.rows[key] = PartitionData(partition_index=key.partition)
        return found


def inner_fetch(work: Work, leaders: dict[Key, SharePartitionLeader], now_ms: int) -> data.FetchRequest | None:
    """The Fetch that waits for data in the stead of `work`; None where nothing may be read now."""
    request = work.request
    work.attempt += 1
    topics: dict[UUID, data.FetchTopic] = {}
    isolation = 0
    for key in work.keys:
        leader = leaders[key]
        offset = work.asked[key] = leader.fetch_offset()
        if offset is not None:
            isolation = leader.isolation
            topic = topics.setdefault(key.topic_id, data.FetchTopic(topic_id=key.topic_id))
            topic.partitions.append(data.FetchPartition(key.partition, offset, request.max_bytes))
    if not topics:
        return None
    return data.FetchRequest(
        max_wait_ms=max(0, work.deadline_ms - now_ms),
        min_bytes=max(1, request.min_bytes),
        max_bytes=request.max_bytes,
        isolation_level=isolation,
        topics=list(topics.values()),
    )


def take(
    work: Work, response: data.FetchResponse, leaders: dict[Key, SharePartitionLeader], now_ms: int
) -> tuple[bool, bool]:
    """Acquire the fetched records. Return (whether it is enough to answer, whether there were any data)."""
    left = work.request.max_records
    found = came = False
    by_place = {(topic.topic_id, row.partition_index): row for topic in response.responses for row in topic.partitions}
    for key in work.keys:
        row = by_place.get((key.topic_id, key.partition))
        offset = work.asked.get(key)
        if row is None or offset is None:
            continue
        if row.error_code:
            came = True
            if not _caught_up(leaders[key], row.error_code, offset):
                work.row(key).error_code = row.error_code
                found = True
            continue
        if not row.records:
            continue
        came = True
        if left > 0:
            try:
                count = _acquire(work, key, leaders[key], row, offset, left, now_ms)
            except KafkaError as error:
                work.row(key).error_code, work.row(key).error_message = error.code, str(error)
                found = True
                continue
            left -= count
            found = found or bool(count)
    return found, came


def _caught_up(leader: SharePartitionLeader, code: int, offset: int) -> bool:
    """Records were deleted under the share-partition's feet, and it has moved on since the Fetch was sent."""
    return code == OffsetOutOfRange.code and leader.partition.next_offset() != offset


def _acquire(
    work: Work, key: Key, leader: SharePartitionLeader, fetched: data.PartitionData, offset: int, left: int, now_ms: int
) -> int:
    """How many records. Raises `CorruptMessage`, `KafkaStorageError` where the log cannot be read."""
    try:
        batches = read(fetched.records, fetched.aborted_transactions or ())
    except OSError as error:
        raise KafkaStorageError(f"{leader.topic}-{key.partition}: {error}") from error
    request = work.request
    leader.refresh_limits()
    given = leader.partition.acquire(
        work.holder.member_id,
        offset,
        [batch.stretch for batch in batches],
        left,
        now_ms,
        batch_size=request.batch_size,
        strict=request.share_acquire_mode == RECORD_LIMIT,
    )
    if given:
        row = work.row(key)
        assert fetched.records is not None
        row.records = cut(fetched.records, batches, given)
        row.acquired_records = [AcquiredRecords(*one) for one in given]
    return sum(last - first + 1 for first, last, _ in given)


def respond(work: Work, lock_ms: int) -> ShareFetchResponse:
    """Partitions with records, errors, or acknowledgements to answer for."""
    if work.acks is not None:
        for (topic_id, partition), (code, text) in work.acks.results.items():
            row = work.row(Key(work.holder.group_id, topic_id, partition))
            row.acknowledge_error_code, row.acknowledge_error_message = code, text
    topics: dict[UUID, ShareFetchableTopicResponse] = {}
    for key, row in work.rows.items():
        topics.setdefault(key.topic_id, ShareFetchableTopicResponse(key.topic_id)).partitions.append(row)
    return ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms, responses=list(topics.values()))


def loading(work: Work, leaders: dict[Key, SharePartitionLeader]) -> bool:
    return any(leaders[key].phase is Phase.LOADING for key in work.keys)
