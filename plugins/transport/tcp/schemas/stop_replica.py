"""StopReplica (key 5), version 4."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType

from .form import BOOL, ERROR_CODE, INT32, INT64, STRING


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaPartitionState:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 4
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 5
    __header_schema__: ClassVar = RequestHeader
    partition_index: int = field(metadata=INT32)
    leader_epoch: int = field(metadata=INT32, default=-1)
    delete_partition: bool = field(metadata=BOOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaTopicState:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 4
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 5
    __header_schema__: ClassVar = RequestHeader
    topic_name: str = field(metadata=STRING)
    partition_states: tuple[StopReplicaPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar = 4
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 5
    __header_schema__: ClassVar = RequestHeader
    controller_id: int = field(metadata=INT32)
    is_kraft_controller: bool = field(metadata=BOOL, default=False)
    controller_epoch: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64, default=-1)
    topic_states: tuple[StopReplicaTopicState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaPartitionError:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 4
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 5
    __header_schema__: ClassVar = ResponseHeader
    topic_name: str = field(metadata=STRING)
    partition_index: int = field(metadata=INT32)
    error_code: ErrorCode = field(metadata=ERROR_CODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReplicaResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar = 4
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 5
    __header_schema__: ClassVar = ResponseHeader
    error_code: ErrorCode = field(metadata=ERROR_CODE)
    partition_errors: tuple[StopReplicaPartitionError, ...]
