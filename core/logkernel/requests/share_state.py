"""Versionless requests and responses: the durable state of share-partitions (KIP-932)."""

from __future__ import annotations

from uuid import UUID

from attrs import Factory

from logkernel.light import message
from logkernel.vocabulary import NO_ID


@message
class InitializeStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    start_offset: int = 0


@message
class InitializeStateData:
    topic_id: UUID = NO_ID
    partitions: list[InitializeStateDataPartitionData] = Factory(list)


@message
class InitializeShareGroupStateRequest:
    """InitializeShareGroupStateRequest (API key 83), versionless."""

    group_id: str = ""
    topics: list[InitializeStateData] = Factory(list)


@message
class PartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class InitializeStateResult:
    topic_id: UUID = NO_ID
    partitions: list[PartitionResult] = Factory(list)


@message
class InitializeShareGroupStateResponse:
    """InitializeShareGroupStateResponse (API key 83), versionless."""

    results: list[InitializeStateResult] = Factory(list)


@message
class ReadStateDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@message
class ReadStateData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateDataPartitionData] = Factory(list)


@message
class ReadShareGroupStateRequest:
    """ReadShareGroupStateRequest (API key 84), versionless."""

    group_id: str = ""
    topics: list[ReadStateData] = Factory(list)


@message
class StateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@message
class ReadStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    start_offset: int = 0
    state_batches: list[StateBatch] = Factory(list)


@message
class ReadStateResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateResultPartitionResult] = Factory(list)


@message
class ReadShareGroupStateResponse:
    """ReadShareGroupStateResponse (API key 84), versionless."""

    results: list[ReadStateResult] = Factory(list)


@message
class WriteStateDataPartitionDataStateBatch:
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0


@message
class WriteStateDataPartitionData:
    partition: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[WriteStateDataPartitionDataStateBatch] = Factory(list)


@message
class WriteStateData:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateDataPartitionData] = Factory(list)


@message
class WriteShareGroupStateRequest:
    """WriteShareGroupStateRequest (API key 85), versionless."""

    group_id: str = ""
    topics: list[WriteStateData] = Factory(list)


@message
class WriteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class WriteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[WriteStateResultPartitionResult] = Factory(list)


@message
class WriteShareGroupStateResponse:
    """WriteShareGroupStateResponse (API key 85), versionless."""

    results: list[WriteStateResult] = Factory(list)


@message
class DeleteStateDataPartitionData:
    partition: int = 0


@message
class DeleteStateData:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateDataPartitionData] = Factory(list)


@message
class DeleteShareGroupStateRequest:
    """DeleteShareGroupStateRequest (API key 86), versionless."""

    group_id: str = ""
    topics: list[DeleteStateData] = Factory(list)


@message
class DeleteStateResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None


@message
class DeleteStateResult:
    topic_id: UUID = NO_ID
    partitions: list[DeleteStateResultPartitionResult] = Factory(list)


@message
class DeleteShareGroupStateResponse:
    """DeleteShareGroupStateResponse (API key 86), versionless."""

    results: list[DeleteStateResult] = Factory(list)


@message
class ReadStateSummaryDataPartitionData:
    partition: int = 0
    leader_epoch: int = 0


@message
class ReadStateSummaryData:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryDataPartitionData] = Factory(list)


@message
class ReadShareGroupStateSummaryRequest:
    """ReadShareGroupStateSummaryRequest (API key 87), versionless."""

    group_id: str = ""
    topics: list[ReadStateSummaryData] = Factory(list)


@message
class ReadStateSummaryResultPartitionResult:
    partition: int = 0
    error_code: int = 0
    error_message: str | None = None
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1


@message
class ReadStateSummaryResult:
    topic_id: UUID = NO_ID
    partitions: list[ReadStateSummaryResultPartitionResult] = Factory(list)


@message
class ReadShareGroupStateSummaryResponse:
    """ReadShareGroupStateSummaryResponse (API key 87), versionless."""

    results: list[ReadStateSummaryResult] = Factory(list)
