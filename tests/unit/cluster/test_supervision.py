"""Which processes of a cluster are started, stopped and killed, and when."""

from __future__ import annotations

import pytest
from drawn import drawn

from logkernel.cluster.processes import supervision
from logkernel.cluster.processes.supervision import (
    BACK_OFF_MS,
    MAX_BACK_OFF_MS,
    STEADY_MS,
    STOP_MS,
    TO_DO,
    TRANSITIONS,
    Action,
    State,
    Supervision,
    ToDo,
)

START, TERMINATE, FINISH, KILL = ToDo.START, ToDo.TERMINATE, ToDo.FINISH, ToDo.KILL


def formed(count: int = 3) -> Supervision:
    """All serve, at time 0."""
    made = Supervision(range(1, count + 1))
    made.on_time(0)
    for node in range(1, count + 1):
        made.on_ready(node, 0)
    return made


def test_what_is_drawn_is_what_runs() -> None:
    rows = {
        (state, event): (after, *((doing,) if doing else ()))
        for state, event, after, doing in drawn(supervision.__doc__, "state", "event", "next", "to do")
    }
    assert rows == {
        (state.value, event.value): (after.value, *((TO_DO[state, event].value,) if (state, event) in TO_DO else ()))
        for (state, event), after in TRANSITIONS.items()
    }


def test_all_are_started_at_once_and_formed_when_all_were_ready() -> None:
    machine = Supervision([1, 2])
    assert machine.on_time(0) == [Action(START, 1), Action(START, 2)]
    machine.on_ready(2, 5)
    assert not machine.is_formed
    machine.on_ready(1, 6)
    assert machine.is_formed
    assert machine.next_deadline() is None


def test_who_dies_is_started_again_later_each_time() -> None:
    machine = formed()
    now, waits = 0, []
    for _ in range(10):
        assert machine.on_exit(2, -9, now) == []
        due = machine.next_deadline()
        assert due is not None
        assert machine.on_time(due - 1) == []
        assert machine.on_time(due) == [Action(START, 2)]
        waits.append(due - now)
        now = due
        machine.on_ready(2, now)
    assert waits[:3] == [BACK_OFF_MS, 2 * BACK_OFF_MS, 4 * BACK_OFF_MS]
    assert waits[-1] == MAX_BACK_OFF_MS
    machine.on_exit(2, 0, now + STEADY_MS)
    assert machine.next_deadline() == now + STEADY_MS + BACK_OFF_MS


def test_who_dies_before_it_was_ready_is_started_again_once_the_cluster_is_formed() -> None:
    machine = formed()
    machine.on_exit(1, -9, 10)
    machine.on_time(10 + BACK_OFF_MS)
    assert machine.on_exit(1, 2, 300) == []
    assert machine.on_time(300 + 2 * BACK_OFF_MS) == [Action(START, 1)]


@pytest.mark.parametrize(("code", "told"), [(2, 2), (1, 1), (0, 1), (-9, 1)])
def test_who_ends_before_the_cluster_is_formed_ends_them_all(code: int, told: int) -> None:
    machine = Supervision([1, 2, 3])
    machine.on_time(0)
    machine.on_ready(1, 1)
    assert machine.on_exit(2, code, 2) == [Action(FINISH, 1), Action(FINISH, 3)]
    machine.on_exit(1, 0, 3)
    assert machine.exit_code is None
    machine.on_exit(3, 0, 4)
    assert machine.exit_code == told


def test_a_stop_ends_one_after_the_other_and_the_controller_last() -> None:
    machine = formed()
    assert machine.stop(10, last=[1]) == [Action(TERMINATE, 2)]
    assert machine.stop(11) == []
    assert machine.on_exit(2, 0, 20) == [Action(TERMINATE, 3)]
    assert machine.on_exit(3, 0, 30) == [Action(FINISH, 1)], "it does not wait for anybody to take over"
    assert machine.exit_code is None
    assert machine.on_exit(1, 0, 40) == []
    assert machine.exit_code == 0
    assert machine.next_deadline() is None


def test_who_does_not_stop_in_time_is_killed() -> None:
    machine = formed(1)
    machine.stop(10)
    assert machine.next_deadline() == 10 + STOP_MS
    assert machine.on_time(10 + STOP_MS) == [Action(KILL, 1)]
    assert machine.on_exit(1, -9, 10 + STOP_MS) == []
    assert machine.exit_code == 1


@pytest.mark.parametrize(("code", "told"), [(0, 0), (-15, 0), (1, 1), (-11, 1)])
def test_a_broker_that_fails_while_it_stops_is_told_by_the_exit_code(code: int, told: int) -> None:
    machine = formed(1)
    machine.stop(10)
    machine.on_exit(1, code, 20)
    assert machine.exit_code == told


def test_who_dies_while_others_stop_is_not_started_again() -> None:
    machine = formed()
    machine.stop(0)
    assert machine.on_exit(2, -9, 5) == []
    assert machine.state(2) is State.ENDED
    assert machine.on_exit(1, 0, 6) == [Action(FINISH, 3)]
    machine.on_exit(3, 0, 7)
    assert machine.exit_code == 0


def test_who_stops_while_all_others_die_is_told_that_it_is_the_last_one() -> None:
    machine = formed()
    assert machine.stop(0) == [Action(TERMINATE, 1)]
    assert machine.on_exit(2, -15, 1) == []
    assert machine.on_exit(3, -15, 2) == [Action(FINISH, 1)]
    assert machine.on_exit(1, 0, 3) == []
    assert machine.exit_code == 0


def test_a_stop_does_not_wait_for_a_restart() -> None:
    machine = formed()
    machine.on_exit(1, -9, 5)
    assert machine.stop(6) == [Action(TERMINATE, 2)]
    assert machine.state(1) is State.ENDED
    assert machine.on_exit(2, 0, 7) == [Action(FINISH, 3)]
    machine.on_exit(3, 0, 8)
    assert machine.exit_code == 0
