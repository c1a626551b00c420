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

from struct import Struct
from typing import Final

from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from logkernel.vocabulary import NO_ID

from ..api import Api, DecodeBody, EncodeBody
from ..wire import I32, Cursor, WireError, put_length, put_string

_OLD_ROW: Final = Struct(">iq")
_ROW: Final = Struct(">iqi")
_RESULT: Final = Struct(">ih")
_FLEXIBLE_RESULT: Final = Struct(">ihx")
"""With the count of its tagged fields, of which there are none."""


class OffsetCommit(Api):
    capabilities = (("static_members", 7), ("group_not_found", 9), ("member_epochs", 9), ("topic_ids", 10))

    def request_decoder(self, version: int) -> DecodeBody:
        return lambda body: _decode(version, Cursor(body))

    def response_encoder(self, version: int) -> EncodeBody:
        return lambda response: [_encode(version, response)]

    def ceiling(self, request: OffsetCommitRequest) -> int:
        """Version 10 has ids alone."""
        return 10 if all(topic.topic_id != NO_ID for topic in request.topics) else 9


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


def _encode(version: int, response: OffsetCommitResponse) -> bytearray:
    flexible = version >= 8
    result = (_FLEXIBLE_RESULT if flexible else _RESULT).pack
    out = bytearray(I32.pack(response.throttle_time_ms) if version >= 3 else b"")
    put_length(out, len(response.topics), flexible)
    for topic in response.topics:
        if version >= 10:
            out += topic.topic_id.bytes
        else:
            put_string(out, topic.name, flexible)
        put_length(out, len(topic.partitions), flexible)
        for row in topic.partitions:
            out += result(row.partition_index, row.error_code)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    return out
