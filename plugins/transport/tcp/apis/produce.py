"""Produce (key 0), versions 0-13 advertised, 3-13 served: append batches to partitions. Hot, by hand.

    request   transactional_id (3+) | acks int16 | timeout_ms int32 | topics[ name, or id (13+) | partitions[
              index int32 | records ] ]
    response  topics[ name, or id (13+) | partitions[ index int32 | error_code int16 | base_offset int64 |
              log_append_time_ms int64 (2+) | log_start_offset int64 (5+) | record_errors[ batch_index int32 |
              message ] (8+) | error_message (8+) | tag 0 current_leader (10+) ] ] | throttle_time_ms int32 (1+) |
              tag 0 node_endpoints (10+)

- Versions 0-2 are advertised because librdkafka takes lz4 and zstd support from the range; they are
  answered with UNSUPPORTED_VERSION, as magic 0 and 1 are no longer written.
- `records` is a writable view into the receive buffer, valid until `submit` returns.
- A request's own `records` are sent from where they lie: they must not change until it is answered.
- acks=0 gets no response; an error closes the connection (see `connection`).
- KAFKA_STORAGE_ERROR is NOT_LEADER_OR_FOLLOWER to version 3, which does not know it.
- Capabilities: "zstd" (7+), "transaction_abortable" (11+), "transactions_v2" (12+), "topic_ids" (13+).
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import Final
from uuid import UUID

from logkernel.contracts import Buffer
from logkernel.errors import KafkaStorageError, NotLeaderOrFollower, UnsupportedVersion
from logkernel.requests.data import (
    NO_LEADER,
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from logkernel.vocabulary import NO_ID

from ..api import Api, DecodeBody, EncodeBody, EncodeParts, EncodeRequest
from ..wire import (
    DECODE_ERRORS,
    I32,
    I64,
    Cursor,
    Part,
    known_id,
    known_text,
    put_length,
    put_string,
    put_tagged,
    put_uvarint,
    topic_head,
)
from .fetch import put_endpoints

_ACKS_TIMEOUT: Final = Struct(">hi")
_USUAL_START: Final = Struct(">BhiBB")
"""No transactional id, acks, timeout, one topic, the length of its name."""
_USUAL_PART: Final = Struct(">Bi")
"""One partition, its index."""
_ROW: Final = Struct(">ihq")
_NOTHING_BEHIND: Final = b"\x00\x00\x00"
"""No tagged fields of the partition, the topic and the request, which ends there."""
_LEADER: Final = Struct(">ii")
_USUAL_ROW: Final = Struct(">ihqqq")
_NOTHING_MORE: Final = b"\x01\x00\x00"
"""No record errors, no message, no tagged fields."""
_USUAL_REQUEST: Final = Struct(">BhiB16sBi")
"""At version 13: no transactional id, acks, timeout, one topic, its id, one partition, its index."""
_USUAL_RESPONSE: Final = Struct(">B16sBihqqq4siB")
"""At version 13: one topic, its id, one partition, its row, nothing more of both, throttle time, no tagged fields."""
_NOTHING_MORE_OF_A_TOPIC: Final = _NOTHING_MORE + b"\x00"
_WORTH_A_PART: Final = 8 << 10
"""Records of so many bytes are not copied behind what comes before them: copying fewer costs less than a part."""


class Produce(Api):
    capabilities = (("zstd", 7), ("transaction_abortable", 11), ("transactions_v2", 12), ("topic_ids", 13))

    def request_decoder(self, version: int) -> DecodeBody:
        if 9 <= version <= 12:
            return lambda body: _decode_usual(body) or _decode(version, Cursor(body))
        return lambda body: _decode(version, Cursor(body))

    def response_encoder(self, version: int) -> EncodeBody:
        return partial(_encode, version)

    def request_encoder(self, version: int) -> EncodeRequest:
        return lambda request: b"".join(_encode_request(version, request))

    def request_parts_encoder(self, version: int) -> EncodeParts:
        if version >= 13:
            return lambda request: _encode_usual(request) or _encode_request(version, request)
        return lambda request: _encode_request(version, request)

    def response_decoder(self, version: int) -> DecodeBody:
        if version >= 13:
            return lambda body: _decode_usual_response(body) or _decode_response(version, Cursor(body))
        return lambda body: _decode_response(version, Cursor(body))

    def refusal(self, version: int, request: ProduceRequest) -> ProduceResponse | None:
        if version >= 3:
            return None
        code = UnsupportedVersion.code
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    partition_responses=[
                        PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
                        for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def ceiling(self, request: ProduceRequest) -> int:
        """Version 13 has ids alone."""
        for topic in request.topic_data:
            if not topic.topic_id.int:
                return 12
        return 13


def failed(response: ProduceResponse) -> bool:
    """Whether any partition was refused."""
    return any(part.error_code for topic in response.responses for part in topic.partition_responses)


def _decode_usual(body: memoryview) -> ProduceRequest | None:
    """What most producers send: the records of one partition, with nothing tagged and in no transaction. None for any
    other request, and for what is no request at all: `_decode` says."""
    try:
        transactional, acks, timeout_ms, topics, size = _USUAL_START.unpack_from(body)
        pos = 8 + size
        partitions, index = _USUAL_PART.unpack_from(body, pos)
        if transactional or topics != 2 or partitions != 2 or not 0 < size <= 0x7F:
            return None
        name = known_text(bytes(body[9:pos]))
        pos += 5
        length = 0
        for shift in (0, 7, 14, 21, 28):
            byte = body[pos]
            pos += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            return None
    except DECODE_ERRORS:
        return None
    end = pos + length - 1
    if length == 0 or end + 3 != len(body) or bytes(body[end:]) != _NOTHING_BEHIND:
        return None
    data = PartitionProduceData(index, body[pos:end])
    return ProduceRequest(None, acks, timeout_ms, [TopicProduceData(name, [data])])


def _decode(version: int, cursor: Cursor) -> ProduceRequest:
    flexible = version >= 9
    transactional_id = cursor.nullable_string(flexible) if version >= 3 else None
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(cursor.data, cursor.pos)
    cursor.pos += 6
    topics = [_decode_topic(cursor, version, flexible) for _ in range(cursor.count(flexible))]
    if flexible:
        cursor.skip_tags()
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _decode_topic(cursor: Cursor, version: int, flexible: bool) -> TopicProduceData:
    name, topic_id = "", NO_ID
    if version >= 13:
        topic_id = UUID(bytes=bytes(cursor.take(16)))
    else:
        name = cursor.string(flexible)
    partitions = []
    for _ in range(cursor.count(flexible)):
        partitions.append(PartitionProduceData(cursor.i32(), cursor.nullable_view(flexible)))
        if flexible:
            cursor.skip_tags()
    if flexible:
        cursor.skip_tags()
    return TopicProduceData(name, partitions, topic_id)


def _encode(version: int, response: ProduceResponse) -> list[Part]:
    flexible = version >= 9
    out = bytearray()
    put_length(out, len(response.responses), flexible)
    for topic in response.responses:
        rows = topic.partition_responses
        out += topic_head(topic.topic_id.bytes if version >= 13 else topic.name, len(rows), flexible)
        for part in rows:
            _encode_partition(out, version, flexible, part)
        if flexible:
            out.append(0)
    if version >= 1:
        out += I32.pack(response.throttle_time_ms)
    if flexible:
        if version >= 10 and response.node_endpoints:
            put_endpoints(out, response.node_endpoints)
        else:
            out.append(0)
    return [out]


def _encode_partition(out: bytearray, version: int, flexible: bool, part: PartitionProduceResponse) -> None:
    code = part.error_code
    if code == KafkaStorageError.code and version <= 3:
        code = NotLeaderOrFollower.code
    log_append_time_ms = -1 if part.log_append_time_ms is None else part.log_append_time_ms
    leader = part.current_leader
    no_leader = leader is NO_LEADER or leader == NO_LEADER
    if flexible and no_leader and not part.record_errors and part.error_message is None:
        out += _USUAL_ROW.pack(part.index, code, part.base_offset, log_append_time_ms, part.log_start_offset)
        out += _NOTHING_MORE
        return
    out += _ROW.pack(part.index, code, part.base_offset)
    if version >= 2:
        out += I64.pack(log_append_time_ms)
    if version >= 5:
        out += I64.pack(part.log_start_offset)
    if version >= 8:
        put_length(out, len(part.record_errors), flexible)
        for row in part.record_errors:
            out += I32.pack(row.batch_index)
            put_string(out, row.batch_index_error_message, flexible)
            if flexible:
                out.append(0)
        put_string(out, part.error_message, flexible)
    if flexible:
        if version < 10 or no_leader:
            put_uvarint(out, 0)
        else:
            put_tagged(out, [(0, _LEADER.pack(leader.leader_id, leader.leader_epoch) + b"\x00")])


# ---------------------------------------------------------------- the client's side


def _encode_usual(request: ProduceRequest) -> list[Buffer] | None:
    """At version 13, the records of one partition that are worth a part of their own, in no transaction; None for any
    other request."""
    if request.transactional_id is not None or len(request.topic_data) != 1:
        return None
    (topic,) = request.topic_data
    if len(topic.partition_data) != 1:
        return None
    (part,) = topic.partition_data
    if part.records is None or len(part.records) < _WORTH_A_PART:
        return None
    head = bytearray(_USUAL_REQUEST.pack(0, request.acks, request.timeout_ms, 2, topic.topic_id.bytes, 2, part.index))
    put_uvarint(head, len(part.records) + 1)
    return [head, part.records, _NOTHING_BEHIND]


def _encode_request(version: int, request: ProduceRequest) -> list[Buffer]:
    flexible = version >= 9
    out = bytearray()
    parts: list[Buffer] = [out]
    put_string(out, request.transactional_id, flexible)
    out += _ACKS_TIMEOUT.pack(request.acks, request.timeout_ms)
    put_length(out, len(request.topic_data), flexible)
    for topic in request.topic_data:
        if version >= 13:
            out += topic.topic_id.bytes
        else:
            put_string(out, topic.name, flexible)
        put_length(out, len(topic.partition_data), flexible)
        for part in topic.partition_data:
            out += I32.pack(part.index)
            if part.records is None:
                put_length(out, -1, flexible)
            else:
                size = len(part.records)
                put_length(out, size, flexible)
                if size < _WORTH_A_PART:
                    out += part.records
                else:
                    out = bytearray()
                    parts += (part.records, out)
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
    if flexible:
        out.append(0)
    return parts


def _decode_usual_response(body: memoryview) -> ProduceResponse | None:
    """At version 13, what became of one partition where all is well; None for any other response."""
    if len(body) != _USUAL_RESPONSE.size:
        return None
    topics, raw, partitions, *row, nothing, throttle_ms, tags = _USUAL_RESPONSE.unpack(body)
    if topics != 2 or partitions != 2 or nothing != _NOTHING_MORE_OF_A_TOPIC or tags:
        return None
    index, code, base_offset, at_ms, log_start_offset = row
    part = PartitionProduceResponse(index, code, base_offset, None if at_ms == -1 else at_ms, log_start_offset)
    return ProduceResponse([TopicProduceResponse("", [part], known_id(raw))], throttle_ms)


def _decode_response(version: int, cursor: Cursor) -> ProduceResponse:
    flexible = version >= 9
    response = ProduceResponse()
    for _ in range(cursor.count(flexible)):
        topic = TopicProduceResponse()
        if version >= 13:
            topic.topic_id = cursor.uuid()
        else:
            topic.name = cursor.string(flexible)
        topic.partition_responses = [
            _decode_partition(cursor, version, flexible) for _ in range(cursor.count(flexible))
        ]
        if flexible:
            cursor.skip_tags()
        response.responses.append(topic)
    if version >= 1:
        response.throttle_time_ms = cursor.i32()
    if flexible:
        for tag, start in cursor.tags():
            if tag == 0 and version >= 10:
                response.node_endpoints = _decode_endpoints(Cursor(cursor.data, start))
    return response


def _decode_partition(cursor: Cursor, version: int, flexible: bool) -> PartitionProduceResponse:
    behind = cursor.pos + _USUAL_ROW.size
    if flexible and bytes(cursor.data[behind : behind + 3]) == _NOTHING_MORE:
        index, code, base_offset, at_ms, log_start_offset = _USUAL_ROW.unpack_from(cursor.data, cursor.pos)
        cursor.pos = behind + 3
        return PartitionProduceResponse(index, code, base_offset, None if at_ms == -1 else at_ms, log_start_offset)
    row = PartitionProduceResponse(*_ROW.unpack_from(cursor.data, cursor.pos))
    cursor.pos += _ROW.size
    if version >= 2:
        at_ms = cursor.i64()
        row.log_append_time_ms = None if at_ms == -1 else at_ms
    if version >= 5:
        row.log_start_offset = cursor.i64()
    if version >= 8:
        for _ in range(cursor.count(flexible)):
            row.record_errors.append(BatchIndexAndErrorMessage(cursor.i32(), cursor.nullable_string(flexible)))
            if flexible:
                cursor.skip_tags()
        row.error_message = cursor.nullable_string(flexible)
    if flexible:
        for tag, start in cursor.tags():
            if tag == 0 and version >= 10:
                row.current_leader = LeaderIdAndEpoch(*_LEADER.unpack_from(cursor.data, start))
    return row


def _decode_endpoints(cursor: Cursor) -> list[NodeEndpoint]:
    found = []
    for _ in range(cursor.count(True)):
        node_id, host, port = cursor.i32(), cursor.string(True), cursor.i32()
        found.append(NodeEndpoint(node_id, host, port, cursor.nullable_string(True)))
        cursor.skip_tags()
    return found
