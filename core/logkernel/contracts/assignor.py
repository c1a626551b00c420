"""An assignor gives partitions to the members of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable
from uuid import UUID

from logkernel.attrs_lite import frozen


@frozen
class Subscriber:
    """A member of a consumer group, as an assignor sees it."""

    topics: frozenset[UUID]
    """Ids of the existing topics that the member subscribes to."""
    assigned: frozenset[tuple[UUID, int]]
    """(topic id, partition) of its last assignment; some may be deleted or no longer subscribed to."""
    instance_id: str | None = None
    rack_id: str | None = None


@frozen
class GroupFacts:
    """What an assignor may know of a group."""

    members: Mapping[str, Subscriber]
    """Member id → member, sorted by id; never empty."""
    partitions: Mapping[UUID, int]
    """Topic id → number of partitions, of every topic with a subscriber."""


@runtime_checkable
class Assignor(Protocol):
    """Assigns partitions to the members of a consumer group (KIP-848). Pure: equal facts give equal assignments."""

    name: str

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        """Return member id → its (topic id, partition)s; a member that is left out gets none.

        Give each partition to one member that subscribes to its topic; other results are refused. Move few partitions:
        each move interrupts a reader."""
        ...
