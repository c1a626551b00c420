"""The guard of `contracts.ElectionStrategy`."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedElection(TimedGuard[ElectionStrategy]):
    """`contracts.ElectionStrategy`."""

    __slots__ = ()
    kind = "election"

    def elect(self, candidates: Candidates) -> Elected | None:
        return self._call(
            "the partition has no leader until the next election",
            lambda: judged_election(self.name, candidates, self._plugin.elect(candidates)),
        )


def judged_election(name: str, candidates: Candidates, elected: Any) -> Elected | None:
    """What was elected. Raises `PluginError` for what the candidates do not allow."""
    if elected is None:
        return None
    if not isinstance(elected, Elected):
        raise PluginError(f"election {name} returned {elected!r}; return Elected or None")
    if elected.leader not in candidates.assignment or elected.leader not in candidates.alive:
        problem = f"which is no live replica (assignment {candidates.assignment}, alive {sorted(candidates.alive)})"
    elif elected.leader not in elected.isr or not set(elected.isr) <= set(candidates.assignment):
        problem = f"with the in-sync replicas {elected.isr}, which must hold the leader and replicas alone"
    elif elected.clean and elected.leader not in candidates.isr:
        problem = f"called clean, though it was not in sync (ISR {candidates.isr}); say Elected(..., clean=False)"
    else:
        return elected
    raise PluginError(f"election {name} chose leader {elected.leader}, {problem}")
