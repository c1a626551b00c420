"""Shared coordinations that break a promise: sessions of a store in this process, wrong in one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError
from logkernel.kernel import Kernel
from logkernel.testing.contracts.coordination import ListLog
from logkernel.testing.contracts.shared_coordination import GONE, LATER, ORDERS
from wrong_plugins import Wrong


class Session:
    """A right session but for what its subclass overrides."""

    def __init__(self, session: StoreSession, store: SharedStore) -> None:
        self.right: Any = session
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)


class Deaf(Session):
    def poll(self) -> None:
        """It reports nothing."""


class Backwards(Session):
    """It reports the newest first."""

    def subscribe(self, events: Any, wakeup: Callable[[], object]) -> None:
        heard = events.on_changes

        def on_changes(changes: Any) -> None:
            heard(changes)
            if GONE in changes:
                heard([LATER])

        events.on_changes = on_changes
        self.right.subscribe(events, wakeup)


class Quiet(Session):
    def subscribe(self, events: Any, wakeup: Callable[[], object]) -> None:
        self.right.subscribe(events, lambda: None)


class AllKinds(Session):
    def changes(self, kinds: Any = None) -> Any:
        return self.right.changes()


class Stale(Session):
    """It counts the partitions that it knew at first."""

    def partition_count(self, topic: str) -> int | None:
        return None


class Default(Session):
    """It knows no settings."""

    def read_topic_settings(self, topics: Any, answered: Callable[[Any], object]) -> None:
        facts = [MetadataChange("config", f"topic:{topic}", None) for topic in topics]
        self.right.read_topic_settings(topics, lambda _: answered(facts))


class Overtaking(Session):
    """It reports what a read has overtaken."""

    def subscribe(self, events: Any, wakeup: Callable[[], object]) -> None:
        self.events = events
        self.right.subscribe(events, wakeup)

    def read_topic_settings(self, topics: Any, answered: Callable[[Any], object]) -> None:
        def overtake(facts: Any) -> None:
            answered(facts)
            self.events.on_changes([ORDERS])

        self.right.read_topic_settings(topics, overtake)


class Hasty(Session):
    """It answers at once, as one that waits for its answer would."""

    def read_topic_settings(self, topics: Any, answered: Callable[[Any], object]) -> None:
        answered(self.right.topic_settings(topics))


class Silent(Session):
    def read_topic_settings(self, topics: Any, answered: Callable[[Any], object]) -> None:
        """It never answers."""


class Polite(Session):
    """Whoever comes last has the node id."""

    def announce(self, node_id: int, value: Any) -> int:
        self.store.brokers.pop(node_id, None)
        return int(self.right.announce(node_id, value))


class SameEpoch(Session):
    def announce(self, node_id: int, value: Any) -> int:
        self.right.announce(node_id, value)
        return 1


class Everyone(Session):
    """Each campaign wins."""

    def campaign(self, node_id: int) -> int | None:
        return self.right.campaign(node_id) or 1


class Unaware(Session):
    def read_controller(self) -> tuple[int | None, int]:
        return None, 0


class NotFenced(Session):
    def commit_as_controller(self, changes: Any, term: int) -> None:
        self.right.commit(changes)


class Undead(Session):
    """It commits though it is lost, or unsure."""

    def commit(self, changes: Any) -> None:
        self.store.commit(changes)


class Final(Session):
    def renew(self) -> Any:
        raise KafkaStorageError("no more sessions")


class Sure(Session):
    """A commit without an answer counts as done."""

    def commit(self, changes: Any) -> None:
        try:
            self.right.commit(changes)
        except KafkaStorageError:
            return

    def commit_as_controller(self, changes: Any, term: int) -> None:
        try:
            self.right.commit_as_controller(changes, term)
        except KafkaStorageError:
            return


class Forgetful(Session):
    """After a commit without an answer it shows what it had before."""

    def changes(self, kinds: Any = None) -> Any:
        found = list(self.right.changes(kinds))
        return iter([change for change in found if change.kind != "partition"] if self.store.brokers == {} else found)


class Inventive(Session):
    """It shows what was not stored."""

    def commit_as_controller(self, changes: Any, term: int) -> None:
        try:
            self.right.commit_as_controller(changes, term)
        except KafkaStorageError:
            self.store.keeper.commit(changes)
            raise


def over(kind: type[Session]) -> dict[str, Any]:
    """A suite whose sessions are of that kind, and share a store."""

    def make(suite: Any) -> Any:
        if not hasattr(suite, "store"):
            suite.store = SharedStore(Kernel().coordination("local", ListLog))
        return kind(suite.store.session(), suite.store)

    def lose_answer(suite: Any, session: Any, *, stored: bool) -> None:
        session.right.lose_answer(stored=stored)

    def heal(suite: Any, session: Any) -> None:
        if session.right.state == "unsure":
            session.right.make_sure()

    return {
        "make": make,
        "wait_s": 0.05,
        "expire": lambda suite, session: session.right.expire(),
        "cut": lambda suite, session: session.right.make_unsure(),
        "heal": heal,
        "lose_answer": lose_answer,
    }


NEWS = "test_all_hear_of_a_commit_and_none_of_an_older_value_after_a_newer"
WRONG = [
    Wrong(NEWS, "hears nothing, but never", over(Deaf)),
    Wrong(NEWS, "after the newer .*keep the order of commits", over(Backwards)),
    Wrong(NEWS, "`wakeup` was called 0 times", over(Quiet)),
    Wrong("test_a_new_session_finds_what_was_stored", r"changes\(\{\"config\"\}\) is", over(AllKinds)),
    Wrong("test_partitions_of_a_topic_are_counted_as_they_are_stored", "is None instead of 1", over(Stale)),
    Wrong("test_settings_of_a_topic_are_read_as_they_are_stored", r"read_topic_settings\(\).* is \[", over(Default)),
    Wrong("test_nothing_older_is_heard_after_settings_were_read", "after it has read .*keep the", over(Overtaking)),
    Wrong("test_settings_are_read_without_waiting", "calls back before it returns", over(Hasty)),
    Wrong("test_settings_are_read_without_waiting", "is never answered", over(Silent)),
    Wrong("test_a_session_that_is_unsure_reads_no_settings", "of an unsure session returned None", over(Silent)),
    Wrong("test_a_broker_is_there_as_long_as_its_session", "that another session has returned", over(Polite)),
    Wrong("test_a_broker_that_announces_itself_again_has_a_new_epoch", "larger than all before", over(SameEpoch)),
    Wrong("test_one_is_controller_and_terms_grow", r"campaign\(\) returned 1 though", over(Everyone)),
    Wrong("test_every_session_can_ask_for_the_controller", r"\(None, 0\) instead of \(1, 1\)", over(Unaware)),
    Wrong("test_a_deposed_controller_commits_nothing", "in an old term returned None", over(NotFenced)),
    Wrong("test_a_session_that_expired_is_told_and_refused", "of a lost session returned None", over(Undead)),
    Wrong("test_a_lost_session_is_followed_by_a_new_one", "gives no session in place of", over(Final)),
    Wrong(
        "test_a_session_that_is_unsure_commits_nothing_until_it_is_back",
        "of an unsure session returned None",
        over(Undead),
    ),
    Wrong("test_a_commit_without_an_answer_leaves_the_session_unsure", "without an answer returned None", over(Sure)),
    Wrong(
        "test_a_controller_whose_commit_was_stored_without_an_answer_loads_it",
        "the row of the partition after that is",
        over(Forgetful),
    ),
    Wrong(
        "test_a_controller_whose_commit_was_lost_without_an_answer_does_not_load_it",
        "the row of the partition after that is",
        over(Inventive),
    ),
]
