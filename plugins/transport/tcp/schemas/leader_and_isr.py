"""LeaderAndIsr (key 4), version 7."""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType

from .form import BOOL, ERROR_CODE, INT8, INT32, INT64, STRING, UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrPartitionState:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = RequestHeader
    partition_index: int = field(metadata=INT32)
    controller_epoch: int = field(metadata=INT32)
    leader: int = field(metadata=INT32)
    leader_epoch: int = field(metadata=INT32)
    isr: tuple[int, ...] = field(metadata=INT32)
    partition_epoch: int = field(metadata=INT32)
    replicas: tuple[int, ...] = field(metadata=INT32)
    adding_replicas: tuple[int, ...] = field(metadata=INT32)
    removing_replicas: tuple[int, ...] = field(metadata=INT32)
    is_new: bool = field(metadata=BOOL, default=False)
    leader_recovery_state: int = field(metadata=INT8, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrTopicState:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = RequestHeader
    topic_name: str = field(metadata=STRING)
    topic_id: uuid.UUID | None = field(metadata=UUID)
    partition_states: tuple[LeaderAndIsrPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLeader:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = RequestHeader
    broker_id: int = field(metadata=INT32)
    host_name: str = field(metadata=STRING)
    port: int = field(metadata=INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = RequestHeader
    controller_id: int = field(metadata=INT32)
    is_kraft_controller: bool = field(metadata=BOOL, default=False)
    controller_epoch: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64, default=-1)
    type: int = field(metadata=INT8)
    topic_states: tuple[LeaderAndIsrTopicState, ...]
    live_leaders: tuple[LiveLeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrPartitionError:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = ResponseHeader
    partition_index: int = field(metadata=INT32)
    error_code: ErrorCode = field(metadata=ERROR_CODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrTopicError:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = ResponseHeader
    topic_id: uuid.UUID | None = field(metadata=UUID)
    partition_errors: tuple[LeaderAndIsrPartitionError, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAndIsrResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar = 7
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 4
    __header_schema__: ClassVar = ResponseHeader
    error_code: ErrorCode = field(metadata=ERROR_CODE)
    topics: tuple[LeaderAndIsrTopicError, ...]
