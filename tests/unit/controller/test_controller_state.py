"""Who is the controller, as one broker sees it: each row of the table, and news that is old."""

import pytest
from drawn import drawn

from logkernel.controller import state as module
from logkernel.controller.state import TRANSITIONS, ControllerState, Event, State, ToDo

OWN, OTHER = 1, 2


def standby() -> ControllerState:
    return ControllerState(OWN)


def campaigning() -> ControllerState:
    machine = standby()
    machine.on_controller(None, 4)
    return machine


def loading() -> ControllerState:
    machine = campaigning()
    machine.on_campaign(5)
    return machine


def active() -> ControllerState:
    machine = loading()
    machine.on_loaded()
    return machine


def suspended() -> ControllerState:
    machine = active()
    machine.on_session("unsure")
    return machine


def resigned() -> ControllerState:
    machine = active()
    machine.on_deposed()
    return machine


MAKE = {
    State.STANDBY: standby,
    State.CAMPAIGNING: campaigning,
    State.LOADING: loading,
    State.ACTIVE: active,
    State.SUSPENDED: suspended,
    State.RESIGNED: resigned,
}
MOVES = {
    Event.KNOWN: lambda machine: machine.on_controller(OTHER, 6),
    Event.GONE: lambda machine: machine.on_controller(None, 6),
    Event.WON: lambda machine: machine.on_campaign(7),
    Event.LOADED: ControllerState.on_loaded,
    Event.DEPOSED: ControllerState.on_deposed,
    Event.UNSURE: lambda machine: machine.on_session("unsure"),
    Event.BACK: lambda machine: machine.on_session("back"),
    Event.LOST: lambda machine: machine.on_session("lost"),
}


@pytest.mark.parametrize(("state", "event"), TRANSITIONS)
def test_an_event_moves_the_controller_as_the_table_says(state: State, event: Event) -> None:
    machine = MAKE[state]()
    assert machine.state is state
    doing = MOVES[event](machine)
    assert (machine.state, doing) == TRANSITIONS[state, event]


def test_the_table_in_the_docstring_is_the_table_that_runs() -> None:
    rows = {}
    for before, event, after, doing in drawn(module.__doc__, "state", "event", "next", "to do"):
        for state in State if before == "any" else [State(before)]:
            rows[state, Event(event)] = (State(after), ToDo(doing or "nothing"))
    assert rows == TRANSITIONS


@pytest.mark.parametrize("make", [loading, active, suspended])
def test_a_controller_that_hears_of_another_is_deposed(make) -> None:
    machine = make()
    assert machine.on_controller(OTHER, 6) is ToDo.DROP
    assert machine.state is State.STANDBY
    assert (machine.controller_id, machine.known_term, machine.term) == (OTHER, 6, 5)


def test_a_controller_that_hears_that_nobody_is_it_stands_again() -> None:
    machine = active()
    assert machine.on_controller(None, 5) is ToDo.CAMPAIGN
    assert machine.state is State.CAMPAIGNING


def test_to_hear_of_oneself_is_no_news() -> None:
    machine = active()
    assert machine.on_controller(OWN, 5) is ToDo.NOTHING
    assert machine.is_active


def test_news_of_an_older_term_is_passed_over() -> None:
    machine = active()
    assert machine.on_controller(OTHER, 4) is ToDo.NOTHING
    assert machine.is_active
    assert machine.controller_id == OWN


def test_a_campaign_that_another_won_leaves_it_waiting() -> None:
    machine = campaigning()
    assert machine.on_campaign(None) is ToDo.NOTHING
    assert machine.on_controller(OTHER, 5) is ToDo.NOTHING
    assert (machine.state, machine.controller_id) == (State.STANDBY, OTHER)


def test_an_answer_to_a_campaign_that_is_over_counts_for_nothing() -> None:
    machine = standby()
    machine.on_controller(OTHER, 6)
    assert machine.on_campaign(5) is ToDo.NOTHING
    assert machine.state is State.STANDBY
