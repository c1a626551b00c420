"""OffsetCommit (key 8), versions 2-10: keep a group's offsets. Hot, by hand.

    request   group_id | generation_id_or_member_epoch int32 | member_id | group_instance_id (7+) |
              retention_time_ms int64 (2-4) | topics[ name, or id (10+) | partitions[ index int32 | offset int64 |
              leader_epoch int32 (6+) | metadata ] ]
    response  throttle_time_ms int32 (3+) | topics[ name, or id (10+) | partitions[ index int32 | error_code int16 ] ]

- Version 10 names topics by id, older ones by name; the broker sees what was sent and resolves it.
- `retention_time_ms` is sent by 2 to 4 only, else -1.
- Capabilities: "static_members" (7+), "group_not_found" and "member_epochs" (9+), "topic_ids" (10+).
"""

from __future__ import annotations

from functools import lru_cache, partial
from struct import Struct
from typing import Final
from uuid import UUID

from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from logkernel.vocabulary import NO_ID

from ..api import Api, DecodeBody, EncodeBody
from ..wire import DECODE_ERRORS, I32, Cursor, Part, WireError, known_text, put_length, topic_head

_OLD_ROW: Final = Struct(">iq")
_ROW: Final = Struct(">iqi")
_USUAL_ROW: Final = Struct(">iqiBB")
"""With the length of its metadata, and the count of its tagged fields where there is no metadata."""
_ID: Final = Struct("16s")
_RESULT: Final = Struct(">ih")
_FLEXIBLE_RESULT: Final = Struct(">ihx")
"""With the count of its tagged fields, of which there are none."""


class OffsetCommit(Api):
    capabilities = (("static_members", 7), ("group_not_found", 9), ("member_epochs", 9), ("topic_ids", 10))

    def request_decoder(self, version: int) -> DecodeBody:
        if version < 8:
            return lambda body: _decode(version, Cursor(body))
        return lambda body: _decode_usual(version, bytes(body)) or _decode(version, Cursor(body))

    def response_encoder(self, version: int) -> EncodeBody:
        return partial(_encode, version)

    def ceiling(self, request: OffsetCommitRequest) -> int:
        """Version 10 has ids alone."""
        return 10 if all(topic.topic_id != NO_ID for topic in request.topics) else 9


def _decode_usual(version: int, data: bytes) -> OffsetCommitRequest | None:
    """What nearly every request is: of a flexible version, without tagged fields, all its lengths of one byte, which is
    length + 1. None for any other, and for what is no request at all: `_decode` says."""
    try:
        pos = 4 + data[0]
        pos += data[pos]
        pos += data[pos] or 1
        member, count = _member(data[:pos]), data[pos]
        if member is None or not 0 < count <= 0x7F:
            return None
        pos += 1
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(count - 1):
            name, topic_id = "", NO_ID
            if version >= 10:
                topic_id = _topic_id(*_ID.unpack_from(data, pos))
                pos += 16
            else:
                size = data[pos]
                if not 0 < size <= 0x7F:
                    return None
                name = known_text(data[pos + 1 : pos + size])
                pos += size
            partitions = data[pos]
            if not 0 < partitions <= 0x7F:
                return None
            pos += 1
            rows: list[OffsetCommitRequestPartition] = []
            for _ in range(partitions - 1):
                index, offset, leader_epoch, size, tagged = _USUAL_ROW.unpack_from(data, pos)
                pos += 18
                metadata = "" if size else None
                if size > 1:
                    pos += size - 1
                    metadata, tagged = data[pos - size : pos - 1].decode(), data[pos - 1]
                if tagged or size > 0x7F:
                    return None
                rows.append(OffsetCommitRequestPartition(index, offset, metadata, leader_epoch))
            if data[pos]:
                return None
            pos += 1
            topics.append(OffsetCommitRequestTopic(name, rows, topic_id))
        if data[pos] or pos + 1 != len(data):
            return None
    except DECODE_ERRORS:
        return None
    group_id, generation, member_id, instance_id = member
    return OffsetCommitRequest(group_id, generation, member_id, -1, topics, instance_id)


