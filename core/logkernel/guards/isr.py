"""The guard of `contracts.IsrPolicy`."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedIsr(TimedGuard[IsrPolicy]):
    """`contracts.IsrPolicy`."""

    __slots__ = ()
    kind = "ISR policy"

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        return self._call(
            "replica.lag.time.max.ms decides", lambda: judged_in_sync(self.name, self._plugin.is_in_sync(follower))
        )


def judged_in_sync(name: str, answer: Any) -> bool:
    """The answer of an ISR policy. Raises `PluginError` for what is no answer."""
    if not isinstance(answer, bool):
        raise PluginError(f"ISR policy {name} returned {answer!r}; return True or False")
    return answer
