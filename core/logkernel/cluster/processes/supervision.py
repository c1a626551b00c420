"""Supervision of a cluster's processes: decides when each is started, stopped and killed. Pure.

    starting   its process runs, and is not ready yet
    running    it serves
    waiting    it died, and is started again when its back-off is over
    stopping   it was told to stop
    ended      nothing runs, for good

    state      event     next       to do
    starting   ready     running
    running    ready     running
    stopping   ready     stopping
    starting   exited    waiting
    running    exited    waiting
    stopping   exited    ended
    waiting    due       starting   start
    starting   stop      stopping   terminate
    running    stop      stopping   terminate
    starting   finish    stopping   finish
    running    finish    stopping   finish
    waiting    stop      ended
    stopping   finish    stopping   finish
    stopping   due       stopping   kill

Until all have been ready once, the cluster begins: a process that ends then ends them all, as what it met (a bad
setting, a port that is taken) it would meet again. At a stop they end in turn, so that each hands its partitions over
to those that are left; who dies meanwhile is not started again. The last one finishes: nobody can take over from it,
and it does not wait for anybody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final, NamedTuple

from logkernel.attrs_lite import mutable
from logkernel.transitions import Transitions

BACK_OFF_MS: Final = 200
"""Before the first restart; doubled with each that follows."""
MAX_BACK_OFF_MS: Final = 30_000
STEADY_MS: Final = 60_000
"""A broker that served this long starts again at the first back-off."""
STOP_MS: Final = 30_000
"""How long a process may take to stop before it is killed."""
FAILED: Final = 1
REFUSED: Final = 2
CLEAN: Final = frozenset({0, -15})
"""Exit codes of a stopped process: one that had not installed its SIGTERM handler yet dies of the signal."""


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    ENDED = "ended"


class Event(Enum):
    READY = "ready"
    EXITED = "exited"
    DUE = "due"
    STOP = "stop"
    FINISH = "finish"


class ToDo(Enum):
    START = "start"
    TERMINATE = "terminate"
    """Have it hand its partitions over, and stop."""
    FINISH = "finish"
    """Have it stop, as the last one."""
    KILL = "kill"


class Action(NamedTuple):
    to_do: ToDo
    node: int


ALIVE: Final = frozenset({State.STARTING, State.RUNNING})
TRANSITIONS: Final = Transitions(
    "a broker's process",
    {
        (State.STARTING, Event.READY): State.RUNNING,
        (State.RUNNING, Event.READY): State.RUNNING,
        (State.STOPPING, Event.READY): State.STOPPING,
        (State.STARTING, Event.EXITED): State.WAITING,
        (State.RUNNING, Event.EXITED): State.WAITING,
        (State.STOPPING, Event.EXITED): State.ENDED,
        (State.WAITING, Event.DUE): State.STARTING,
        (State.STARTING, Event.STOP): State.STOPPING,
        (State.RUNNING, Event.STOP): State.STOPPING,
        (State.STARTING, Event.FINISH): State.STOPPING,
        (State.RUNNING, Event.FINISH): State.STOPPING,
        (State.WAITING, Event.STOP): State.ENDED,
        (State.STOPPING, Event.FINISH): State.STOPPING,
        (State.STOPPING, Event.DUE): State.STOPPING,
    },
)
TO_DO: Final = {
    (State.WAITING, Event.DUE): ToDo.START,
    (State.STARTING, Event.STOP): ToDo.TERMINATE,
    (State.RUNNING, Event.STOP): ToDo.TERMINATE,
    (State.STARTING, Event.FINISH): ToDo.FINISH,
    (State.RUNNING, Event.FINISH): ToDo.FINISH,
    (State.STOPPING, Event.FINISH): ToDo.FINISH,
    (State.STOPPING, Event.DUE): ToDo.KILL,
}


@mutable
class _Child:
    state: State = State.WAITING
    due_ms: int | None = 0
    """When it is started, or killed."""
    deaths: int = 0
    """In a row."""
    ready_ms: int | None = None
    """Since when it serves."""
    finishes: bool = False
    """Whether it knows that it is the last one."""


class Supervision:
    """See the module. Each event returns the actions to carry out, in order."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self._children = {node: _Child() for node in nodes}
        self._unready = set(self._children)
        """The children that have never been ready."""
        self._turns: deque[int] | None = None
        """The children that are still to be stopped, in order; None until the cluster stops."""
        self._code = 0

    # ------------------------------------------------------------ questions

    @property
    def is_formed(self) -> bool:
        """Whether all have been ready once."""
        return not self._unready

    @property
    def is_stopping(self) -> bool:
        return self._turns is not None

    @property
    def exit_code(self) -> int | None:
        """None until all have ended: 0 cleanly, 2 refused at the start, 1 else."""
        return self._code if all(child.state is State.ENDED for child in self._children.values()) else None

    def state(self, node: int) -> State:
        return self._children[node].state

    def next_deadline(self) -> int | None:
        """Return the monotonic ms at which to call `on_time`."""
        return min((child.due_ms for child in self._children.values() if child.due_ms is not None), default=None)

    # ------------------------------------------------------------ events

    def on_time(self, now_ms: int) -> list[Action]:
        """Start and kill whom it is time for; the first call starts all."""
        done: list[Action] = []
        for node, child in self._children.items():
            if child.due_ms is not None and child.due_ms <= now_ms:
                child.due_ms = None
                if child.state is State.STOPPING:
                    self._code = FAILED
                done += self._move(node, Event.DUE)
        return done

    def on_ready(self, node: int, now_ms: int) -> list[Action]:
        """It serves, and knows the others."""
        self._unready.discard(node)
        self._children[node].ready_ms = now_ms
        return self._move(node, Event.READY)

    def on_exit(self, node: int, code: int, now_ms: int) -> list[Action]:
        """Its process ended: with `code`, or by a signal where that is negative."""
        child = self._children[node]
        was_told = child.state is State.STOPPING
        served_ms = 0 if child.ready_ms is None else now_ms - child.ready_ms
        child.deaths = 1 if served_ms >= STEADY_MS else child.deaths + 1
        child.ready_ms = child.due_ms = None
        self._move(node, Event.EXITED)
        if was_told:
            if code not in CLEAN and not self._code:
                self._code = FAILED
            return self._next_turn(now_ms)
        if self.is_stopping:
            return [*self._move(node, Event.STOP), *self._next_turn(now_ms)]
        if not self.is_formed:
            self._code = REFUSED if code == REFUSED else FAILED
            return self.stop(now_ms)
        child.due_ms = now_ms + self.back_off_ms(node)
        return []

    def back_off_ms(self, node: int) -> int:
        """How long a process that died waits for its restart."""
        return min(BACK_OFF_MS << min(self._children[node].deaths - 1, 16), MAX_BACK_OFF_MS)

    def stop(self, now_ms: int, last: Collection[int] = ()) -> list[Action]:
        """Stop all, in turn, `last` at the end; at once where the cluster has not begun to serve."""
        if self.is_stopping:
            return []
        done: list[Action] = []
        self._turns = deque(sorted(self._children, key=lambda node: (node in last, node)))
        for node, child in self._children.items():
            if child.state is State.WAITING:
                child.due_ms = None
                done += self._move(node, Event.STOP)
        if self.is_formed:
            return [*done, *self._next_turn(now_ms)]
        for node in self._turns:
            done += self._stop(node, Event.FINISH, now_ms)
        return done

    # ------------------------------------------------------------ within

    def _next_turn(self, now_ms: int) -> list[Action]:
        if self._turns is None:
            return []
        left = {node: child for node, child in self._children.items() if child.state is not State.ENDED}
        stopping = [node for node, child in left.items() if child.state is State.STOPPING]
        if stopping:
            is_alone = len(left) == 1 and not left[stopping[0]].finishes
            return self._finish(stopping[0]) if is_alone else []
        while self._turns:
            node = self._turns.popleft()
            is_last = not any(self._children[other].state in ALIVE for other in self._turns)
            found = self._stop(node, Event.FINISH if is_last else Event.STOP, now_ms)
            if found:
                return found
        return []

    def _stop(self, node: int, event: Event, now_ms: int) -> list[Action]:
        child = self._children[node]
        if child.state not in ALIVE:
            return []
        child.due_ms = now_ms + STOP_MS
        child.finishes = event is Event.FINISH
        return self._move(node, event)

    def _finish(self, node: int) -> list[Action]:
        """All others have ended while it was stopping."""
        self._children[node].finishes = True
        return self._move(node, Event.FINISH)

    def _move(self, node: int, event: Event) -> list[Action]:
        child = self._children[node]
        to_do = TO_DO.get((child.state, event))
        child.state = TRANSITIONS[child.state, event]
        return [] if to_do is None else [Action(to_do, node)]
