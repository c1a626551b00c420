"""The built-in task assignor keeps the contract; and what it is for."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from logkernel.contracts import MemberTasks, TaskAssignor, TaskFacts, TaskMember
from logkernel.kernel import Kernel
from logkernel.testing.contracts import TaskAssignorContract

Found = Mapping[str, MemberTasks]


@pytest.fixture
def sticky() -> TaskAssignor:
    return Kernel().task_assignor("sticky")


class TestSticky(TaskAssignorContract):
    name = "sticky"


def group(*processes: str, had: Found | None = None, standbys: int = 0, stateful: str = "0", **tasks: int) -> TaskFacts:
    """Members m0, m1 … of these processes; `tasks` are named t0=10, t1=5."""
    members = {
        f"m{number}": TaskMember(process, (had or {}).get(f"m{number}", MemberTasks()))
        for number, process in enumerate(processes)
    }
    return TaskFacts(members, {name[1:]: count for name, count in tasks.items()}, frozenset(stateful), standbys)


def check(facts: TaskFacts, made: Found) -> None:
    """Each stateful task has the standbys that there are processes for. The guard has judged all else."""
    copies = Counter(task for row in made.values() for task in row.standby)
    processes = {member.process_id for member in facts.members.values()}
    wanted = min(facts.standbys, len(processes) - 1)
    assert all(copies[task] == wanted for row in made.values() for task in row.active)


@pytest.mark.parametrize("standbys", [0, 1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_assignments_are_whole_as_members_come_and_go(sticky: TaskAssignor, seed: int, standbys: int) -> None:
    chance = random.Random(seed)
    tasks = chance.randrange(1, 30)
    had: Found = {}
    for _ in range(8):
        processes = [f"p{chance.randrange(4)}" for _ in range(chance.randrange(1, 7))]
        facts = group(*processes, had=had, standbys=standbys, t0=tasks)
        had = sticky.assign(facts)
        check(facts, had)


def test_nobody_has_many_more_than_others(sticky: TaskAssignor) -> None:
    for members in range(1, 8):
        made = sticky.assign(group(*(f"p{number}" for number in range(members)), stateful="", t0=10, t1=5))
        counts = [len(row.active) for row in made.values()]
        assert max(counts) - min(counts) <= 1


def test_who_has_a_task_keeps_it(sticky: TaskAssignor) -> None:
    before = sticky.assign(group("p", "q", standbys=1, t0=10))
    assert sticky.assign(group("p", "q", had=before, standbys=1, t0=10)) == before
    after = sticky.assign(group("p", "q", "r", had=before, t0=10))
    for name in ("m0", "m1"):
        assert set(after[name].active) <= set(before[name].active)
        assert len(after[name].active) >= 3


def test_a_standby_takes_over_what_its_member_knows(sticky: TaskAssignor) -> None:
    before = sticky.assign(group("p", "q", "r", standbys=1, t0=9))
    after = sticky.assign(group("p", "q", had=before, t0=9))
    moved = set(before["m2"].active)
    known = [task for name in after for task in moved & set(after[name].active) & set(before[name].standby)]
    assert (len(moved), len(known)) == (3, 2), "one goes to a member without a copy, as the other has its share"
