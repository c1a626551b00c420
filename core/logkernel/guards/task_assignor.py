"""The guard of `contracts.TaskAssignor`, and what it judges by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.contracts import MemberTasks, TaskAssignor, TaskFacts
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedTaskAssignor(TimedGuard[TaskAssignor]):
    """`contracts.TaskAssignor`."""

    __slots__ = ()
    kind = "task assignor"
    may_refuse = False

    def assign(self, group: TaskFacts) -> dict[str, MemberTasks]:
        return self._call(
            "the assignor sticky assigns the group's tasks in its place; if that fails, members keep theirs",
            lambda: judged_tasks(self.name, group, self._plugin.assign(group)),
        )


def judged_tasks(name: str, group: TaskFacts, found: Any) -> dict[str, MemberTasks]:
    """Return the tasks of every member, as frozensets. Raises `PluginError` for what its contract does not allow."""
    if not isinstance(found, Mapping):
        raise _refused(name, f"returned {found!r:.200}; return a mapping of member id to MemberTasks")
    active: set[Any] = set()
    held: set[tuple[str, Any]] = set()
    made = dict.fromkeys(group.members, MemberTasks())
    for member_id, row in found.items():
        if member_id not in group.members:
            raise _refused(name, f"gives tasks to {member_id!r:.100}, which is no member; take members from the group")
        if not isinstance(row, MemberTasks):
            raise _refused(name, f"returned {row!r:.200} for {member_id}; return MemberTasks")
        tasks = MemberTasks(tuple(row.active), tuple(row.standby))
        _check_row(name, group, group.members[member_id].process_id, tasks, held)
        for task in tasks.active:
            if task in active:
                raise _refused(name, f"makes the task {task} active with two members; give it to one")
            active.add(task)
        made[member_id] = MemberTasks(frozenset(tasks.active), frozenset(tasks.standby))
    missed = sum(group.tasks.values()) - len(active)
    if missed:
        raise _refused(name, f"leaves {missed} tasks without a member; make each task active with one")
    return made


def _check_row(name: str, group: TaskFacts, process: str, row: MemberTasks, held: set[tuple[str, Any]]) -> None:
    """`held` are (process, task) of all rows until now; those of this row are added."""
    for task in (*row.active, *row.standby):
        if not _exists(group, task):
            raise _refused(name, f"gives the task {task!r:.100}, which does not exist; take tasks from the group")
        if (process, task) in held:
            raise _refused(name, f"gives the task {task} to the process {process} twice; a process has one copy")
        held.add((process, task))
    for task in row.standby:
        if task[0] not in group.stateful:
            raise _refused(name, f"gives a standby of the task {task}, which has no state; leave it out")


def _exists(group: TaskFacts, task: Any) -> bool:
    if not isinstance(task, tuple) or len(task) != 2 or type(task[1]) is not int:
        return False
    return 0 <= task[1] < group.tasks.get(task[0], 0)


def _refused(name: str, problem: str) -> PluginError:
    return PluginError(f"task assignor {name} {problem}")
