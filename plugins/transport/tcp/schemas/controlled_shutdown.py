"""ControlledShutdown (key 7), version 3."""

from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType

from .form import ERROR_CODE, INT32, INT64, STRING


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownRequest:
    __type__: ClassVar = EntityType.request
    __version__: ClassVar = 3
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 7
    __header_schema__: ClassVar = RequestHeader
    broker_id: int = field(metadata=INT32)
    broker_epoch: int = field(metadata=INT64, default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingPartition:
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar = 3
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 7
    __header_schema__: ClassVar = ResponseHeader
    topic_name: str = field(metadata=STRING)
    partition_index: int = field(metadata=INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdownResponse:
    __type__: ClassVar = EntityType.response
    __version__: ClassVar = 3
    __flexible__: ClassVar = True
    __api_key__: ClassVar = 7
    __header_schema__: ClassVar = ResponseHeader
    error_code: ErrorCode = field(metadata=ERROR_CODE)
    remaining_partitions: tuple[RemainingPartition, ...]
