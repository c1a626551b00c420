"""The time that a member has to give up what it shall not have."""

from __future__ import annotations

from typing import Any, Protocol

from ..timers import Key, Timers
from .state import Member
from .values import MemberState


class Clock(Protocol):
    """The coordinator, as far as it lets time pass."""

    timers: Timers

    def after(self, key: Key, delay_ms: int) -> None: ...


def revoke_key(group_id: str, member_id: str) -> Key:
    return ("revoke", group_id, member_id)


def watch_revocation(clock: Clock, group_id: str, before: Member[Any, Any], after: Member[Any, Any]) -> None:
    """One that is to give up something has its rebalance timeout for it; classic members have timers of their own."""
    key = revoke_key(group_id, after.member_id)
    if after.is_classic or after.state is not MemberState.UNREVOKED:
        clock.timers.cancel(key)
    elif before.current != after.current or key not in clock.timers:
        clock.after(key, after.facts.rebalance_timeout_ms)
