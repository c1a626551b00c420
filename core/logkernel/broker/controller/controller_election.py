"""A broker's part in the election of the controller: it campaigns, is elected, and loses its term.

Every broker whose coordination is shared has one. `controller.state` says what it does when:

    hears       who is the controller, which settings changed, whether its session lives
    campaigns   where nobody is the controller
    loads       the facts, when it was elected; an `ActiveController` decides and orders from then on
    drops it    when it was deposed, or its session is lost or unsure

A restarted broker counts as gone, then as started. The last incarnation that elections counted is stored, so the next
controller sees the restart too.

All of it happens on the broker's own thread. What follows from one event is carried out at the end of its turn.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from logkernel.broker.controller.active import ActiveController, BetweenTerms
from logkernel.broker.controller.channel import Send
from logkernel.broker.controller.commits import Counters
from logkernel.broker.controller.view import NO_EPOCH, ControllerView
from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.controller.controller import Controller
from logkernel.controller.image import WATCHED, ClusterImage
from logkernel.controller.orders import Orders
from logkernel.controller.state import ControllerState, State, ToDo
from logkernel.errors import KafkaError, KafkaStorageError

log = logging.getLogger("logkernel.controller")


class Watcher(Protocol):
    """The rest of the broker, to which it passes events of the cluster."""

    def on_watched(self, changes: Sequence[MetadataChange]) -> None:
        """Changes of `WATCHED` kinds were committed."""
        ...

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        """This broker is the controller: since now (`elected`), or brokers came; so many are alive."""
        ...

    def on_session_lost(self) -> None:
        """The session is over: begin a new one, and `join` with it."""
        ...


class ControllerElection:
    """See the module. `join` begins it."""

    def __init__(self, runtime: Runtime, turn: Turn, controller: Controller, send: Send, watcher: Watcher) -> None:
        self._runtime = runtime
        self._turn = turn
        self._controller = controller
        self._send = send
        self._watcher = watcher
        self._state = ControllerState(runtime.node_id)
        self.view = ControllerView(runtime.node_id, self._state)
        self._to_do: deque[ToDo] = deque()
        self._coordination: SharedCoordination | None = None
        self._active: ActiveController | None = None
        self._kept = BetweenTerms()
        self._is_checking = False

    # ------------------------------------------------------------ questions

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, and decides."""
        return self._active is not None

    @property
    def active(self) -> ActiveController:
        """The term in which this broker is the controller. Raises `NotController`."""
        if self._active is None:
            raise self.view.not_controller()
        return self._active

    @property
    def state(self) -> State:
        return self._state.state

    @property
    def term(self) -> int:
        """In which this broker was elected last; 0 for never."""
        return self._state.term

    @property
    def counters(self) -> Counters:
        return self._kept.counters

    def partition_count(self, topic: str) -> int | None:
        """Partitions of a topic, as the coordination says it. Raises `KafkaError`."""
        if self._coordination is None:
            raise KafkaStorageError("the broker has no session with the coordination; try again when it has joined")
        return self._coordination.partition_count(topic)

    # ------------------------------------------------------------ life

    def begin(self, coordination: SharedCoordination, wakeup: Callable[[], object]) -> None:
        """Begin with a session: `poll` hears of what is committed from now on. `wakeup` has to bring `poll` about, on
        the broker's thread."""
        self._coordination = coordination
        coordination.subscribe(self, wakeup)

    def announce(self, value: Mapping[str, Any]) -> int:
        """Register this broker; returns its broker epoch."""
        self.view.broker_epoch = self._shared.announce(self._runtime.node_id, value)
        self.poll_soon()
        return self.view.broker_epoch

    def close(self) -> None:
        """Decide nothing any more, and let another broker be elected."""
        if self._coordination is not None:
            coordination, self._coordination = self._coordination, None
            self._follow_later(self._state.on_session("lost"))
            coordination.resign()

    def poll(self) -> None:
        """Hear what happened, and do what follows."""
        if self._coordination is not None:
            self._coordination.poll()
            self._carry_on()

    def poll_soon(self) -> None:
        """At the end of the turn."""
        self._turn.call_soon(self.poll)

    def _carry_on(self) -> None:
        while self._to_do and self._coordination is not None:
            self._follow(self._to_do.popleft())
        if self._is_checking:
            self._is_checking = False
            if self._active is not None:
                self._active.check_brokers()

    def _follow_later(self, doing: ToDo) -> None:
        """A finished term ends at once; a new one begins after all pending events."""
        if doing in (ToDo.DROP, ToDo.CAMPAIGN):
            active, self._active = self._active, None
            if active is not None:
                active.end()
        self._to_do.append(doing)

    def _follow(self, doing: ToDo) -> None:
        try:
            if doing is ToDo.CAMPAIGN and self._state.state is State.CAMPAIGNING:
                self._follow_later(self._state.on_campaign(self._shared.campaign(self._runtime.node_id)))
            elif doing is ToDo.LOAD and self._state.state is State.LOADING:
                self._load()
        except KafkaError as error:  # the session is unsure, or lost: it tells
            log.warning("coordination not reached: state=%s error=%s", self._state.state.value, error)

    def _load(self) -> None:
        coordination = self._shared
        coordination.poll()  # what earlier controllers committed must not be heard after it was loaded
        if self._state.state is not State.LOADING:
            return
        orders = Orders(self._runtime.node_id, self._state.term, ClusterImage.of(coordination.changes()))
        active = self._active = ActiveController(
            self._runtime, self._turn, self._controller, self.view, coordination, orders, self._send, self._kept, self
        )
        self._state.on_loaded()
        active.begin()

    @property
    def _shared(self) -> SharedCoordination:
        assert self._coordination is not None, "the broker has not joined"
        return self._coordination

    # ------------------------------------------------------------ contracts.SessionEvents

    def on_controller(self, node_id: int | None, term: int) -> None:
        before = self.view.controller_id
        self._follow_later(self._state.on_controller(node_id, term))
        if self.view.controller_id != before:
            log.info("controller: node_id=%s term=%d", node_id, term)

    def on_session(self, state: str) -> None:
        log.warning("session with the coordination: state=%s", state)
        self._follow_later(self._state.on_session(state))
        if state == "lost":
            self.view.broker_epoch = NO_EPOCH
            self._turn.call_soon(self._watcher.on_session_lost)

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        watched = [change for change in changes if change.kind in WATCHED]
        if watched:
            self._watcher.on_watched(watched)
        if self._active is not None and self._active.on_changes(changes):
            self._is_checking = True

    # ------------------------------------------------------------ active.TermEvents

    def on_deposed(self) -> None:
        self._follow_later(self._state.on_deposed())

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        self._watcher.on_decides(brokers, elected=elected)
