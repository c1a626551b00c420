"""An election strategy chooses a partition's leader."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from logkernel.attrs_lite import frozen


@frozen
class Candidates:
    """What an election strategy may know: node ids. `assignment` is in order of preference."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    alive: frozenset[int]
    unclean_allowed: bool = False


@frozen
class Elected:
    """The result of an election: the leader's node id and the first ISR. `clean`: the leader was in the ISR."""

    leader: int
    isr: tuple[int, ...]
    clean: bool = True


@runtime_checkable
class ElectionStrategy(Protocol):
    """Elects a leader for a partition that has lost its leader."""

    def elect(self, candidates: Candidates) -> Elected | None:
        """Return the new leader with its first ISR, or None if no replica may lead."""
        ...
