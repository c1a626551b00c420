"""A session with ZooKeeper: each row of the table, what its broker is told, and how long a wrong tree is left alone."""

from __future__ import annotations

import pytest
from drawn import drawn

from logkernel.plugins.transport.zookeeper import session_state as module
from logkernel.plugins.transport.zookeeper.session_state import (
    AGAIN_S,
    CALM_S,
    TRANSITIONS,
    Event,
    SessionState,
    State,
)


def unsure() -> SessionState:
    session = SessionState()
    session.doubt(1.0)
    return session


def ended() -> SessionState:
    session = SessionState()
    session.end()
    return session


MAKERS = {State.ALIVE: SessionState, State.UNSURE: unsure, State.ENDED: ended}
EVENTS = {
    Event.DOUBTED: lambda session: session.doubt(2.0),
    Event.TRUSTED: lambda session: session.trust(),
    Event.OVER: lambda session: session.end(),
}


def test_the_table_that_is_drawn_is_the_one_that_runs() -> None:
    rows = drawn(module.__doc__, "state", "event", "next")
    assert {(State(state), Event(event)): State(after) for state, event, after in rows} == dict(TRANSITIONS)


@pytest.mark.parametrize(("row", "after"), TRANSITIONS.items(), ids=str)
def test_each_row_is_walked(row: tuple[State, Event], after: State) -> None:
    session = MAKERS[row[0]]()
    EVENTS[row[1]](session)
    assert session.state is after


def test_a_session_that_is_over_or_was_never_doubted_cannot_be_trusted_again() -> None:
    for session in (SessionState(), ended()):
        with pytest.raises(RuntimeError, match="trusted"):
            session.trust()


def test_its_broker_is_told_once_of_each_change() -> None:
    session = SessionState()
    assert session.report() is None
    session.doubt(1.0)
    assert [session.report(), session.report()] == ["unsure", None]
    assert session.trust() == "back"
    assert session.report() is None
    session.doubt(2.0)
    session.end()
    assert not session.has_reported_end
    assert [session.report(), session.report()] == ["lost", None]
    assert session.has_reported_end


def test_nobody_is_told_of_the_end_of_a_session_that_was_closed() -> None:
    session = SessionState()
    session.mute()
    assert session.report() is None
    assert session.has_reported_end


def test_a_tree_that_is_wrong_again_and_again_is_left_alone_longer_until_it_was_calm() -> None:
    session = SessionState()
    now = CALM_S + 1
    assert [session.misled(now) for _ in range(4)] == [*AGAIN_S, AGAIN_S[-1]]
    assert not session.may_be_trusted(now)
    assert session.may_be_trusted(now + AGAIN_S[-1])
    assert session.misled(now + CALM_S + 1) == AGAIN_S[0]
