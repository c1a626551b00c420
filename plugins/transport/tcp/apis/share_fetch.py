"""ShareFetch (key 78), versions 1-2: acquire records, and acknowledge earlier ones. The response by hand.

    response  throttle_time_ms int32 | error_code int16 | error_message | acquisition_lock_timeout_ms int32 |
              topics[ id | partitions[ index int32 | error_code int16 | error_message | acknowledge_error_code int16 |
              acknowledge_error_message | current_leader (id int32, epoch int32) | records | acquired[ first int64 |
              last int64 | delivery_count int16 ] ] ] | node_endpoints[ id int32 | host | port int32 | rack ]

- Records go out as they lie on disk: a `FileSlice` is a part of its own and is never copied here.
- Version 2 brings `share_acquire_mode` (KIP-1206) and `is_renew_ack` (KIP-1222); the response is the same.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from logkernel.requests.share_delivery import PartitionData, ShareFetchResponse
from logkernel.vocabulary import FileSlice

from ..api import Api, EncodeBody
from ..wire import I32, Part, put_length, put_string

_HEAD: Final = Struct(">ih")
_ROW: Final = Struct(">ih")
_CODE: Final = Struct(">h")
_LEADER: Final = Struct(">ii")
_ACQUIRED: Final = Struct(">qqhB")


class ShareFetch(Api):
    def response_encoder(self, version: int) -> EncodeBody:
        return _encode


def _encode(response: ShareFetchResponse) -> list[Part]:
    parts: list[Part] = []
    out = bytearray(_HEAD.pack(response.throttle_time_ms, response.error_code))
    put_string(out, response.error_message, True)
    out += I32.pack(response.acquisition_lock_timeout_ms)
    put_length(out, len(response.responses), True)
    for topic in response.responses:
        out += topic.topic_id.bytes
        put_length(out, len(topic.partitions), True)
        for row in topic.partitions:
            out = _encode_partition(parts, out, row)
        out.append(0)
    put_length(out, len(response.node_endpoints), True)
    for node in response.node_endpoints:
        out += I32.pack(node.node_id)
        put_string(out, node.host, True)
        out += I32.pack(node.port)
        put_string(out, node.rack, True)
        out.append(0)
    out.append(0)
    parts.append(out)
    return parts


def _encode_partition(parts: list[Part], out: bytearray, row: PartitionData) -> bytearray:
    out += _ROW.pack(row.partition_index, row.error_code)
    put_string(out, row.error_message, True)
    out += _CODE.pack(row.acknowledge_error_code)
    put_string(out, row.acknowledge_error_message, True)
    out += _LEADER.pack(row.current_leader.leader_id, row.current_leader.leader_epoch)
    out.append(0)
    records = row.records
    size = records.size if isinstance(records, FileSlice) else len(records)
    put_length(out, size, True)
    if size:
        parts += (out, records)
        out = bytearray()
    put_length(out, len(row.acquired_records), True)
    for one in row.acquired_records:
        out += _ACQUIRED.pack(one.first_offset, one.last_offset, one.delivery_count, 0)
    out.append(0)
    return out
