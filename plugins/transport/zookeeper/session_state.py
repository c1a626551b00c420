"""Whether what a session knows of ZooKeeper's tree still holds, and what of that its broker was told. Pure.

    alive    ZooKeeper answers: everything is allowed
    unsure   the connection was lost, a call had no answer, or the nodes are not as expected: nothing is committed
    ended    ZooKeeper says so, or there was no connection for two thirds of the session timeout

    state    event      next
    alive    doubted    unsure
    unsure   doubted    unsure
    ended    doubted    ended
    unsure   trusted    alive
    alive    over       ended
    unsure   over       ended
    ended    over       ended

Its broker is told "unsure" and "lost" by `report`, each once, and "back" where it was told "unsure" before.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from logkernel.transitions import Transitions


class State(Enum):
    ALIVE = "alive"
    UNSURE = "unsure"
    ENDED = "ended"


class Event(Enum):
    DOUBTED = "doubted"
    TRUSTED = "trusted"
    OVER = "over"


TRANSITIONS: Final = Transitions(
    "a session with ZooKeeper",
    {
        (State.ALIVE, Event.DOUBTED): State.UNSURE,
        (State.UNSURE, Event.DOUBTED): State.UNSURE,
        (State.ENDED, Event.DOUBTED): State.ENDED,
        (State.UNSURE, Event.TRUSTED): State.ALIVE,
        (State.ALIVE, Event.OVER): State.ENDED,
        (State.UNSURE, Event.OVER): State.ENDED,
        (State.ENDED, Event.OVER): State.ENDED,
    },
)
AGAIN_S: Final = (0.0, 0.5, 2.0)
"""Before a controller that found a wrong tree loads anew: the first time, the second, and from then on."""
CALM_S: Final = 30.0
"""After so long the next time counts as the first."""
REPORTS: Final = {State.UNSURE: "unsure", State.ENDED: "lost"}


class SessionState:
    """Time is an argument: monotonic, in seconds."""

    __slots__ = ("_not_before_s", "_reported", "_wrong", "_wrong_s", "state")

    def __init__(self) -> None:
        self.state = State.ALIVE
        """Read-only."""
        self._reported = State.ALIVE
        self._not_before_s = 0.0
        self._wrong = 0
        """How often the tree was wrong in a row, the first time not counted."""
        self._wrong_s = 0.0

    def doubt(self, now_s: float, wait_s: float = 0.0) -> None:
        """Not to be trusted again before `wait_s` is over."""
        self._move(Event.DOUBTED)
        self._not_before_s = now_s + wait_s

    def misled(self, now_s: float) -> float:
        """The tree is not what it was taken for. Returns how long to wait before it is read anew, in seconds."""
        self._wrong = 0 if now_s - self._wrong_s > CALM_S else self._wrong + 1
        self._wrong_s = now_s
        wait_s = AGAIN_S[min(self._wrong, len(AGAIN_S) - 1)]
        self.doubt(now_s, wait_s)
        return wait_s

    def may_be_trusted(self, now_s: float) -> bool:
        return now_s >= self._not_before_s

    def trust(self) -> str:
        """All was read anew. Returns what the broker is told; only for one that was told "unsure"."""
        self._move(Event.TRUSTED)
        self._reported = State.ALIVE
        return "back"

    def end(self) -> None:
        self._move(Event.OVER)

    def report(self) -> str | None:
        """What the broker has to be told now, None for nothing."""
        if self.state is self._reported or self.state is State.ALIVE:
            return None
        self._reported = self.state
        return REPORTS[self.state]

    def mute(self) -> None:
        """It is over, and nobody is told of that."""
        self._move(Event.OVER)
        self._reported = State.ENDED

    @property
    def has_reported_end(self) -> bool:
        return self._reported is State.ENDED

    def _move(self, event: Event) -> None:
        self.state = TRANSITIONS[self.state, event]
