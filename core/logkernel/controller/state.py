"""Whether this broker is the controller: what moves it from one state to the next, and what it has to do then.

    standby       another broker is the controller, or nobody was heard of yet
    campaigning   nobody is the controller: this broker stands for it
    loading       elected; the image of the cluster is folded from what the coordination keeps
    active        decides and sends orders
    suspended     elected, but whether the session still lives is not known: nothing is decided, nothing is sent
    resigned      deposed, or its session is lost: waits to hear who is the controller

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

Events that a state has no row for change nothing: a broker on standby does not care whether its session is unsure.
"known" is another broker: to hear of oneself is no news. For a controller it is "deposed" and then "known".

A controller that comes back loads again, as others may have committed meanwhile what it did not hear of; its orders are
then sent anew, and obeyed where they say something new.

Invariant: `term` is that of the last election that was won; terms only grow.
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
    """Forget image and orders, if there are any. Call `SharedCoordination.campaign`, and tell `on_campaign` what came
    of it; where it could not be asked, do it again when the session is back."""
    LOAD = "load"
    """Fold the image, and call `on_loaded`."""
    DROP = "drop"
    """Forget image and orders."""


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
    """One broker's part in who is the controller. Pure: each event returns what is to be done about it."""

    __slots__ = ("_node_id", "controller_id", "known_term", "state", "term")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.state = State.STANDBY
        self.term = NO_TERM
        """In which this broker was elected last."""
        self.controller_id: int | None = None
        """Who is the controller, as far as this broker heard."""
        self.known_term = NO_TERM
        """The latest term that it heard of."""

    @property
    def is_active(self) -> bool:
        return self.state is State.ACTIVE

    def on_controller(self, node_id: int | None, term: int) -> ToDo:
        """The coordination says who is the controller, in which term. News of an older term is passed over."""
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
        """What the campaign came to: a term, or None where another broker was elected."""
        if term is None or self.state is not State.CAMPAIGNING:
            return ToDo.NOTHING
        self.term = term
        self.known_term = max(self.known_term, term)
        self.controller_id = self._node_id
        return self._move(Event.WON)

    def on_loaded(self) -> ToDo:
        return self._move(Event.LOADED)

    def on_deposed(self) -> ToDo:
        """A commit was refused: another term is in force."""
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
