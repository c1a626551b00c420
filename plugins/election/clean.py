"""Election `clean`: elects only replicas in sync, so that no record acknowledged with acks=all is lost.

| assignment | ISR | alive | elected, new ISR |
|---|---|---|---|
| 1 2 3 | 1 2 3 | 1 2 3 | 1, {1 2 3} |
| 1 2 3 | 1 2 3 | 2 3 | 2, {2 3}: the next in order of preference |
| 1 2 3 | 3 2 | 2 3 | 2, {3 2}: preference is the assignment's order, not the ISR's |
| 1 2 3 | 3 | 1 2 3 | 3, {3} |
| 1 2 3 | 1 | 2 3 | none: the partition waits for 1 |
| 1 2 3 | 1 2 3 | none | none |
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.hookspecs import hookimpl


class Clean:
    """`contracts.ElectionStrategy`; stateless."""

    def elect(self, candidates: Candidates) -> Elected | None:
        isr = tuple(member for member in candidates.isr if member in candidates.alive)
        for replica in candidates.assignment:
            if replica in isr:
                return Elected(replica, isr)
        return None


@hookimpl
def logkernel_election(name: str) -> ElectionStrategy | None:
    return Clean() if name == "clean" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("election", "clean")]
