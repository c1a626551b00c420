"""What every coordination that several brokers share keeps to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from logkernel.cluster.processes.coordination import CoordinationServer
from logkernel.cluster.processes.session import SocketSession
from logkernel.cluster.store import Session, SharedStore
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleControllerEpoch

from .test_coordination import ListLog, open_memory

T = TypeVar("T")
Heard = list[tuple[object, ...]]
ORDERS = MetadataChange("config", "topic:orders", {"retention.ms": "1"})
FACT: Mapping[str, object] = {"listeners": {"PLAINTEXT": ["h", 1]}, "rack": None}
SOON_S = 20.0


class World(Protocol):
    """A coordination, as its brokers and a fault reach it."""

    def session(self) -> SharedCoordination: ...

    def settle(self, session: SharedCoordination) -> None:
        """Return when the session can `hear` all that happened."""
        ...

    def expire(self, session: SharedCoordination) -> None:
        """End the session, as that of a broker that was silent for too long; it knows when this returns."""
        ...


# ---------------------------------------------------------------- the implementations


def shared_local(log: ListLog) -> SharedStore:
    from logkernel.plugins.transport import local

    found = local.logkernel_coordination("local", lambda: log)
    assert found is not None
    return SharedStore(found)


class InProcess:
    def __init__(self, store: SharedStore) -> None:
        self._store = store

    def session(self) -> Session:
        return self._store.session()

    def settle(self, session: SharedCoordination) -> None:
        """What happens is told at once."""

    def expire(self, session: SharedCoordination) -> None:
        assert isinstance(session, Session)
        session.expire()


class OverSocket:
    """The store runs on a thread of its own, as it does in another process."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._store = shared_local(ListLog())
        self._server = CoordinationServer(self._store, self._folder)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._ends: dict[int, tuple[SocketSession, Session]] = {}

    def __enter__(self) -> OverSocket:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(SOON_S)
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(SOON_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SOON_S)
        self._loop.close()
        for session, _ in self._ends.values():
            session.close()

    def session(self) -> SocketSession:
        made = SocketSession(self._folder, 60_000)
        self._ends[id(made)] = made, self._store.sessions[-1]
        return made

    def settle(self, session: SharedCoordination) -> None:
        """Events come before the answer to a later call."""
        with contextlib.suppress(KafkaStorageError):
            session.broker_epochs()

    def expire(self, session: SharedCoordination) -> None:
        async def expire() -> None:
            self._ends[id(session)][1].expire()

        asyncio.run_coroutine_threadsafe(expire(), self._loop).result(SOON_S)
        with pytest.raises(KafkaStorageError):  # the first call waits for the end of the connection
            session.broker_epochs()


