"""The state of one broker in the election of the controller, and what it does at each change of it.

    standby       another broker is the controller, or none is known yet
    campaigning   there is no controller: this broker tries to become it
    loading       elected; it folds the image of the cluster from the coordination
    active        decides and sends orders
    suspended     elected, but its session may be lost: it decides nothing and sends nothing
    resigned      deposed, or its session is lost: it waits to learn who is the controller

    state         event     next          to do
    standby       gone      campaigning   campaign
    campaigning   gone      campaigning   campaign
    resigned      gone      campaigning   campaign
    campaigning   back      campaigning   campaign
    standby       known     standby
    campaigning   known     standby
    resigned      known     standby
    campaigning   won       loading       load
    loading       loaded    active
    active        unsure    suspended     drop
    loading       unsure    suspended     drop
    suspended     back      loading       load
    loading       deposed   resigned      drop
    active        deposed   resigned      drop
    suspended     deposed   resigned      drop
    any           lost      resigned      drop

An event without a row for a state changes nothing: on standby an unsure session does not matter. "known" means that
another broker is the controller; a controller that learns of another one is "deposed" first, then "known".

A controller that comes back loads again, as others may have committed changes that it did not get. It sends all orders
again; brokers ignore those that they have.

Invariant: `term` is the term of the last election that this broker won; terms only grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    STANDBY = "standby"
    CAMPAIGNING = "campaigning"
    LOADING = "loading"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    RESIGNED = "resigned"


class Event(Enum):
    KNOWN = "known"
    GONE = "gone"
    WON = "won"
    LOADED = "loaded"
    DEPOSED = "deposed"
    UNSURE = "unsure"
    BACK = "back"
    LOST = "lost"


class ToDo(Enum):
    NOTHING = "nothing"
    CAMPAIGN = "campaign"
    """Drop image and orders, if there are any. Call `SharedCoordination.campaign`, then `on_campaign` with the result;
    if it raised, campaign again when the session is back."""
    LOAD = "load"
    """Fold the image, and call `on_loaded`."""
    DROP = "drop"
    """Drop image and orders."""


TRANSITIONS: Final[Mapping[tuple[State, Event], tuple[State, ToDo]]] = {
    (State.STANDBY, Event.GONE): (State.CAMPAIGNING, ToDo.CAMPAIGN),
    (State.CAMPAIGNING, Event.GONE): (State.CAMPAIGNING, ToDo.CAMPAIGN),
    (State.RESIGNED, Event.GONE): (State.CAMPAIGNING, ToDo.CAMPAIGN),
    (State.CAMPAIGNING, Event.BACK): (State.CAMPAIGNING, ToDo.CAMPAIGN),
    (State.STANDBY, Event.KNOWN): (State.STANDBY, ToDo.NOTHING),
    (State.CAMPAIGNING, Event.KNOWN): (State.STANDBY, ToDo.NOTHING),
    (State.RESIGNED, Event.KNOWN): (State.STANDBY, ToDo.NOTHING),
    (State.CAMPAIGNING, Event.WON): (State.LOADING, ToDo.LOAD),
    (State.LOADING, Event.LOADED): (State.ACTIVE, ToDo.NOTHING),
    (State.ACTIVE, Event.UNSURE): (State.SUSPENDED, ToDo.DROP),
    (State.LOADING, Event.UNSURE): (State.SUSPENDED, ToDo.DROP),
    (State.SUSPENDED, Event.BACK): (State.LOADING, ToDo.LOAD),
    (State.LOADING, Event.DEPOSED): (State.RESIGNED, ToDo.DROP),
    (State.ACTIVE, Event.DEPOSED): (State.RESIGNED, ToDo.DROP),
    (State.SUSPENDED, Event.DEPOSED): (State.RESIGNED, ToDo.DROP),
    **{(state, Event.LOST): (State.RESIGNED, ToDo.DROP) for state in State},
}

ELECTED: Final = frozenset((State.LOADING, State.ACTIVE, State.SUSPENDED))
SESSION_EVENTS: Final[Mapping[str, Event]] = {"unsure": Event.UNSURE, "back": Event.BACK, "lost": Event.LOST}
NO_TERM: Final = 0


class ControllerState:
    """See the module. Pure: each event returns what the caller has to do."""

    __slots__ = ("_node_id", "controller_id", "known_term", "state", "term")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.state = State.STANDBY
        self.term = NO_TERM
        """The term of the last election that this broker won."""
        self.controller_id: int | None = None
        """The node id of the controller as this broker knows it; None for none."""
        self.known_term = NO_TERM
        """The latest term that this broker knows of."""

    @property
    def is_active(self) -> bool:
        return self.state is State.ACTIVE

    def on_controller(self, node_id: int | None, term: int) -> ToDo:
        """The coordination reports the controller of a term. An older term is ignored."""
        if term < self.known_term:
            return ToDo.NOTHING
        self.known_term = term
        self.controller_id = node_id
        if node_id == self._node_id and self.state in ELECTED and term == self.term:
            return ToDo.NOTHING
        doing = self._move(Event.DEPOSED)
        after = self._move(Event.GONE if node_id is None else Event.KNOWN)
        return after if after is not ToDo.NOTHING else doing

    def on_campaign(self, term: int | None) -> ToDo:
        """The result of the campaign: the term, or None if another broker was elected."""
        if term is None or self.state is not State.CAMPAIGNING:
            return ToDo.NOTHING
        self.term = term
        self.known_term = max(self.known_term, term)
        self.controller_id = self._node_id
        return self._move(Event.WON)

    def on_loaded(self) -> ToDo:
        return self._move(Event.LOADED)

    def on_deposed(self) -> ToDo:
        """A commit was refused: there is a newer term."""
        return self._move(Event.DEPOSED)

    def on_session(self, state: str) -> ToDo:
        """See `contracts.SessionEvents.on_session`."""
        if state == "lost":
            self.controller_id = None
        return self._move(SESSION_EVENTS[state])

    def _move(self, event: Event) -> ToDo:
        row = TRANSITIONS.get((self.state, event))
        if row is None:
            return ToDo.NOTHING
        self.state, doing = row
        return doing
