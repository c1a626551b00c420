"""Election `unclean`: elects a live replica in sync, or else any live one: availability before consistency.

The elected replica alone is then in sync. Records that it had not fetched are lost, and the others truncate to it.

| assignment | ISR | alive | elected, new ISR |
|---|---|---|---|
| 1 2 3 | 1 2 3 | 2 3 | 2, {2 3}, clean |
| 1 2 3 | 3 | 1 2 3 | 3, {3}, clean: a replica in sync goes before preference |
| 1 2 3 | 1 | 2 3 | 2, {2}, unclean |
| 1 2 3 | 1 | 3 | 3, {3}, unclean: the first to return leads |
| 1 2 3 | 1 2 3 | none | none |
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.hookspecs import hookimpl


class Unclean:
    """`contracts.ElectionStrategy`; stateless."""

    def elect(self, candidates: Candidates) -> Elected | None:
        isr = tuple(member for member in candidates.isr if member in candidates.alive)
        alive = [replica for replica in candidates.assignment if replica in candidates.alive]
        for replica in alive:
            if replica in isr:
                return Elected(replica, isr)
        return Elected(alive[0], (alive[0],), clean=False) if alive else None


@hookimpl
def logkernel_election(name: str) -> ElectionStrategy | None:
    return Unclean() if name == "unclean" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("election", "unclean")]
