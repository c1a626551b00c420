"""The coordination of a simulated world: the cluster's own store, with what goes wrong between it and a broker.

| a session is | what happens |
|---|---|
| out of reach | the first commit is kept or not, and its answer lost; then it is unsure: commits raise, and nothing is
  heard until it is back |
| ended late | its broker was killed; the announcement stands until the session timeout, or until the broker is back |
| late in its news | a topic's settings changed, and it hears of it some time after, with the value of then |
| ended unheard | others took over long ago; its broker learns it when it hears again |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from logkernel.cluster.store import Notification, SharedStore, StoreSession
from logkernel.contracts import Coordination, MetadataChange, SessionEvents
from logkernel.errors import KafkaError, KafkaStorageError
from logkernel.testing.simulation.world.stage import Stage

Heard = Callable[[Sequence[MetadataChange]], None]


class WorldStore(SharedStore):
    def __init__(self, stage: Stage, keeper: Coordination, on_commit: Heard) -> None:
        super().__init__(keeper)
        self.stage = stage
        self.on_commit = on_commit
        self._settings: dict[str, MetadataChange] = {}
        """The last change of each key."""
        self._delays = Random(f"news {stage.seed}")
        self.lose_answer_ms = 0
        """The next commit of the controller is kept, its answer lost; it is unsure for so long. 0: none."""
        self.before_commit: Callable[[WorldSession], bool] = lambda _: True
        """Told of each commit of the controller; False: its broker dies instead."""

    def session(self) -> WorldSession:
        made = WorldSession(self)
        self.sessions.append(made)
        return made

    def tell_changes(self, changes: Sequence[MetadataChange]) -> None:
        """News of settings go their own way, as ZooKeeper's do: a broker may get orders about a new topic before."""
        self.on_commit(changes)
        late = {change.key for change in changes if change.kind == "config"}
        self._settings.update((change.key, change) for change in changes if change.kind == "config")
        rest = [change for change in changes if change.kind != "config"]
        if rest:
            super().tell_changes(rest)
        for session in list(self.sessions) if late else ():
            delay_ms = self._delays.choice((0, 0, 0, 5, 50, 300))
            self.stage.later(delay_ms, partial(session.queue, partial(self._tell_settings, sorted(late))))

    def _tell_settings(self, keys: Sequence[str], events: SessionEvents) -> None:
        events.on_changes([self._settings[key] for key in keys])

    def announce(self, session: StoreSession, node_id: int, value: Mapping[str, Any]) -> int:
        known = self.brokers.get(node_id)
        if known is not None and known[0] is not session and known[0].state == "ended":
            self.stage.rare["bounced"] += 1
            self.end(known[0])  # what an earlier life left (KAFKA-7165)
        return super().announce(session, node_id, value)

    def commit_of(self, session: WorldSession, commit: Callable[[], None], *, controller: bool) -> None:
        """Carry out a commit, or what a commit may come to instead."""
        if controller and not self.before_commit(session):
            raise KafkaStorageError("the controller dies")
        if session.deaf and session.state == "alive":
            if self.stage.random.random() < 0.5:
                with suppress(KafkaError):
                    commit()
            self.stage.rare["answer to a commit lost"] += 1
            session.make_unsure()
            raise KafkaStorageError("the coordination did not answer")
        commit()
        if controller and self.lose_answer_ms:
            self.stage.rare["answer to a commit lost"] += 1
            length_ms, self.lose_answer_ms = self.lose_answer_ms, 0
            session.make_unsure()
            self.stage.later(length_ms, session.make_sure)
            raise KafkaStorageError("the coordination did not answer")


class WorldSession(StoreSession):
    def __init__(self, store: WorldStore) -> None:
        super().__init__(store)
        self._world = store
        self._own: deque[Notification] = deque()
        """What it knows of itself, which it hears at once."""
        self.deaf = False
        """It reaches the coordination no more: what happens there, it hears when it is back."""
        self.lingers_ms: int | None = None
        """How long the announcement outlives a broker that is killed."""

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._world.commit_of(self, lambda: super(WorldSession, self).commit(changes), controller=False)

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        self._world.commit_of(
            self, lambda: super(WorldSession, self).commit_as_controller(changes, term), controller=True
        )

    def partition_count(self, topic: str) -> int | None:
        if self.deaf:
            raise KafkaStorageError("the coordination did not answer")
        return super().partition_count(topic)

    def poll(self) -> None:
        events = self._events
        while self._own and events is not None:
            self._own.popleft()(events)
        if not self.deaf:
            super().poll()

    def make_unsure(self) -> None:
        if self._state == "alive":
            self._state = "unsure"
            self._own.append(lambda events: events.on_session("unsure"))
            self._call()

    def make_sure(self) -> None:
        if not self.deaf:
            super().make_sure()

    def go_deaf(self) -> None:
        self.deaf = True

    def hear_again(self) -> None:
        """It reaches the coordination again."""
        if self.deaf:
            self.deaf = False
            if self._state == "unsure":
                self.make_sure()
            self._call()

    def close(self) -> None:
        if self.lingers_ms is None or self._state == "ended":
            super().close()
            return
        self._state = "ended"
        self._waiting.clear()
        self._world.stage.later(self.lingers_ms, lambda: self._world.end(self))

    def _call(self) -> None:
        if self._wakeup is not None:
            self._wakeup()
