"""The error code for clients if the records of a service could not be appended to its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logkernel.errors import (
    CoordinatorNotAvailable,
    InvalidFetchSize,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)

APPEND_FAULTS: Final[Mapping[int, int]] = {
    NotEnoughReplicas.code: CoordinatorNotAvailable.code,
    NotEnoughReplicasAfterAppend.code: CoordinatorNotAvailable.code,
    RequestTimedOut.code: CoordinatorNotAvailable.code,
    NotLeaderOrFollower.code: NotCoordinator.code,
    KafkaStorageError.code: NotCoordinator.code,
}
"""The log's error code → the client's, so that it looks for the coordinator again."""
COORDINATOR_FAULTS: Final[Mapping[int, int]] = {
    **APPEND_FAULTS,
    UnknownTopicOrPartition.code: CoordinatorNotAvailable.code,
    MessageTooLarge.code: UnknownServerError.code,
    RecordListTooLarge.code: UnknownServerError.code,
    InvalidFetchSize.code: UnknownServerError.code,
}
"""The codes of group and transaction coordinators: a client does not retry what can never be appended."""
