"""What a client is told where the records of a service could not be appended to its log."""

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
"""As told by the coordinators of groups and transactions: what will never fit is given up."""
