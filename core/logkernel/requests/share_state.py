"""Versionless requests and responses: the durable state of share-partitions (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.vocabulary import NO_ID


@mutable
class InitializeStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@mutable
class InitializeStateData:
    topic_id: UUID = NO_ID
    partitions: list[InitializeStateDataPartitionData] = field(factory=list)


@mutable
class InitializeShareGroupStateRequest:
    """InitializeShareGroupStateRequest (API key 83), versionless."""

    group_id: str = ""
    topics: list[InitializeStateData] = field(factory=list)


@mutable
class PartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class InitializeStateResult:
    topic_id: UUID = NO_ID
    partitions: list[PartitionResult] = field(factory=list)


@mutable
class InitializeShareGroupStateResponse:
    """InitializeShareGroupStateResponse (API key 83), versionless."""

    results: list[InitializeStateResult] = field(factory=list)


@mutable
class ReadStateDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@mutable
class ReadStateData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateDataPartitionData] = field(factory=list)


@mutable
class ReadShareGroupStateRequest:
    """ReadShareGroupStateRequest (API key 84), versionless."""

    group_id: str = ""
    topics: list[ReadStateData] = field(factory=list)


@mutable
class StateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@mutable
class ReadStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = field(factory=list)


@mutable
class ReadStateResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateResultPartitionResult] = field(factory=list)


@mutable
class ReadShareGroupStateResponse:
    """ReadShareGroupStateResponse (API key 84), versionless."""

    results: list[ReadStateResult] = field(factory=list)


@mutable
class WriteStateDataPartitionDataStateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@mutable
class WriteStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[WriteStateDataPartitionDataStateBatch] = field(factory=list)


@mutable
class WriteStateData:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateDataPartitionData] = field(factory=list)


@mutable
class WriteShareGroupStateRequest:
    """WriteShareGroupStateRequest (API key 85), versionless."""

    group_id: str = ""
    topics: list[WriteStateData] = field(factory=list)


@mutable
class WriteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class WriteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateResultPartitionResult] = field(factory=list)


@mutable
class WriteShareGroupStateResponse:
    """WriteShareGroupStateResponse (API key 85), versionless."""

    results: list[WriteStateResult] = field(factory=list)


@mutable
class DeleteStateDataPartitionData:
    partition: int = 0


@mutable
class DeleteStateData:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateDataPartitionData] = field(factory=list)


@mutable
class DeleteShareGroupStateRequest:
    """DeleteShareGroupStateRequest (API key 86), versionless."""

    group_id: str = ""
    topics: list[DeleteStateData] = field(factory=list)


@mutable
class DeleteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@mutable
class DeleteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateResultPartitionResult] = field(factory=list)


@mutable
class DeleteShareGroupStateResponse:
    """DeleteShareGroupStateResponse (API key 86), versionless."""

    results: list[DeleteStateResult] = field(factory=list)


@mutable
class ReadStateSummaryDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@mutable
class ReadStateSummaryData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryDataPartitionData] = field(factory=list)


@mutable
class ReadShareGroupStateSummaryRequest:
    """ReadShareGroupStateSummaryRequest (API key 87), versionless."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = field(factory=list)


@mutable
class ReadStateSummaryResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


@mutable
class ReadStateSummaryResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryResultPartitionResult] = field(factory=list)


@mutable
class ReadShareGroupStateSummaryResponse:
    """ReadShareGroupStateSummaryResponse (API key 87), versionless."""

    results: list[ReadStateSummaryResult] = field(factory=list)
