"""The task assignor "sticky" (KIP-1071): who has a task keeps it, nobody has many more than others.

Active tasks, in three rounds, while the member has fewer than its share:

    1. to the member that had it active
    2. to a member that had it standby, the one with the least
    3. the rest to the process with the least for its members, and there to the member with the least

Standbys, as many of each task with state as there are processes without it: to members that had it, then to processes
with the least. Members of a process share its stores, so a process has a task at most once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MemberTasks, Task, TaskAssignor, TaskFacts
from logkernel.hookspecs import hookimpl


@mutable
class _Process:
    members: dict[str, int] = field(factory=dict)
    """Member → how many tasks it has."""
    tasks: set[Task] = field(factory=set)
    """Those that its members have, active or standby."""
    count: int = 0
    """How many tasks its members have."""
    heap: list[tuple[int, str]] = field(factory=list)
    """(how many tasks it had, member): an entry for each number that was ever true."""

    @property
    def load(self) -> float:
        """Tasks a member."""
        return self.count / len(self.members)

    def add(self, member: str) -> None:
        self.members[member] = 0
        heappush(self.heap, (0, member))

    def give(self, member: str, task: Task) -> int:
        """Returns how many tasks the member has now."""
        self.tasks.add(task)
        self.count += 1
        self.members[member] += 1
        heappush(self.heap, (self.members[member], member))
        return self.members[member]

    def least(self) -> str:
        """The member with the least."""
        while self.members[self.heap[0][1]] != self.heap[0][0]:
            heappop(self.heap)
        return self.heap[0][1]


@mutable
class _Quota:
    """The share of a member; as members fill theirs, the rest is shared anew among the others."""

    tasks: int
    """Those that are still to be shared."""
    members: int
    """Those whose share is not full."""

    @property
    def each(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def filled(self, count: int) -> None:
        """A member has so many tasks now."""
        if count == self.each:
            self.members -= 1
            self.tasks -= count


class StickyAssignor:
    name: str = "sticky"

    def assign(self, group: TaskFacts) -> Mapping[str, MemberTasks]:
        return _Assignment(group).made()


class _Assignment:
    def __init__(self, group: TaskFacts) -> None:
        self._process_of = {member: facts.process_id for member, facts in group.members.items()}
        self._standbys = group.standbys
        self._tasks = [(name, number) for name, count in group.tasks.items() for number in range(count)]
        self._stateful = [task for task in self._tasks if task[0] in group.stateful]
        self._active_of: dict[str, set[Task]] = {member: set() for member in group.members}
        self._standby_of: dict[str, set[Task]] = {member: set() for member in group.members}
        self._processes: dict[str, _Process] = {}
        self._was_active: dict[Task, str] = {}
        self._was_standby: dict[Task, list[str]] = {}
        for member, facts in sorted(group.members.items()):
            self._processes.setdefault(facts.process_id, _Process()).add(member)
            self._was_active.update(dict.fromkeys(facts.assigned.active, member))
            for task in facts.assigned.standby:
                self._was_standby.setdefault(task, []).append(member)
        self._active = _Quota(len(self._tasks), len(group.members))
        self._total = _Quota(len(self._tasks) + group.standbys * len(self._stateful), len(group.members))

    def made(self) -> dict[str, MemberTasks]:
        self._assign_active()
        if self._standbys:
            self._assign_standbys()
        return {
            member: MemberTasks(frozenset(tasks), frozenset(self._standby_of[member]))
            for member, tasks in self._active_of.items()
        }

    def _process(self, member: str) -> _Process:
        return self._processes[self._process_of[member]]

    def _count(self, member: str) -> int:
        return self._process(member).members[member]

    def _activate(self, member: str, task: Task) -> None:
        self._active_of[member].add(task)
        count = self._process(member).give(member, task)
        self._active.filled(count)
        self._total.filled(count)

    def _stand_by(self, member: str, task: Task) -> None:
        self._standby_of[member].add(task)
        self._total.filled(self._process(member).give(member, task))

    def _least(self, members: Sequence[str]) -> str:
        return min(members, key=lambda member: (self._process(member).load, self._count(member), member))

    # ------------------------------------------------------------ active

    def _assign_active(self) -> None:
        left: list[Task] = []
        by_partition = sorted(self._tasks, key=lambda task: (task[1], task[0]))
        for task in by_partition:
            member = self._was_active.get(task)
            if member is not None and self._count(member) < self._active.each:
                self._activate(member, task)
            else:
                left.append(task)
        rest: list[Task] = []
        for task in left:
            before = self._was_standby.get(task)
            member = self._least(before) if before else None
            if member is not None and self._count(member) < self._active.each:
                self._activate(member, task)
            else:
                rest.append(task)
        heap = self._by_load()
        for task in sorted(rest):
            _, name = heappop(heap)
            self._activate(self._processes[name].least(), task)
            heappush(heap, (self._processes[name].load, name))

    def _by_load(self) -> list[tuple[float, str]]:
        heap = [(process.load, name) for name, process in self._processes.items()]
        heapify(heap)
        return heap

    # ------------------------------------------------------------ standbys

    def _assign_standbys(self) -> None:
        rest: list[tuple[Task, int]] = []
        for task in sorted(self._stateful, key=lambda task: (task[1], task[0]), reverse=True):
            given = 0
            while given < self._standbys:
                member = self._had(task)
                if member is None:
                    break
                self._stand_by(member, task)
                given += 1
            if given < self._standbys:
                rest.append((task, self._standbys - given))
        heap = self._by_load()
        for task, count in sorted(rest, reverse=True):
            for _ in range(count):
                if not self._give_to_least(heap, task):
                    break

    def _had(self, task: Task) -> str | None:
        """A member that had the task, has room, and whose process does not have it now."""
        was_active = self._was_active.get(task)
        if was_active is not None and self._may_stand_by(was_active, task):
            return was_active
        before = [member for member in self._was_standby.get(task, ()) if self._may_stand_by(member, task)]
        return self._least(before) if before else None

    def _may_stand_by(self, member: str, task: Task) -> bool:
        return task not in self._process(member).tasks and self._count(member) < self._total.each

    def _give_to_least(self, heap: list[tuple[float, str]], task: Task) -> bool:
        """To the process with the least that does not have it; False if all have it."""
        passed: list[tuple[float, str]] = []
        found = None
        while heap and found is None:
            row = heappop(heap)
            if task in self._processes[row[1]].tasks:
                passed.append(row)
            else:
                found = row[1]
        for row in passed:
            heappush(heap, row)
        if found is None:
            return False
        self._stand_by(self._processes[found].least(), task)
        heappush(heap, (self._processes[found].load, found))
        return True


@hookimpl
def logkernel_task_assignor(name: str) -> TaskAssignor | None:
    return StickyAssignor() if name == "sticky" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("task assignor", "sticky")]