@lru_cache(maxsize=1024)
def _member(data: bytes) -> tuple[str, int, str, str | None] | None:
    """(group id, generation, member id, instance id) from the start of a request, if their lengths are as
    `_decode_usual` wants them: they are the same in commit after commit."""
    first = data[0]
    (generation,) = I32.unpack_from(data, first)
    second = data[first + 4]
    start = first + 4 + second
    third = data[start]
    if not (first and second) or (first | second | third) > 0x7F:
        return None
    instance_id = data[start + 1 : start + third].decode() if third else None
    return data[1:first].decode(), generation, data[first + 5 : start].decode(), instance_id


@lru_cache(maxsize=1024)
def _topic_id(raw: bytes) -> UUID:
    return UUID(bytes=raw) if any(raw) else NO_ID


def _decode(version: int, cursor: Cursor) -> OffsetCommitRequest:
    flexible = version >= 8
    group_id, generation, member_id = cursor.string(flexible), cursor.i32(), cursor.string(flexible)
    instance_id = cursor.nullable_string(flexible) if version >= 7 else None
    retention_ms = cursor.i64() if version <= 4 else -1
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(_count(cursor, flexible)):
        name, topic_id = "", NO_ID
        if version >= 10:
            topic_id = cursor.uuid()
        else:
            name = cursor.string(flexible)
        topics.append(OffsetCommitRequestTopic(name, _decode_rows(cursor, version, flexible), topic_id))
        if flexible:
            cursor.skip_tags()
    if flexible:
        cursor.skip_tags()
    return OffsetCommitRequest(group_id, generation, member_id, retention_ms, topics, instance_id)


def _count(cursor: Cursor, flexible: bool) -> int:
    count = cursor.nullable_count(flexible)
    if count < 0:
        raise WireError("null for an array that must not be null")
    return count


def _decode_rows(cursor: Cursor, version: int, flexible: bool) -> list[OffsetCommitRequestPartition]:
    data, layout = cursor.data, _ROW if version >= 6 else _OLD_ROW
    unpack, size = layout.unpack_from, layout.size
    rows: list[OffsetCommitRequestPartition] = []
    for _ in range(_count(cursor, flexible)):
        index, offset, leader_epoch = (*unpack(data, cursor.pos), -1)[:3]
        cursor.pos += size
        metadata = cursor.nullable_string(flexible)
        if flexible:
            cursor.skip_tags()
        rows.append(OffsetCommitRequestPartition(index, offset, metadata, leader_epoch))
    return rows


def _encode(version: int, response: OffsetCommitResponse) -> list[Part]:
    topics = response.topics
    if len(topics) == 1 and len(topics[0].partitions) == 1 and not response.throttle_time_ms:
        topic, row = topics[0], topics[0].partitions[0]
        return [_one(version, topic.topic_id if version >= 10 else topic.name, row.partition_index, row.error_code)]
    return [_encode_all(version, response)]


@lru_cache(maxsize=1024)
def _one(version: int, topic: str | UUID, partition: int, error_code: int) -> bytes:
    """The response to a commit of one partition: the same clients commit the same ones again and again."""
    name, topic_id = (topic, NO_ID) if isinstance(topic, str) else ("", topic)
    row = OffsetCommitResponsePartition(partition, error_code)
    return bytes(_encode_all(version, OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name, [row], topic_id)])))


def _encode_all(version: int, response: OffsetCommitResponse) -> bytearray:
    flexible = version >= 8
    result = (_FLEXIBLE_RESULT if flexible else _RESULT).pack
    out = bytearray(I32.pack(response.throttle_time_ms) if version >= 3 else b"")
    put_length(out, len(response.topics), flexible)
    for topic in response.topics:
        rows = topic.partitions
        out += topic_head(topic.topic_id.bytes if version >= 10 else topic.name, len(rows), flexible)
        for row in rows:
            out += result(row.partition_index, row.error_code)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    return out
