"""Election `rack_first`: lead from the rack of the preferred replica, as long as someone there is in sync.

This site numbers its brokers by rack: node 203 is the fourth broker of rack 2.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.hookspecs import hookimpl

BROKERS_PER_RACK = 100


def rack_of(node_id: int) -> int:
    return node_id // BROKERS_PER_RACK


class RackFirst:
    def elect(self, candidates: Candidates) -> Elected | None:
        """In-sync and alive first by rack, then by preference; an unclean leader only where that is allowed."""
        if not candidates.assignment:
            return None
        home = rack_of(candidates.assignment[0])
        order = sorted(candidates.assignment, key=lambda node: rack_of(node) != home)
        alive = [node for node in order if node in candidates.alive]
        in_sync = [node for node in alive if node in candidates.isr]
        if in_sync:
            remaining = set(in_sync)
            return Elected(in_sync[0], tuple(node for node in candidates.isr if node in remaining))
        if alive and candidates.unclean_allowed:
            return Elected(alive[0], (alive[0],), clean=False)
        return None


@hookimpl
def logkernel_election(name: str) -> ElectionStrategy | None:
    return RackFirst() if name == "rack_first" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("election", "rack_first")]
