"""Assignors that break a promise."""

from __future__ import annotations

import random
from typing import Any

from logkernel.contracts import GroupFacts
from wrong_plugins import Wrong, made


def readers(group: GroupFacts, topic: Any) -> list[str]:
    return [name for name, member in group.members.items() if topic in member.topics]


class Turns:
    """Each partition to the next reader of its topic."""

    name = "turns"

    def assign(self, group: GroupFacts) -> Any:
        found: dict[str, list[Any]] = {name: [] for name in group.members}
        for topic, size in group.partitions.items():
            for number in range(size):
                self.give(found, readers(group, topic), (topic, number))
        return found

    def give(self, found: dict[str, list[Any]], names: list[str], part: Any) -> None:
        found[names[part[1] % len(names)]].append(part)


class Nameless(Turns):
    name = ""


class Everyone(Turns):
    def give(self, found: dict[str, list[Any]], names: list[str], part: Any) -> None:
        for name in names:
            found[name].append(part)


class Blind(Turns):
    def give(self, found: dict[str, list[Any]], names: list[str], part: Any) -> None:
        found[sorted(found)[0]].append(part)


class NotTheLast(Turns):
    def give(self, found: dict[str, list[Any]], names: list[str], part: Any) -> None:
        if part[1] or len(names) > 1:
            super().give(found, names, part)


class Listing(Turns):
    def assign(self, group: GroupFacts) -> Any:
        return list(super().assign(group).items())


class Dice(Turns):
    def give(self, found: dict[str, list[Any]], names: list[str], part: Any) -> None:
        found[random.choice(names)].append(part)


class Restless(Turns):
    """Whoever had a partition does not get it again."""

    def assign(self, group: GroupFacts) -> Any:
        found: dict[str, list[Any]] = {name: [] for name in group.members}
        for topic, size in group.partitions.items():
            names = readers(group, topic)
            for number in range(size):
                others = [name for name in names if (topic, number) not in group.members[name].assigned]
                found[(others or names)[0]].append((topic, number))
        return found


PROMISE = "test_every_partition_has_one_reader_that_subscribes"
WRONG = [
    Wrong(
        "test_it_has_the_name_that_members_ask_for",
        "make it the name that logkernel_names lists",
        made(lambda _: Nameless()),
    ),
    Wrong(PROMISE, "twice; give each to one member", made(lambda _: Everyone())),
    Wrong(PROMISE, "to which it does not subscribe", made(lambda _: Blind())),
    Wrong(PROMISE, r"gave \d+ of \d+ partitions to nobody", made(lambda _: NotTheLast())),
    Wrong(PROMISE, "return a mapping of member id", made(lambda _: Listing())),
    Wrong(
        "test_equal_groups_get_equal_assignments",
        "to the same group; depend on the facts alone",
        made(lambda _: Dice()),
    ),
    Wrong(
        "test_a_group_in_which_nothing_changes_keeps_its_assignment",
        r"moves \d+ partitions of a group that has just what",
        made(lambda _: Restless()),
    ),
]
