"""Fetch (key 1), versions 4-18: read batches from partitions. Hot, by hand.

    request   replica_id int32 (-14) | max_wait_ms int32 | min_bytes int32 | max_bytes int32 | isolation int8 |
              session_id int32, session_epoch int32 (7+) | topics[ name, or id (13+) | partitions[ partition int32 |
              current_leader_epoch int32 (9+) | fetch_offset int64 | last_fetched_epoch int32 (12+) |
              log_start_offset int64 (5+) | partition_max_bytes int32 | tag 0 replica_directory_id (17+) |
              tag 1 high_watermark (18+) ] ] | forgotten[ name, or id (13+) | partitions ] (7+) | rack_id (11+) |
              tag 0 cluster_id (12+) | tag 1 replica_state (15+)
    response  throttle_time_ms int32 | error_code int16, session_id int32 (7+) | topics[ name, or id (13+) |
              partitions[ index int32 | error_code int16 | high_watermark int64 | last_stable_offset int64 |
              log_start_offset int64 (5+) | aborted[ producer_id int64 | first_offset int64 ] nullable |
              preferred_read_replica int32 (11+) | records | tags 0 diverging_epoch, 1 current_leader,
              2 snapshot_id (12+) ] ] | tag 0 node_endpoints (16+)

- Records go out as they lie on disk: a `FileSlice` is a part of its own and is never copied here.
- Records None are written as no bytes, not as null: some clients choke on null.
- `replica_id` and `replica_state.replica_id` are equal in what the broker gets, whatever the version.
- KAFKA_STORAGE_ERROR is NOT_LEADER_OR_FOLLOWER to versions below 6, which do not know it.
- Capabilities: "zstd" (10+), "topic_ids" (13+).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from struct import Struct
from typing import Final, Protocol
from uuid import UUID

from logkernel.attrs_lite import evolve
from logkernel.errors import KafkaStorageError, NotLeaderOrFollower
from logkernel.requests.data import (
    NO_FETCH_LEADER,
    NO_SNAPSHOT,
    NOT_DIVERGING,
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from logkernel.vocabulary import NO_ID, FileSlice

from ..api import Api, DecodeBody, EncodeBody, EncodeRequest
from ..wire import (
    DECODE_ERRORS,
    I32,
    I64,
    Cursor,
    Part,
    known_id,
    put_length,
    put_string,
    put_tagged,
    put_uvarint,
)

_HEAD: Final = Struct(">iiib")
_PAIR: Final = Struct(">ii")
_ROW: Final = Struct(">ihqq")
_ABORTED: Final = Struct(">qq")
_EPOCH_OFFSET: Final = Struct(">iq")
_OFFSET_EPOCH: Final = Struct(">qi")
_EMPTY: Final = b""
_USUAL_HEAD: Final = Struct(">iiibii")
_ASKED_ROW: Final = Struct(">iiqiqiB")
"""A partition of a request, and that nothing is tagged."""
_RESPONSE_HEAD: Final = Struct(">ihi")
_USUAL_ROW: Final = Struct(">ihqqqBi")
"""A partition of a response before its records, where a byte says of aborted transactions that there are none."""
_REPLICA_STATE: Final = Struct(">iqx")
_NO_WATERMARK: Final = FetchPartition().high_watermark


class Fetch(Api):
    capabilities = (("zstd", 10), ("topic_ids", 13))

    def request_decoder(self, version: int) -> DecodeBody:
        row = _partition_layout(version)
        return lambda body: _decode(version, row, Cursor(body))

    def response_encoder(self, version: int) -> EncodeBody:
        return lambda response: _encode(version, response)

    def ceiling(self, request: FetchRequest) -> int:
        """Versions from 13 on have ids alone."""
        for rows in (request.topics, request.forgotten_topics_data):
            for topic in rows:
                if not topic.topic_id.int:
                    return 12
        return self.row.max_version

    def request_encoder(self, version: int) -> EncodeRequest:
        if version < 13:
            return super().request_encoder(version)
        other = cache(super().request_encoder)  # made when it is needed: making it costs more than many requests
        return lambda request: _encode_usual(version, request) or other(version)(request)

    def response_decoder(self, version: int) -> DecodeBody:
        if version < 13:
            return super().response_decoder(version)
        other = cache(super().response_decoder)
        return lambda body: _decode_usual(body) or other(version)(body)

    def downgrade_request(self, version: int, request: FetchRequest) -> FetchRequest:
        replica_id, state = request.replica_id, request.replica_state
        if version < 15 and replica_id == -1:
            return evolve(request, replica_id=state.replica_id)
        if version >= 15 and state.replica_id == -1:
            return evolve(request, replica_state=ReplicaState(replica_id, state.replica_epoch))
        return request


# ---------------------------------------------------------------- the request


def _partition_layout(version: int) -> Struct:
    """The fixed part of a partition: every version has the fields in the same order, some not all."""
    if version >= 12:
        return Struct(">iiqiqi")
    if version >= 9:
        return Struct(">iiqqi")
    return Struct(">iqqi" if version >= 5 else ">iqi")


def _decode(version: int, row: Struct, cursor: Cursor) -> FetchRequest:
    flexible = version >= 12
    replica_id = cursor.i32() if version <= 14 else -1
    max_wait_ms, min_bytes, max_bytes, isolation = _HEAD.unpack_from(cursor.data, cursor.pos)
    cursor.pos += 13
    session_id, session_epoch = (cursor.i32(), cursor.i32()) if version >= 7 else (0, -1)
    topics = [_decode_topic(cursor, version, flexible, row) for _ in range(cursor.count(flexible))]
    forgotten: list[ForgottenTopic] = []
    if version >= 7:
        forgotten = [_decode_forgotten(cursor, version, flexible) for _ in range(cursor.count(flexible))]
    rack_id = cursor.string(flexible) if version >= 11 else ""
    cluster_id, state = None, ReplicaState(replica_id)
    if flexible:
        for tag, start in cursor.tags():
            field = Cursor(cursor.data, start)
            if tag == 0:
                cluster_id = field.nullable_string(True)
            elif tag == 1 and version >= 15:
                state = ReplicaState(field.i32(), field.i64())
    return FetchRequest(
        state.replica_id, max_wait_ms, min_bytes, max_bytes, isolation, topics, session_id, session_epoch,
        forgotten, rack_id, cluster_id, state,
    )  # fmt: skip


def _topic_key(cursor: Cursor, version: int, flexible: bool) -> tuple[str, UUID]:
    if version >= 13:
        return "", UUID(bytes=bytes(cursor.take(16)))
    return cursor.string(flexible), NO_ID


def _decode_topic(cursor: Cursor, version: int, flexible: bool, row: Struct) -> FetchTopic:
    name, topic_id = _topic_key(cursor, version, flexible)
    partitions = [_decode_partition(cursor, version, flexible, row) for _ in range(cursor.count(flexible))]
    if flexible:
        cursor.skip_tags()
    return FetchTopic(name, partitions, topic_id)


def _decode_partition(cursor: Cursor, version: int, flexible: bool, row: Struct) -> FetchPartition:
    values = row.unpack_from(cursor.data, cursor.pos)
    cursor.pos += row.size
    leader_epoch = last_epoch = log_start = -1
    if version >= 12:
        index, leader_epoch, offset, last_epoch, log_start, max_bytes = values
    elif version >= 9:
        index, leader_epoch, offset, log_start, max_bytes = values
    elif version >= 5:
        index, offset, log_start, max_bytes = values
    else:
        index, offset, max_bytes = values
    partition = FetchPartition(index, offset, max_bytes, log_start, leader_epoch, last_epoch)
    if flexible:
        _decode_partition_tags(cursor, version, partition)
    return partition


def _decode_partition_tags(cursor: Cursor, version: int, partition: FetchPartition) -> None:
    for tag, start in cursor.tags():
        field = Cursor(cursor.data, start)
        if tag == 0 and version >= 17:
            partition.replica_directory_id = field.uuid()
        elif tag == 1 and version >= 18:
            partition.high_watermark = field.i64()


def _decode_forgotten(cursor: Cursor, version: int, flexible: bool) -> ForgottenTopic:
    name, topic_id = _topic_key(cursor, version, flexible)
    partitions = [cursor.i32() for _ in range(cursor.count(flexible))]
    if flexible:
        cursor.skip_tags()
    return ForgottenTopic(name, partitions, topic_id)


def _encode_usual(version: int, request: FetchRequest) -> bytearray | None:
    """From version 13 on, what a consumer or a follower asks for; None where something else is tagged."""
    state = request.replica_state
    replica_id = state.replica_id if state.replica_id >= 0 else request.replica_id
    if request.cluster_id is not None:
        return None
    out = bytearray(I32.pack(replica_id) if version < 15 else _EMPTY)
    out += _USUAL_HEAD.pack(
        request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level,
        request.session_id, request.session_epoch,
    )  # fmt: skip
    put_length(out, len(request.topics), True)
    for topic in request.topics:
        out += topic.topic_id.bytes
        put_length(out, len(topic.partitions), True)
        for part in topic.partitions:
            if part.high_watermark != _NO_WATERMARK or part.replica_directory_id.int:
                return None
            out += _ASKED_ROW.pack(
                part.partition, part.current_leader_epoch, part.fetch_offset, part.last_fetched_epoch,
                part.log_start_offset, part.partition_max_bytes, 0,
            )  # fmt: skip
        out.append(0)
    put_length(out, len(request.forgotten_topics_data), True)
    for gone in request.forgotten_topics_data:
        out += gone.topic_id.bytes
        put_length(out, len(gone.partitions), True)
        for index in gone.partitions:
            out += I32.pack(index)
        out.append(0)
    put_string(out, request.rack_id, True)
    if version < 15 or (replica_id == -1 and state.replica_epoch == -1):
        out.append(0)
    else:
        put_tagged(out, [(1, _REPLICA_STATE.pack(replica_id, state.replica_epoch))])
    return out


# ---------------------------------------------------------------- the response


def _decode_usual(body: memoryview) -> FetchResponse | None:
    """From version 13 on, a response without aborted transactions and tagged fields; None for any other, be it rotten
    or not."""
    try:
        throttle_ms, code, session_id = _RESPONSE_HEAD.unpack_from(body)
        topics: list[FetchableTopicResponse] = []
        count, pos = _length(body, _RESPONSE_HEAD.size)
        if count < 0:
            return None
        for _ in range(count):
            raw_id = bytes(body[pos : pos + 16])
            rows, pos = _length(body, pos + 16)
            if rows < 0:
                return None
            topic_id, partitions = known_id(raw_id), []
            for _ in range(rows):
                index, error, high, stable, log_start, aborted, preferred = _USUAL_ROW.unpack_from(body, pos)
                size, start = _length(body, pos + _USUAL_ROW.size)
                pos = start + max(size, 0)
                if aborted > 1 or body[pos]:
                    return None
                records = None if size < 0 else body[start:pos]
                none: list[AbortedTransaction] | None = [] if aborted else None
                partitions.append(PartitionData(index, error, high, stable, none, records, log_start, preferred))
                pos += 1
            if body[pos]:
                return None
            topics.append(FetchableTopicResponse("", partitions, topic_id))
            pos += 1
        return None if body[pos] else FetchResponse(throttle_ms, topics, code, session_id)
    except DECODE_ERRORS:
        return None


def _length(body: memoryview, pos: int) -> tuple[int, int]:
    """(a compact length, -1 for null; the position behind it). What it counts is bounded by who reads it: each element
    takes bytes that must be there."""
    first = body[pos]
    if first < 0x80:
        return first - 1, pos + 1
    cursor = Cursor(body, pos)
    return cursor.uvarint() - 1, cursor.pos


def _encode(version: int, response: FetchResponse) -> list[Part]:
    flexible = version >= 12
    parts: list[Part] = []
    out = bytearray(I32.pack(response.throttle_time_ms))
    if version >= 7:
        out += response.error_code.to_bytes(2, "big", signed=True) + I32.pack(response.session_id)
    put_length(out, len(response.responses), flexible)
    for topic in response.responses:
        out = _encode_topic(parts, out, version, flexible, topic)
    if flexible:
        put_endpoints(out, response.node_endpoints if version >= 16 else [])
    parts.append(out)
    return parts


def _encode_topic(
    parts: list[Part], out: bytearray, version: int, flexible: bool, topic: FetchableTopicResponse
) -> bytearray:
    if version >= 13:
        out += topic.topic_id.bytes
    else:
        put_string(out, topic.topic, flexible)
    put_length(out, len(topic.partitions), flexible)
    for part in topic.partitions:
        _encode_partition_head(out, version, flexible, part)
        records = part.records if part.records is not None else _EMPTY
        size = records.size if type(records) is FileSlice else len(records)  # type: ignore[arg-type]
        put_length(out, size, flexible)
        if size:
            parts += (out, records)
            out = bytearray()
        if flexible:
            _encode_partition_tags(out, part)
    if flexible:
        out.append(0)
    return out


def _encode_partition_head(out: bytearray, version: int, flexible: bool, part: PartitionData) -> None:
    code = part.error_code
    if code == KafkaStorageError.code and version < 6:
        code = NotLeaderOrFollower.code
    out += _ROW.pack(part.partition_index, code, part.high_watermark, part.last_stable_offset)
    if version >= 5:
        out += I64.pack(part.log_start_offset)
    aborted = part.aborted_transactions
    if aborted is None:
        put_length(out, -1, flexible)
    else:
        put_length(out, len(aborted), flexible)
        for row in aborted:
            out += _ABORTED.pack(row.producer_id, row.first_offset)
            if flexible:
                out.append(0)
    if version >= 11:
        out += I32.pack(part.preferred_read_replica)


def _encode_partition_tags(out: bytearray, part: PartitionData) -> None:
    diverging, leader, snapshot = part.diverging_epoch, part.current_leader, part.snapshot_id
    tags: list[tuple[int, bytes | bytearray]] = []
    if diverging is not NOT_DIVERGING and diverging != NOT_DIVERGING:
        tags.append((0, _EPOCH_OFFSET.pack(diverging.epoch, diverging.end_offset) + b"\x00"))
    if leader is not NO_FETCH_LEADER and leader != NO_FETCH_LEADER:
        tags.append((1, _PAIR.pack(leader.leader_id, leader.leader_epoch) + b"\x00"))
    if snapshot is not NO_SNAPSHOT and snapshot != NO_SNAPSHOT:
        tags.append((2, _OFFSET_EPOCH.pack(snapshot.end_offset, snapshot.epoch) + b"\x00"))
    put_tagged(out, tags)


class Endpoint(Protocol):
    """Where a broker is reached: the same struct in Produce and Fetch."""

    node_id: int
    host: str
    port: int
    rack: str | None


def put_endpoints(out: bytearray, endpoints: Iterable[Endpoint]) -> None:
    """The tagged fields that end a Produce or Fetch response: tag 0, node_endpoints, where there are any."""
    rows = list(endpoints)
    if not rows:
        put_uvarint(out, 0)
        return
    data = bytearray()
    put_uvarint(data, len(rows) + 1)
    for row in rows:
        data += I32.pack(row.node_id)
        put_string(data, row.host, True)
        data += I32.pack(row.port)
        put_string(data, row.rack, True)
        data.append(0)
    put_tagged(out, [(0, data)])
