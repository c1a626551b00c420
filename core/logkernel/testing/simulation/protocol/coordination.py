"""The coordination as the cluster's own (`logkernel.cluster.store`), with what goes wrong between it and a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange, SessionEvents
from logkernel.errors import KafkaStorageError
from logkernel.testing.simulation.protocol.network import COORDINATION, Network
from logkernel.testing.simulation.protocol.timeline import Timeline


class Keeper:
    """Keeps the last of each fact, in memory; `contracts.Coordination`. `on_commit` sees each commit."""

    def __init__(self, on_commit: Callable[[Sequence[MetadataChange]], None]) -> None:
        self._facts: dict[tuple[str, str], MetadataChange] = {}
        self._on_commit = on_commit

    def changes(self) -> Iterator[MetadataChange]:
        return iter(list(self._facts.values()))

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        for change in changes:
            self._facts.pop((change.kind, change.key), None)
            if change.kind == "topic":  # it holds its partitions
                for fact in [fact for fact in self._facts if fact[0] == "partition"]:
                    del self._facts[fact]
            self._facts[change.kind, change.key] = change
        self._on_commit(changes)

    def kept(self) -> int:
        return len(self._facts)

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self._facts = {(change.kind, change.key): change for change in changes}

    def close(self) -> None:
        pass


class Coordination:
    """Sessions of a `SharedStore`, each as far as its broker reaches it."""

    def __init__(
        self, timeline: Timeline, network: Network, on_commit: Callable[[Sequence[MetadataChange]], None]
    ) -> None:
        self.timeline = timeline
        self.network = network
        self.store = SharedStore(Keeper(on_commit))
        self.lose_answer_ms = 0
        """The next commit is kept, its answer lost; the session is unsure for so long. 0: no such fault waits."""
        self.before_commit: Callable[[int], bool] = lambda _: True
        """Told who commits as the controller; False: it dies instead."""

    def reaches(self, node: int) -> bool:
        return not self.network.is_cut(node, COORDINATION) and not self.network.is_cut(COORDINATION, node)

    def open(self, events: SessionEvents) -> StoreSession:
        session = self.store.session()
        session.subscribe(events, lambda: None)
        return session

    def end_sessions_of(self, node: int) -> None:
        """A broker that starts ends the session that its last life left (KAFKA-7165)."""
        row = self.store.brokers.get(node)
        if row is not None:
            self.timeline.rare["bounced"] += 1
            row[0].expire()

    def commit(self, node: int, session: StoreSession, changes: Iterable[MetadataChange], term: int) -> None:
        """As the controller. Raises StaleControllerEpoch; KafkaStorageError where nothing is known of the outcome."""
        kept = list(changes)
        if not self.before_commit(node):
            raise KafkaStorageError("the controller dies")
        reached = self.reaches(node)
        if reached or self.timeline.random.random() < 0.5:
            session.commit_as_controller(kept, term)
        if reached and not self.lose_answer_ms:
            return
        self.timeline.rare["answer to a commit lost"] += 1
        session.make_unsure()
        if reached:
            self.timeline.later(self.lose_answer_ms, session.make_sure)
        self.lose_answer_ms = 0
        raise KafkaStorageError("the coordination did not answer")