@pytest.fixture(params=["local", "memory", "socket"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "local":
        yield InProcess(shared_local(ListLog()))
    elif request.param == "memory":
        yield InProcess(SharedStore(open_memory()))
    else:
        with OverSocket(tmp_path) as served:
            yield served


class Broker:
    """A session, and what it tells."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.session = world.session()
        self.rung = threading.Event()
        self._heard: Heard = []
        self.session.subscribe(self, self.rung.set)
        self.heard()

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        self._heard.append(("changes", *((each.kind, each.key, each.value) for each in changes)))

    def on_controller(self, node_id: int | None, term: int) -> None:
        self._heard.append(("controller", node_id, term))

    def on_session(self, state: str) -> None:
        self._heard.append(("session", state))

    def heard(self) -> Heard:
        """What it tells now."""
        self.world.settle(self.session)
        self._heard.clear()
        self.session.hear()
        return list(self._heard)

    def campaign(self, node_id: int) -> int:
        term = self.session.campaign(node_id)
        assert term is not None
        return term


# ---------------------------------------------------------------- the contract


def test_all_hear_of_a_commit_in_the_same_order_and_once(world: World) -> None:
    one, two = Broker(world), Broker(world)
    assert isinstance(one.session, SharedCoordination)
    two.rung.clear()
    one.session.commit([ORDERS])
    assert two.rung.wait(SOON_S)
    two.session.commit([MetadataChange("config", "topic:orders", None)])
    expected = [
        ("changes", ("config", "topic:orders", {"retention.ms": "1"})),
        ("changes", ("config", "topic:orders", None)),
    ]
    assert one.heard() == expected
    assert two.heard() == expected
    assert one.heard() == []


def test_a_new_session_finds_what_was_kept(world: World) -> None:
    one = Broker(world)
    one.session.commit([ORDERS])
    epoch = one.session.announce(1, FACT)
    two = world.session()
    assert [each for each in two.changes() if each.kind not in ("controller_epoch", "broker_epoch")] == [
        ORDERS, MetadataChange("broker", "1", FACT),
    ]  # fmt: skip
    assert two.broker_epochs() == {1: epoch}
    assert two.kept() >= 1


def test_the_first_name_of_a_cluster_stays(world: World) -> None:
    one, two = Broker(world), Broker(world)
    one.session.commit([MetadataChange("cluster", "", {"id": "first"})])
    two.session.commit([MetadataChange("cluster", "", {"id": "second"})])
    named = [each.value for each in two.session.changes() if each.kind == "cluster"]
    assert named == [{"id": "first"}]


def test_a_broker_is_there_as_long_as_its_session(world: World) -> None:
    one, two = Broker(world), Broker(world)
    first = one.session.announce(1, FACT)
    assert two.heard() == [("changes", ("broker", "1", FACT))]
    with pytest.raises(DuplicateBrokerRegistration, match=r"broker 1.*another node\.id"):
        two.session.announce(1, FACT)
    one.session.close()
    assert two.heard() == [("changes", ("broker", "1", None))]
    assert two.session.broker_epochs() == {}
    assert Broker(world).session.announce(1, FACT) > first


def test_one_is_controller_and_terms_grow(world: World) -> None:
    one, two = Broker(world), Broker(world)
    term = one.campaign(1)
    assert two.session.campaign(2) is None
    assert two.heard() == [("controller", 1, term)]
    one.session.close()
    assert two.heard() == [("controller", None, term)]
    assert two.campaign(2) > term


def test_who_was_deposed_commits_nothing(world: World) -> None:
    one, two = Broker(world), Broker(world)
    term = one.campaign(1)
    one.session.commit_as_controller([ORDERS], term)
    one.session.resign()
    later = two.campaign(2)
    two.heard()
    with pytest.raises(StaleControllerEpoch):
        one.session.commit_as_controller([ORDERS], term)
    with pytest.raises(StaleControllerEpoch):
        two.session.commit_as_controller([ORDERS], term)
    with pytest.raises(StaleControllerEpoch):
        one.session.replace([])
    assert two.heard() == []
    two.session.commit_as_controller([ORDERS], later)
    assert len(two.heard()) == 1


def test_a_controller_replaces_what_is_kept_and_brokers_stay(world: World) -> None:
    one = Broker(world)
    one.session.announce(1, FACT)
    one.campaign(1)
    for _ in range(10):
        one.session.commit([ORDERS])
    one.session.replace([ORDERS])
    assert one.session.kept() < 10
    found = [each for each in one.session.changes() if each.kind in ("config", "broker")]
    assert found == [ORDERS, MetadataChange("broker", "1", FACT)]


def test_a_session_that_expired_is_told_and_refused(world: World) -> None:
    one, two = Broker(world), Broker(world)
    one.session.announce(1, FACT)
    term = one.campaign(1)
    one.heard(), two.heard()
    world.expire(one.session)
    with pytest.raises(KafkaStorageError, match="begin a new one"):
        one.session.commit([ORDERS])
    with pytest.raises(KafkaStorageError):
        one.session.commit_as_controller([ORDERS], term)
    assert one.heard() == [("session", "lost")]
    assert two.heard() == [("changes", ("broker", "1", None)), ("controller", None, term)]
    one.session.resign()
    one.session.close()
    assert two.heard() == []


# ---------------------------------------------------------------- of the store alone


def test_a_session_that_is_unsure_commits_nothing_until_it_is_back() -> None:
    world = InProcess(shared_local(ListLog()))
    one, two = Broker(world), Broker(world)
    assert isinstance(one.session, Session)
    one.session.make_unsure()
    with pytest.raises(KafkaStorageError, match="try again"):
        one.session.commit([ORDERS])
    two.session.commit([ORDERS])
    one.session.make_sure()
    assert [row[0] for row in one.heard()] == ["session", "changes", "session"]
    one.session.commit([ORDERS])


def test_a_term_outlives_the_process() -> None:
    log = ListLog()
    first = shared_local(log)
    one = Broker(InProcess(first))
    term, epoch = one.campaign(1), one.session.announce(1, FACT)
    one.session.replace([ORDERS, MetadataChange("broker", "1", FACT)])
    first.close()
    log.closed = False
    two = Broker(InProcess(shared_local(log)))
    kept = list(two.session.changes())
    assert ORDERS in kept
    assert not [each for each in kept if each.kind == "broker"]
    assert two.campaign(2) > term
    assert two.session.announce(1, FACT) > epoch
