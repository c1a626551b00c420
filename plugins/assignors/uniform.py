"""Gives each member the same number of partitions, plus or minus one, and moves as few as possible.

If members subscribe to different topics, this is not always possible: then a partition moves as long as its owner has
at least two more than another subscriber of its topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from logkernel.contracts import Assignor, GroupFacts
from logkernel.hookspecs import hookimpl

Part = tuple[UUID, int]
Parts = dict[str, list[Part]]


class UniformAssignor:
    name: str = "uniform"

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[Part]]:
        kept, free = _as_before(group)
        if len({member.topics for member in group.members.values()}) == 1:
            _level(kept, free)
        else:
            _spread(group, kept, free)
        return kept


def _as_before(group: GroupFacts) -> tuple[Parts, list[Part]]:
    """Return what each member may keep, and what has no owner."""
    taken: set[Part] = set()
    kept: Parts = {}
    for name, member in group.members.items():
        kept[name] = sorted(
            part
            for part in member.assigned - taken
            if part[0] in member.topics and part[1] < group.partitions.get(part[0], 0)
        )
        taken.update(kept[name])
    topics = sorted(group.partitions.items())
    free = [(topic_id, number) for topic_id, count in topics for number in range(count)]
    return kept, [part for part in free if part not in taken]


def _level(kept: Parts, free: list[Part]) -> None:
    """With equal subscriptions: members with most partitions keep the surplus ones, so that they give up none."""
    share, more = divmod(sum(map(len, kept.values())) + len(free), len(kept))
    ordered = sorted(kept, key=lambda name: (-len(kept[name]), name))
    quotas = {name: share + (number < more) for number, name in enumerate(ordered)}
    for name, quota in quotas.items():
        free += kept[name][quota:]
        del kept[name][quota:]
    given = iter(free)
    for name, quota in quotas.items():
        kept[name] += [next(given) for _ in range(quota - len(kept[name]))]


def _spread(group: GroupFacts, kept: Parts, free: list[Part]) -> None:
    """Give each free partition to the subscriber with fewest, then move partitions while that evens the load."""
    readers = {
        topic_id: [name for name, member in group.members.items() if topic_id in member.topics]
        for topic_id in group.partitions
    }
    for part in sorted(free, key=lambda part: (len(readers[part[0]]), part)):
        if readers[part[0]]:
            kept[_least(kept, readers[part[0]])].append(part)
    moved = True
    while moved:  # it ends: each move makes the sum of the squares of all counts smaller
        moved = False
        for name in sorted(kept, key=lambda name: (-len(kept[name]), name)):
            for part in list(kept[name]):
                other = _least(kept, readers[part[0]])
                if len(kept[name]) - len(kept[other]) > 1:
                    kept[name].remove(part)
                    kept[other].append(part)
                    moved = True


def _least(kept: Parts, names: Iterable[str]) -> str:
    return min(names, key=lambda name: (len(kept[name]), name))


@hookimpl
def logkernel_assignor(name: str) -> Assignor | None:
    return UniformAssignor() if name == "uniform" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("assignor", "uniform")]
