"""What every coordination that several brokers share keeps to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from logkernel.cluster.store import Session, SharedStore
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleControllerEpoch

from .test_coordination import ListLog, open_memory

Heard = list[tuple[object, ...]]


class Events:
    """Notes what a session tells."""

    def __init__(self) -> None:
        self.heard: Heard = []
        self.rings = 0

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        self.heard.append(("changes", *((each.kind, each.key, each.value) for each in changes)))

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.heard.append(("controller", node_id, term))

    def on_session(self, state: str) -> None:
        self.heard.append(("session", state))

    def ring(self) -> None:
        self.rings += 1

    def of(self, session: Session) -> Heard:
        """What it tells now."""
        self.heard.clear()
        session.hear()
        return list(self.heard)


def shared_local() -> SharedStore:
    from logkernel.plugins.transport import local

    found = local.logkernel_coordination("local", ListLog)
    assert found is not None
    return SharedStore(found)


def shared_memory() -> SharedStore:
    return SharedStore(open_memory())


Make = Callable[[], SharedStore]
EVERY = pytest.mark.parametrize("make", [shared_local, shared_memory], ids=["local", "memory"])
ORDERS = MetadataChange("config", "topic:orders", {"retention.ms": "1"})
FACT: Mapping[str, object] = {"listeners": {"PLAINTEXT": ["h", 1]}, "rack": None}


def listening(store: SharedStore) -> tuple[Session, Events]:
    session, events = store.session(), Events()
    session.subscribe(events, events.ring)
    session.hear()
    return session, events


@EVERY
def test_all_hear_of_a_commit_in_the_same_order_and_once(make: Make) -> None:
    store = make()
    (one, at_one), (two, at_two) = listening(store), listening(store)
    assert isinstance(one, SharedCoordination)
    one.commit([ORDERS])
    two.commit([MetadataChange("config", "topic:orders", None)])
    expected = [
        ("changes", ("config", "topic:orders", {"retention.ms": "1"})),
        ("changes", ("config", "topic:orders", None)),
    ]
    assert at_one.of(one) == expected
    assert at_two.of(two) == expected
    assert at_one.of(one) == []
    assert at_two.rings >= 2


@EVERY
def test_a_new_session_finds_what_was_kept(make: Make) -> None:
    store = make()
    one, _ = listening(store)
    one.commit([ORDERS])
    epoch = one.announce(1, FACT)
    two = store.session()
    assert [each for each in two.changes() if each.kind not in ("controller_epoch", "broker_epoch")] == [
        ORDERS, MetadataChange("broker", "1", FACT),
    ]  # fmt: skip
    assert two.broker_epochs() == {1: epoch}


@EVERY
def test_a_broker_is_there_as_long_as_its_session(make: Make) -> None:
    store = make()
    (one, _), (two, at_two) = listening(store), listening(store)
    first = one.announce(1, FACT)
    assert at_two.of(two) == [("changes", ("broker", "1", FACT))]
    with pytest.raises(DuplicateBrokerRegistration, match=r"broker 1.*another node\.id"):
        two.announce(1, FACT)
    one.close()
    assert at_two.of(two) == [("changes", ("broker", "1", None))]
    assert two.broker_epochs() == {}
    assert listening(store)[0].announce(1, FACT) > first


@EVERY
def test_one_is_controller_and_terms_grow(make: Make) -> None:
    store = make()
    (one, _), (two, at_two) = listening(store), listening(store)
    term = one.campaign(1)
    assert term is not None
    assert two.campaign(2) is None
    assert at_two.of(two) == [("controller", 1, term)]
    one.close()
    assert at_two.of(two) == [("controller", None, term)]
    later = two.campaign(2)
    assert later is not None
    assert later > term


@EVERY
def test_who_was_deposed_commits_nothing(make: Make) -> None:
    store = make()
    (one, _), (two, at_two) = listening(store), listening(store)
    term = one.campaign(1)
    assert term is not None
    one.commit_as_controller([ORDERS], term)
    one.resign()
    later = two.campaign(2)
    assert later is not None
    at_two.of(two)
    with pytest.raises(StaleControllerEpoch):
        one.commit_as_controller([ORDERS], term)
    with pytest.raises(StaleControllerEpoch):
        two.commit_as_controller([ORDERS], term)
    with pytest.raises(StaleControllerEpoch):
        one.replace([])
    assert at_two.of(two) == []
    two.commit_as_controller([ORDERS], later)
    assert len(at_two.of(two)) == 1


@EVERY
def test_a_session_that_expired_is_told_and_refused(make: Make) -> None:
    store = make()
    (one, at_one), (two, at_two) = listening(store), listening(store)
    one.announce(1, FACT)
    term = one.campaign(1)
    assert term is not None
    at_one.of(one), at_two.of(two)
    one.expire()
    with pytest.raises(KafkaStorageError, match="begin a new one"):
        one.commit([ORDERS])
    with pytest.raises(KafkaStorageError):
        one.commit_as_controller([ORDERS], term)
    assert at_one.of(one) == [("session", "lost")]
    assert at_two.of(two) == [("changes", ("broker", "1", None)), ("controller", None, term)]


@EVERY
def test_a_session_that_is_unsure_commits_nothing_until_it_is_back(make: Make) -> None:
    store = make()
    (one, at_one), (two, _) = listening(store), listening(store)
    one.make_unsure()
    with pytest.raises(KafkaStorageError, match="try again"):
        one.commit([ORDERS])
    two.commit([ORDERS])
    one.make_sure()
    assert [row[0] for row in at_one.of(one)] == ["session", "changes", "session"]
    one.commit([ORDERS])


def test_a_term_outlives_the_process() -> None:
    log = ListLog()

    def opened() -> SharedStore:
        from logkernel.plugins.transport import local

        found = local.logkernel_coordination("local", lambda: log)
        assert found is not None
        return SharedStore(found)

    first = opened()
    one, _ = listening(first)
    term, epoch = one.campaign(1), one.announce(1, FACT)
    assert term is not None
    one.replace([ORDERS, MetadataChange("broker", "1", FACT)])
    first.close()
    log.closed = False
    second = opened()
    two, _ = listening(second)
    kept = list(two.changes())
    assert ORDERS in kept
    assert not [each for each in kept if each.kind == "broker"]
    later = two.campaign(2)
    assert later is not None
    assert later > term
    assert two.announce(1, FACT) > epoch
