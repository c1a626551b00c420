"""Divides each topic into ranges, one for each subscriber, in the order of their names.

Topics of the same size with the same subscribers are divided at the same partitions, so that a member gets the same
partitions of each and can join them. Static members come first, by instance id, so that a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from logkernel.contracts import Assignor, GroupFacts
from logkernel.hookspecs import hookimpl

Part = tuple[UUID, int]


class RangeAssignor:
    name: str = "range"

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[Part]]:
        found: dict[str, list[Part]] = {name: [] for name in group.members}
        ordered = sorted(group.members, key=lambda name: _place(name, group.members[name].instance_id))
        for topic_id, count in sorted(group.partitions.items()):
            subscribers = [name for name in ordered if topic_id in group.members[name].topics]
            if not subscribers:
                continue
            share, more = divmod(count, len(subscribers))
            start = 0
            for number, name in enumerate(subscribers):
                end = start + share + (number < more)
                found[name] += [(topic_id, partition) for partition in range(start, end)]
                start = end
        return found


def _place(member_id: str, instance_id: str | None) -> tuple[bool, str]:
    return instance_id is None, member_id if instance_id is None else instance_id


@hookimpl
def logkernel_assignor(name: str) -> Assignor | None:
    return RangeAssignor() if name == "range" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("assignor", "range")]
