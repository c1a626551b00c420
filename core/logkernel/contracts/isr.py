"""An ISR policy says which followers are in sync."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen


@frozen
class FollowerFacts:
    """What an ISR policy may know of one follower, at one moment. Times are ages in ms."""

    node: int
    is_member: bool
    """Whether it is in the ISR. The policy is called for members twice in each `replica.lag.time.max.ms`, and for other
    followers when they fetch."""
    lag_records: int | None
    """Leader's log end offset minus the follower's; None before its first fetch in this leader epoch."""
    caught_up_ms: int
    """Time since it last had all of the leader's records; for a member at most the age of the leader epoch."""
    fetched_ms: int
    """Time since it last fetched, or last had all records of an idle leader; for a member at most the age of the
    leader epoch."""
    lag_time_max_ms: int
    """`replica.lag.time.max.ms` of the leader's broker."""


@runtime_checkable
class IsrPolicy(Protocol):
    """Says which followers of a partition count as in sync. One object for each partition that a broker leads.

    It decides which replicas are in the ISR, not what the ISR does: the high watermark always waits for all of the
    ISR, and does not advance while the ISR is smaller than `min.insync.replicas`. A replica joins only if it also has
    all committed records and its broker is alive."""

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        """Return True for a member to stay or another follower to join, False for a member to leave. Depend on the
        facts only."""
        ...
