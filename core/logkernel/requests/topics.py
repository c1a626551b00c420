"""Versionless requests and responses: topics."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class CreatableReplicaAssignment:
    partition_index: int = 0
    broker_ids: list[int] = field(factory=list)


@mutable
class CreatableTopicConfig:
    name: str = ""
    value: str | None = None


@mutable
class CreatableTopic:
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = field(factory=list)
    configs: list[CreatableTopicConfig] = field(factory=list)


@mutable
class CreateTopicsRequest:
    """CreateTopicsRequest (API key 19), versionless."""

    topics: list[CreatableTopic] = field(factory=list)
    timeout_ms: int = 60000
    validate_only: bool = False


@mutable
class CreatableTopicConfigs:
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@mutable
class CreatableTopicResult:
    name: str = ""
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = None
    topic_id: UUID = NO_ID


@mutable
class CreateTopicsResponse:
    """CreateTopicsResponse (API key 19), versionless."""

    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = field(factory=list)


@mutable
class DeleteTopicState:
    name: str | None = None
    topic_id: UUID = NO_ID


@mutable
class DeleteTopicsRequest:
    """DeleteTopicsRequest (API key 20), versionless."""

    topic_names: list[str] = field(factory=list)
    timeout_ms: int = 0
    topics: list[DeleteTopicState] = field(factory=list)


@mutable
class DeletableTopicResult:
    name: str | None = None
    error_code: int = 0
    error_message: str | None = None
    topic_id: UUID = NO_ID


@mutable
class DeleteTopicsResponse:
    """DeleteTopicsResponse (API key 20), versionless."""

    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = field(factory=list)


@mutable
class CreatePartitionsAssignment:
    broker_ids: list[int] = field(factory=list)


@mutable
class CreatePartitionsTopic:
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = None


@mutable
class CreatePartitionsRequest:
    """CreatePartitionsRequest (API key 37), versionless."""

    topics: list[CreatePartitionsTopic] = field(factory=list)
    timeout_ms: int = 0
    validate_only: bool = False


@mutable
class CreatePartitionsTopicResult:
    name: str = ""
    error_code: int = 0
    error_message: str | None = None


@mutable
class CreatePartitionsResponse:
    """CreatePartitionsResponse (API key 37), versionless."""

    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = field(factory=list)
