"""UpdateMetadata (key 6), version 8."""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType

from .form import BOOL, ERROR_CODE, INT8, INT16, INT32, INT64, STRING, UUID, tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataPartitionState:
    """Kafka calls `partition_epoch` by its older name here, zk_version."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = RequestHeader
    partition_index: int = field(metadata=INT32)
    controller_epoch: int = field(metadata=INT32)
    leader: int = field(metadata=INT32)
    leader_epoch: int = field(metadata=INT32)
    isr: tuple[int, ...] = field(metadata=INT32)
    partition_epoch: int = field(metadata=INT32)
    replicas: tuple[int, ...] = field(metadata=INT32)
    offline_replicas: tuple[int, ...] = field(metadata=INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataTopicState:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = RequestHeader
    topic_name: str = field(metadata=STRING)
    topic_id: uuid.UUID | None = field(metadata=UUID)
    partition_states: tuple[UpdateMetadataPartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataEndpoint:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = RequestHeader
    port: int = field(metadata=INT32)
    host: str = field(metadata=STRING)
    listener: str = field(metadata=STRING)
    security_protocol: int = field(metadata=INT16)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataBroker:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = RequestHeader
    id: int = field(metadata=INT32)
    endpoints: tuple[UpdateMetadataEndpoint, ...]
    rack: str | None = field(metadata=STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = RequestHeader
    controller_id: int = field(metadata=INT32)
    is_kraft_controller: bool = field(metadata=BOOL, default=False)
    type: int = field(metadata=tagged(INT8, 0), default=0)
    controller_epoch: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64, default=-1)
    topic_states: tuple[UpdateMetadataTopicState, ...]
    live_brokers: tuple[UpdateMetadataBroker, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMetadataResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar = 8
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 6
    __header_schema__: ClassVar = ResponseHeader
    error_code: ErrorCode = field(metadata=ERROR_CODE)
