"""Metadata (key 3), versions 0-13: brokers, topics, leaders. By hand: it is asked first, often, and grows large.

    request   topics[ id (10+) | name ] nullable (1+) | allow_auto_topic_creation (4+) |
              include_cluster_authorized_operations (8-10) | include_topic_authorized_operations (8+)
    response  throttle_time_ms int32 (3+) | brokers[ node_id int32 | host | port int32 | rack (1+) ] |
              cluster_id (2+) | controller_id int32 (1+) | topics[ error_code int16 | name | id (10+) |
              is_internal (1+) | partitions[ error_code int16 | index int32 | leader_id int32 |
              leader_epoch int32 (7+) | replicas | isr | offline (5+) ] | authorized_operations int32 (8+) ] |
              cluster_authorized_operations int32 (8-10) | error_code int16 (13+)

- All topics are asked for by null, at version 0 by an empty list; the broker sees None for both.
- Below 4 a topic may be created by asking, as `allow_auto_topic_creation` says by default.
- LISTENER_NOT_FOUND is LEADER_NOT_AVAILABLE to versions below 6, which do not know it.
- A null name (asked by unknown id) is "" to versions below 12.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from logkernel.errors import LeaderNotAvailable, ListenerNotFound
from logkernel.requests.cluster import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.vocabulary import NO_ID

from ..api import Api, DecodeBody, EncodeBody
from ..wire import I16, I32, Cursor, Part, put_ints, put_length, put_string

_ROW: Final = Struct(">hii")
_TRUE: Final = b"\x01"
_FALSE: Final = b"\x00"


class Metadata(Api):
    capabilities = (("topic_ids", 12),)

    def request_decoder(self, version: int) -> DecodeBody:
        return lambda body: _decode(version, Cursor(body))

    def response_encoder(self, version: int) -> EncodeBody:
        def encode(response: MetadataResponse) -> list[Part]:
            return [_encode(version, response)]

        return encode


def _decode(version: int, cursor: Cursor) -> MetadataRequest:
    flexible = version >= 9
    request = MetadataRequest()
    count = cursor.nullable_count(flexible)
    if count > 0 or (count == 0 and version > 0):
        request.topics = [_decode_topic(cursor, version, flexible) for _ in range(count)]
    if version >= 4:
        request.allow_auto_topic_creation = cursor.i8() != 0
    if 8 <= version <= 10:
        request.include_cluster_authorized_operations = cursor.i8() != 0
    if version >= 8:
        request.include_topic_authorized_operations = cursor.i8() != 0
    if flexible:
        cursor.skip_tags()
    return request


def _decode_topic(cursor: Cursor, version: int, flexible: bool) -> MetadataRequestTopic:
    topic_id = cursor.uuid() if version >= 10 else NO_ID
    name = cursor.nullable_string(flexible) if version >= 10 else cursor.string(flexible)
    if flexible:
        cursor.skip_tags()
    return MetadataRequestTopic(name, topic_id)


def _encode(version: int, response: MetadataResponse) -> bytearray:
    flexible = version >= 9
    out = bytearray()
    if version >= 3:
        out += I32.pack(response.throttle_time_ms)
    _put_brokers(out, version, flexible, response)
    if version >= 2:
        put_string(out, response.cluster_id, flexible)
    if version >= 1:
        out += I32.pack(response.controller_id)
    put_length(out, len(response.topics), flexible)
    for topic in response.topics:
        _put_topic(out, version, flexible, topic)
    if 8 <= version <= 10:
        out += I32.pack(response.cluster_authorized_operations)
    if version >= 13:
        out += I16.pack(response.error_code)
    if flexible:
        out.append(0)
    return out


def _put_brokers(out: bytearray, version: int, flexible: bool, response: MetadataResponse) -> None:
    put_length(out, len(response.brokers), flexible)
    for broker in response.brokers:
        out += I32.pack(broker.node_id)
        put_string(out, broker.host, flexible)
        out += I32.pack(broker.port)
        if version >= 1:
            put_string(out, broker.rack, flexible)
        if flexible:
            out.append(0)


def _put_topic(out: bytearray, version: int, flexible: bool, topic: MetadataResponseTopic) -> None:
    out += I16.pack(_known_code(version, topic.error_code))
    put_string(out, topic.name if topic.name is not None or version >= 12 else "", flexible)
    if version >= 10:
        out += topic.topic_id.bytes
    if version >= 1:
        out += _TRUE if topic.is_internal else _FALSE
    put_length(out, len(topic.partitions), flexible)
    for partition in topic.partitions:
        _put_partition(out, version, flexible, partition)
    if version >= 8:
        out += I32.pack(topic.topic_authorized_operations)
    if flexible:
        out.append(0)


def _put_partition(out: bytearray, version: int, flexible: bool, partition: MetadataResponsePartition) -> None:
    code = _known_code(version, partition.error_code)
    out += _ROW.pack(code, partition.partition_index, partition.leader_id)
    if version >= 7:
        out += I32.pack(partition.leader_epoch)
    put_ints(out, partition.replica_nodes, flexible)
    put_ints(out, partition.isr_nodes, flexible)
    if version >= 5:
        put_ints(out, partition.offline_replicas, flexible)
    if flexible:
        out.append(0)


def _known_code(version: int, code: int) -> int:
    return LeaderNotAvailable.code if code == ListenerNotFound.code and version < 6 else code
