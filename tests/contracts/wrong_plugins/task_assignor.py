"""Task assignors that break a promise."""

from __future__ import annotations

import random
from typing import Any

from logkernel.contracts import MemberTasks, TaskFacts
from wrong_plugins import Wrong, made

Task = tuple[str, int]


class Turns:
    """A good one but for what its subclasses change: the members in turn."""

    name = "turns"

    def assign(self, group: TaskFacts) -> Any:
        found: dict[str, list[Task]] = {name: [] for name in group.members}
        for name, count in sorted(group.tasks.items()):
            for number in range(count):
                self.give(found, sorted(found), (name, number))
        return {name: MemberTasks(active=tasks) for name, tasks in found.items()}

    def give(self, found: dict[str, list[Task]], names: list[str], task: Task) -> None:
        found[names[task[1] % len(names)]].append(task)


class Nameless(Turns):
    name = ""


class Everyone(Turns):
    def assign(self, group: TaskFacts) -> Any:
        everything = [(name, number) for name, count in group.tasks.items() for number in range(count)]
        processes = {member.process_id: name for name, member in group.members.items()}
        return dict.fromkeys(processes.values(), MemberTasks(active=everything))


class NotTheLast(Turns):
    def give(self, found: dict[str, list[Task]], names: list[str], task: Task) -> None:
        if task[1] or len(names) > 1:
            super().give(found, names, task)


class Inventing(Turns):
    def give(self, found: dict[str, list[Task]], names: list[str], task: Task) -> None:
        super().give(found, names, (task[0], task[1] + 1))


class ForOthers(Turns):
    def assign(self, group: TaskFacts) -> Any:
        return {f"{name} of old": tasks for name, tasks in super().assign(group).items()}


class Doubling(Turns):
    """Each member stands by for itself."""

    def assign(self, group: TaskFacts) -> Any:
        return {name: MemberTasks(row.active, row.active) for name, row in super().assign(group).items()}


class CopyingAll(Turns):
    """Others stand by, whether or not there is state."""

    def assign(self, group: TaskFacts) -> Any:
        (first, *others) = group.members
        everything = [(name, number) for name, count in group.tasks.items() for number in range(count)]
        found = {first: MemberTasks(active=everything)}
        for name in others:
            if group.members[name].process_id != group.members[first].process_id:
                return {**found, name: MemberTasks(standby=everything)}
        return found


class Listing(Turns):
    def assign(self, group: TaskFacts) -> Any:
        return list(super().assign(group).items())


class Plain(Turns):
    def assign(self, group: TaskFacts) -> Any:
        return {name: row.active for name, row in super().assign(group).items()}


class Failing(Turns):
    def assign(self, group: TaskFacts) -> Any:
        return {}[min(group.members)]


class Dice(Turns):
    def give(self, found: dict[str, list[Task]], names: list[str], task: Task) -> None:
        found[random.choice(names)].append(task)


class Restless(Turns):
    """Whoever had a task does not get it again."""

    def assign(self, group: TaskFacts) -> Any:
        found: dict[str, list[Task]] = {name: [] for name in group.members}
        for name, count in group.tasks.items():
            for task in ((name, number) for number in range(count)):
                others = [name for name, one in group.members.items() if task not in one.assigned.active]
                found[(others or sorted(found))[0]].append(task)
        return {name: MemberTasks(active=tasks) for name, tasks in found.items()}


PROMISE = "test_every_task_is_active_with_one_member"
WRONG = [
    Wrong(
        "test_it_has_the_name_that_settings_choose",
        "make it the name that logkernel_names lists",
        made(lambda _: Nameless()),
    ),
    Wrong(PROMISE, "active with two members; give it to one", made(lambda _: Everyone())),
    Wrong(PROMISE, r"leaves \d+ tasks without a member", made(lambda _: NotTheLast())),
    Wrong(PROMISE, "which does not exist; take tasks from the group", made(lambda _: Inventing())),
    Wrong(PROMISE, "which is no member; take members from the group", made(lambda _: ForOthers())),
    Wrong(PROMISE, "twice; a process has one copy", made(lambda _: Doubling())),
    Wrong(PROMISE, "which has no state; leave it out", made(lambda _: CopyingAll())),
    Wrong(PROMISE, "return a mapping of member id to MemberTasks", made(lambda _: Listing())),
    Wrong(PROMISE, "return MemberTasks", made(lambda _: Plain())),
    Wrong(PROMISE, r"assign\(\) raised KeyError", made(lambda _: Failing())),
    Wrong(
        "test_equal_groups_get_equal_assignments",
        "to the same group; depend on the facts alone",
        made(lambda _: Dice()),
    ),
    Wrong(
        "test_a_group_in_which_nothing_changes_comes_to_rest",
        r"moves \d+ tasks of a group that has just what",
        made(lambda _: Restless()),
    ),
]
