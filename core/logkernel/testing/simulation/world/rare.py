"""States that a run of many seeds has to reach: one that stays at zero means that nothing looks there any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from logkernel.errors import (
    CoordinatorLoadInProgress,
    FencedLeaderEpoch,
    InvalidTxnState,
    KafkaStorageError,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RebalanceInProgress,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnknownLeaderEpoch,
    UnknownMemberId,
)
from logkernel.requests.data import FetchResponse

ENOUGH: Final = 70
"""Seeds of which each state has to be seen; the rarest is seen about seven times in them."""
RARE: Final = (
    # brokers and the coordination
    "bounced", "controller died", "session lost", "answer to a commit lost", "power cut within an operation",
    "full disk", "broken disk", "offline partition", "unclean election", "lawful loss", "order for an earlier life",
    # partitions
    "expanded", "shrunk", "diverging", "out of range", "fenced", "unknown epoch", "too few in sync",
    "asked a former leader", "asked a broken disk",
    # network and clients
    "overtaken", "coordinator loads", "coordinator moved", "rebalance", "member forgotten",
    "another life of transactional", "another life of copy", "chore churn", "chore reassign", "chore trim",
    "chore grow", "chore alter", "chore elect",
)  # fmt: skip
CODES: Final = {
    CoordinatorLoadInProgress.code: "coordinator loads",
    FencedLeaderEpoch.code: "fenced",
    InvalidTxnState.code: "transaction in another state",
    KafkaStorageError.code: "asked a broken disk",
    NotCoordinator.code: "coordinator moved",
    NotEnoughReplicas.code: "too few in sync",
    NotEnoughReplicasAfterAppend.code: "too few in sync",
    NotLeaderOrFollower.code: "asked a former leader",
    OffsetOutOfRange.code: "out of range",
    OutOfOrderSequenceNumber.code: "sequence out of order",
    RebalanceInProgress.code: "rebalance",
    StaleBrokerEpoch.code: "order for an earlier life",
    StaleControllerEpoch.code: "order of an earlier controller",
    UnknownLeaderEpoch.code: "unknown epoch",
    UnknownMemberId.code: "member forgotten",
}
"""Error code of an answer → the state that it shows."""


def seen_in(response: Any) -> Iterator[str]:
    """The rare states that an answer shows."""
    for code in _codes(response):
        name = CODES.get(code)
        if name is not None:
            yield name
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for row in topic.partitions:
                if row.diverging_epoch.end_offset >= 0:
                    yield "diverging"


def _codes(response: Any) -> Iterator[int]:
    yield getattr(response, "error_code", 0)
    for name in ("responses", "topics", "groups", "coordinators"):
        for part in getattr(response, name, None) or ():
            yield getattr(part, "error_code", 0)
            for inner in ("partitions", "partition_responses", "partition_errors"):
                for row in getattr(part, inner, None) or ():
                    yield getattr(row, "error_code", 0)
