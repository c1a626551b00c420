"""The coordination that the brokers of one process share: `contracts.SharedCoordination` over a plain one.

    store = SharedStore(keeper)          keeper: a plain Coordination, e.g. `memory` or `local`
    session = store.session()            one for each broker

What a session commits is durable when `commit` returns. Every session, the committing one included, is notified of it
once, in the same order. Registrations of brokers are not durable: they end with their sessions. The last term
(controller epoch) and the last broker epoch are durable, so no two controllers have the same term, and no two starts
of a broker the same broker epoch.

| a session is | it may commit | its broker's registration | ends by |
|---|---|---|---|
| alive | yes | stands | `make_unsure`, a lost answer, `expire`, `close` |
| unsure | raises `KafkaStorageError` | stands | `back`, `expire` |
| ended | raises `KafkaStorageError` | gone | a new session |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from logkernel.contracts import Coordination, MetadataChange, SessionEvents, SettingsAnswered
from logkernel.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleControllerEpoch

TERM: Final = "controller_epoch"
"""The kind of the change that holds the last term."""
EPOCH: Final = "broker_epoch"
"""The kind of the change that holds the last broker epoch."""
NAME: Final = "cluster"
"""The kind of the change that holds the cluster id."""

Notification = Callable[[SessionEvents], object]
"""One call of a `SessionEvents` method, or an answer, waiting to be made."""


class SharedStore:
    """See the module. Sessions and their brokers run on one thread, or take turns."""

    def __init__(self, keeper: Coordination, resumed: Mapping[int, int] | None = None) -> None:
        """`resumed` is node id → broker epoch of brokers that go on where a snapshot found them: each is announced in
        that epoch, so it does not count as started again, and no controller is elected before all of them are."""
        self.keeper = keeper
        self._resumed = dict(resumed or {})
        self.sessions: list[StoreSession] = []
        """The sessions that have not ended."""
        self.controller: StoreSession | None = None
        self.controller_id: int | None = None
        self.brokers: dict[int, tuple[StoreSession, int, Mapping[str, Any]]] = {}
        """Node id → (session, broker epoch, registration)."""
        self.term = 0
        self._epoch = 0
        self._named = False
        for change in keeper.changes():
            if change.kind == TERM and change.value is not None:
                self.term = int(change.value["term"])
            elif change.kind == EPOCH and change.value is not None:
                self._epoch = int(change.value["epoch"])
            elif change.kind == NAME:
                self._named = True

    def session(self) -> StoreSession:
        made = StoreSession(self)
        self.sessions.append(made)
        return made

    def close(self) -> None:
        for session in list(self.sessions):
            session.close()
        self.keeper.close()

    # ------------------------------------------------------------ for sessions

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        """Commit `changes`, but keep the first cluster id: brokers that start at the same time each propose one."""
        if self._named:
            changes = [change for change in changes if change.kind != NAME]
        if changes:
            self.keeper.commit(changes)
            self._named = self._named or any(change.kind == NAME for change in changes)
            self.tell_changes(changes)

    def tell_changes(self, changes: Sequence[MetadataChange]) -> None:
        kept = list(changes)
        self.tell(lambda events: events.on_changes(kept))

    def tell(self, notification: Notification) -> None:
        for session in self.sessions:
            session.queue(notification)

    def elect(self, session: StoreSession, node_id: int) -> int | None:
        if self.controller is not None or self._resumed:
            return None
        term = self.term + 1
        self.keeper.commit([MetadataChange(TERM, "", {"term": term})])
        self.term, self.controller, self.controller_id = term, session, node_id
        self.tell(lambda events: events.on_controller(node_id, term))
        return term

    def depose(self, session: StoreSession) -> None:
        if self.controller is session:
            term = self.term
            self.controller = self.controller_id = None
            self.tell(lambda events: events.on_controller(None, term))

    def announce(self, session: StoreSession, node_id: int, value: Mapping[str, Any]) -> int:
        known = self.brokers.get(node_id)
        if known is not None and known[0] is not session:
            raise DuplicateBrokerRegistration(
                f"broker {node_id} is already registered by another session; give this broker another node.id"
            )
        epoch = self._resumed.pop(node_id, None)
        was_last = epoch is not None and not self._resumed
        if epoch is None:
            epoch = self._epoch + 1
            self.keeper.commit([MetadataChange(EPOCH, "", {"epoch": epoch})])
            self._epoch = epoch
        self.brokers[node_id] = (session, epoch, value)
        self.tell_changes([MetadataChange("broker", str(node_id), value)])
        if was_last:
            term = self.term
            self.tell(lambda events: events.on_controller(None, term))
        return epoch

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        own = [MetadataChange(TERM, "", {"term": self.term}), MetadataChange(EPOCH, "", {"epoch": self._epoch})]
        self.keeper.replace([*own, *(change for change in changes if change.kind not in ("broker", TERM, EPOCH))])

    def end(self, session: StoreSession) -> None:
        """End a session: its registration and its term end, and the other sessions are notified."""
        if session not in self.sessions:
            return
        self.sessions.remove(session)
        for node_id, row in list(self.brokers.items()):
            if row[0] is session:
                del self.brokers[node_id]
                self.tell_changes([MetadataChange("broker", str(node_id), None)])
        self.depose(session)


class StoreSession:
    """The session of one broker with the store: `contracts.SharedCoordination`."""

    stale_ms = 0

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._state = "alive"
        self._events: SessionEvents | None = None
        self._wakeup: Callable[[], object] | None = None
        self._waiting: deque[Notification] = deque()
        self._lost_answer: str | None = None

    # ------------------------------------------------------------ contracts.Coordination

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        """What was kept, then the brokers that are announced now."""
        self._check()
        kept = self._store.keeper.changes()
        yield from (change for change in kept if kinds is None or change.kind in kinds)
        if kinds is None or "broker" in kinds:
            for node_id, (_, _, value) in self._store.brokers.items():
                yield MetadataChange("broker", str(node_id), value)

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._check()
        self._commit(changes)

    def _commit(self, changes: Sequence[MetadataChange]) -> None:
        losing, self._lost_answer = self._lost_answer, None
        if losing != "request":
            self._store.commit(changes)
        if losing is not None:
            self.make_unsure()
            raise KafkaStorageError("the coordination did not answer; try again when it is back")

    def kept(self) -> int:
        self._check()
        return self._store.keeper.kept()

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        """Only the controller's; what ends with sessions is left out, and the term kept."""
        self._check()
        if self._store.controller is not self:
            raise StaleControllerEpoch("another broker is the controller, and replaces what is kept")
        self._store.replace(changes)

    def close(self) -> None:
        """The session ends at once, as one does that says goodbye."""
        if self._state != "ended":
            self._state = "ended"
            self._waiting.clear()
            self._store.end(self)

    # ------------------------------------------------------------ contracts.SharedCoordination

    def renew(self) -> StoreSession:
        self.close()
        return self._store.session()

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        self._check()
        return self._store.announce(self, node_id, value)

    def campaign(self, node_id: int) -> int | None:
        self._check()
        return self._store.elect(self, node_id)

    def resign(self) -> None:
        self._store.depose(self)

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        self._check()
        if self._store.controller is not self or term != self._store.term:
            raise StaleControllerEpoch(f"term {term} is over, the controller's is {self._store.term}")
        self._commit(changes)

    def broker_epochs(self) -> Mapping[int, int]:
        self._check()
        return {node_id: epoch for node_id, (_, epoch, _) in self._store.brokers.items()}

    def read_controller(self) -> tuple[int | None, int]:
        self._check()
        return self._store.controller_id, self._store.term

    def partition_count(self, topic: str) -> int | None:
        self._check()
        last = None
        for change in self._store.keeper.changes():
            if change.kind == "topic" and change.key == topic:
                last = change.value
        return None if last is None else len(last["partitions"])

    def read_topic_settings(self, topics: Collection[str], answered: SettingsAnswered) -> None:
        facts = self.topic_settings(topics)
        self.queue(lambda events: answered(facts))  # after what was committed before

    def topic_settings(self, topics: Collection[str]) -> list[MetadataChange]:
        """The "config" facts of topics as they are kept now."""
        self._check()
        found: dict[str, Mapping[str, Any] | None] = dict.fromkeys(f"topic:{topic}" for topic in topics)
        for change in self._store.keeper.changes():
            if change.kind == "config" and change.key in found:
                found[change.key] = change.value
        return [MetadataChange("config", key, value) for key, value in found.items()]

    def subscribe(self, events: SessionEvents, wakeup: Callable[[], object]) -> None:
        """Subscribe; the first notification names the controller."""
        self._check()
        self._events, self._wakeup = events, wakeup
        self._waiting.clear()
        node_id, term = self._store.controller_id, self._store.term
        self.queue(lambda events: events.on_controller(node_id, term))

    def poll(self) -> None:
        events = self._events
        while self._waiting and events is not None:
            self._waiting.popleft()(events)

    # ------------------------------------------------------------ the store's, and faults

    def queue(self, notification: Notification) -> None:
        if self._events is not None and self._state != "ended":
            self._waiting.append(notification)
            if self._wakeup is not None:
                self._wakeup()

    def expire(self) -> None:
        """End the session of a broker that was silent too long; the broker learns it when it runs again."""
        if self._state == "ended":
            return
        self._waiting.append(lambda events: events.on_session("lost"))
        self._state = "ended"
        self._store.end(self)
        if self._wakeup is not None:
            self._wakeup()

    def make_unsure(self) -> None:
        """The connection is lost; whether the session lives on is not known here."""
        if self._state == "alive":
            self._state = "unsure"
            self._waiting.append(lambda events: events.on_session("unsure"))
            if self._wakeup is not None:
                self._wakeup()

    def lose_answer(self, *, stored: bool) -> None:
        """The next commit has no answer, and the session is unsure then; `stored`: whether it arrived."""
        self._lost_answer = "answer" if stored else "request"

    def make_sure(self) -> None:
        """The connection is there again, and the session lives."""
        if self._state == "unsure":
            self._state = "alive"
            self.queue(lambda events: events.on_session("back"))

    @property
    def state(self) -> str:
        return self._state

    def _check(self) -> None:
        if self._state == "ended":
            raise KafkaStorageError("the session with the coordination is over; begin a new one")
        if self._state == "unsure":
            raise KafkaStorageError("the connection to the coordination is lost; try again when it is back")
