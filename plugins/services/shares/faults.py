"""What went wrong with a service's log, as those who asked are told it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from logkernel.errors import (
    CoordinatorNotAvailable,
    KafkaStorageError,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)

APPEND_FAULTS: Final[Mapping[int, int]] = {
    NotEnoughReplicas.code: CoordinatorNotAvailable.code,
    NotEnoughReplicasAfterAppend.code: CoordinatorNotAvailable.code,
    RequestTimedOut.code: CoordinatorNotAvailable.code,
    NotLeaderOrFollower.code: NotCoordinator.code,
    KafkaStorageError.code: NotCoordinator.code,
}
"""So that clients look for the coordinator again."""
