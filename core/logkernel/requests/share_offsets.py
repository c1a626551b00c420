"""Versionless requests and responses: offsets of share groups, for operators (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[int] = field(factory=list)


@mutable
class DescribeShareGroupOffsetsRequestGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None


@mutable
class DescribeShareGroupOffsetsRequest:
    """DescribeShareGroupOffsetsRequest (API key 90), versionless."""

    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(factory=list)


@mutable
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    start_offset: int = 0
    leader_epoch: int = 0
    lag: int = -1
    error_code: int = 0
    error_message: str | None = None


@mutable
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(factory=list)


@mutable
class DescribeShareGroupOffsetsResponseGroup:
    group_id: str = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(factory=list)
    error_code: int = 0
    error_message: str | None = None


@mutable
class DescribeShareGroupOffsetsResponse:
    """DescribeShareGroupOffsetsResponse (API key 90), versionless."""

    throttle_time_ms: int = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(factory=list)


@mutable
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = 0
    start_offset: int = 0


@mutable
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(factory=list)


@mutable
class AlterShareGroupOffsetsRequest:
    """AlterShareGroupOffsetsRequest (API key 91), versionless."""

    group_id: str = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(factory=list)


@mutable
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(factory=list)


@mutable
class AlterShareGroupOffsetsResponse:
    """AlterShareGroupOffsetsResponse (API key 91), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(factory=list)


@mutable
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = ""


@mutable
class DeleteShareGroupOffsetsRequest:
    """DeleteShareGroupOffsetsRequest (API key 92), versionless."""

    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(factory=list)


@mutable
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = ""
    topic_id: UUID = NO_ID
    error_code: int = 0
    error_message: str | None = None


@mutable
class DeleteShareGroupOffsetsResponse:
    """DeleteShareGroupOffsetsResponse (API key 92), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(factory=list)
