"""One turn of a broker: an event from outside and all that follows from it, before the next event is looked at.

| verb | called by | does |
|---|---|---|
| `Broker.submit` | the transport or an embedding caller | begins a turn: `dispatch`, then `Turn.end` |
| `Router.dispatch` | a part that is inside a turn | runs the request's handler now, and leaves the end to its caller |
| `Turn.call_soon` | any part | puts work off to the end of the turn: it must not run inside what runs now |
| `RequestPurgatory.retry_soon` | a parked request that heard news | has itself tried again at the end of the turn |
| `Turn.end` | who began the turn | runs what was put off, in order, then tries the parked requests again |

Events from outside are a request, a timer, a lost connection, the end of a flush or of a worker's job, and a command on
the control socket. Each is followed by `Turn.end`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from logkernel.broker.purgatory import RequestPurgatory


class Turn:
    """What the turn under way still has to do."""

    __slots__ = ("_ending", "_purgatory", "soon")

    def __init__(self, purgatory: RequestPurgatory) -> None:
        self._purgatory = purgatory
        self.soon: deque[Callable[[], None]] = deque()
        """Work put off to the end of the turn; read-only."""
        self._ending = False

    def call_soon(self, work: Callable[[], None]) -> None:
        """Run `work` at the end of this turn, after what was put off before it."""
        self.soon.append(work)

    def end(self) -> None:
        """Run what was put off, then try parked requests again. Safe inside a turn's end."""
        if self.soon and not self._ending:
            self._ending = True
            try:
                while self.soon:
                    self.soon.popleft()()
            finally:
                self._ending = False
        if self._purgatory.woken:
            self._purgatory.retry_woken()
