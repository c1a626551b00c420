"""What every task assignor promises to the applications that it serves: each task is processed once."""

from __future__ import annotations

from hypothesis import strategies as st

from logkernel.contracts import MemberTasks, TaskAssignor, TaskFacts, TaskMember
from logkernel.guards.task_assignor import judged_tasks
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown

Found = dict[str, MemberTasks]
SUBTOPOLOGIES = ("0", "1", "2")
GONE = ("9", 0)
"""Of a subtopology that the topology does not have any more."""
SETTLES = 5
"""After so many assignments of a group in which nothing changes, no task moves."""


@st.composite
def groups(draw: st.DrawFn) -> TaskFacts:
    """A group of one to five members in up to three processes, with what each had before."""
    names = sorted(draw(st.sets(st.sampled_from([f"m{number}" for number in range(9)]), min_size=1, max_size=5)))
    tasks = {name: draw(st.integers(1, 6)) for name in draw(st.sets(st.sampled_from(SUBTOPOLOGIES), min_size=1))}
    everything = [(name, number) for name, count in sorted(tasks.items()) for number in range(count)]
    active: dict[str, set[tuple[str, int]]] = {name: set() for name in names}
    standby: dict[str, set[tuple[str, int]]] = {name: set() for name in names}
    for task in draw(st.sets(st.sampled_from(everything))):
        active[draw(st.sampled_from(names))].add(task)
    for task in draw(st.sets(st.sampled_from(everything))):
        standby[draw(st.sampled_from(names))].add(task)
    if draw(st.booleans()):
        active[names[0]].add(GONE)
    racks = st.sampled_from("ab")
    has_racks = draw(st.booleans())
    members = {
        name: TaskMember(
            draw(st.sampled_from(("p", "q", "r"))),
            MemberTasks(frozenset(active[name]), frozenset(standby[name] - active[name])),
            draw(racks) if has_racks else None,
        )
        for name in names
    }
    in_racks = {task: draw(st.frozensets(racks)) for task in everything} if has_racks else {}
    return TaskFacts(
        members, tasks, draw(st.frozensets(st.sampled_from(sorted(tasks)))), draw(st.integers(0, 2)), in_racks
    )


class TaskAssignorContract(Kit[TaskAssignor]):
    """`logkernel.contracts.TaskAssignor`."""

    kind = "task assignor"
    methods = ("name", "assign")

    def provide(self, kernel: Kernel, name: str) -> TaskAssignor:
        return kernel.task_assignor(name)

    def test_it_has_the_name_that_settings_choose(self) -> None:
        """A group chooses its assignor by `streams.assignor.name`."""
        found = self.make().name
        if not isinstance(found, str) or not found or (self.name and found != self.name):
            self.broken(f"its attribute `name` is {found!r}; make it the name that logkernel_names lists")

    @for_all(60, group=groups())
    def test_every_task_is_active_with_one_member(self, group: TaskFacts) -> None:
        """Other results are refused, and `sticky` assigns in their place."""
        self._assign(group)

    @for_all(30, group=groups())
    def test_equal_groups_get_equal_assignments(self, group: TaskFacts) -> None:
        """Each broker that comes to lead the group computes it again."""
        once, again = self._assign(group), self._assign(group)
        if once != again:
            self.broken(
                f"assign() gave {shown(once)}, then {shown(again)} to the same group; depend on the facts alone"
            )

    @for_all(30, group=groups())
    def test_a_group_in_which_nothing_changes_comes_to_rest(self, group: TaskFacts) -> None:
        """Each move stops a task until another member took over, and restored its state. `sticky`, as Kafka's, may
        balance once more what it gave."""
        had, moved = self._assign(group), 0
        for _ in range(SETTLES):
            members = {
                name: TaskMember(one.process_id, had[name], one.rack_id, one.client_tags)
                for name, one in group.members.items()
            }
            again = self._assign(TaskFacts(members, group.tasks, group.stateful, group.standbys, group.racks))
            moved = sum(len(set(had[name].active) - set(again[name].active)) for name in had)
            if not moved:
                return
            had = again
        self.broken(f"assign() moves {moved} tasks of a group that has just what assign() gave it; keep them")

    def _assign(self, group: TaskFacts) -> Found:
        with self.calling("assign()"):
            return judged_tasks(self.name or type(self).__name__, group, self.make().assign(group))
