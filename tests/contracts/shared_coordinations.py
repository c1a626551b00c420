"""Coordinations that brokers share, each with what a test needs to break it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Protocol

import zookeepers

from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import Coordination, MetadataChange, SharedCoordination
from logkernel.errors import KafkaStorageError

FACT: Mapping[str, object] = {"listeners": {"PLAINTEXT": ["h", 1]}, "rack": None}
WAIT_S = 20.0


def renewed(session: SharedCoordination) -> SharedCoordination:
    """A session in place of this one, which a coordination that does not answer at once gives later."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return session.renew()
        except KafkaStorageError:
            if time.monotonic() > deadline:
                raise


class Events:
    """Notes what a session tells."""

    def __init__(self, session: SharedCoordination) -> None:
        self.session = session
        self.heard: list[tuple[object, ...]] = []
        self.rings = 0
        session.subscribe(self, self.wakeup)

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        self.heard.append(("changes", *((each.kind, each.key, each.value) for each in changes)))

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.heard.append(("controller", node_id, term))

    def on_session(self, state: str) -> None:
        self.heard.append(("session", state))

    def wakeup(self) -> None:
        self.rings += 1

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Hear until that holds."""
        deadline = time.monotonic() + WAIT_S
        self.session.poll()
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not heard, but {self.heard}")
            time.sleep(0.002)
            self.session.poll()

    def until_heard(self, *wanted: tuple[object, ...]) -> list[tuple[object, ...]]:
        """Hear until each was heard, in a group of changes or alone; returns what was heard since the last time."""
        self.until(lambda: all(self.has(each) for each in wanted), repr(wanted))
        heard, self.heard = self.heard, []
        return heard

    def has(self, wanted: tuple[object, ...]) -> bool:
        return any(wanted == row or (row[0] == "changes" and wanted in row[1:]) for row in self.heard)

    def last(self, kind: str, key: str) -> object:
        """The value of a fact that was heard last."""
        rows = [each for row in self.heard if row[0] == "changes" for each in row[1:]]
        found = [each[2] for each in rows if isinstance(each, tuple) and each[:2] == (kind, key)]
        assert found, f"nothing was heard of {kind} {key}, but {self.heard}"
        return found[-1]


class Shared(Protocol):
    """One coordination."""

    def session(self) -> SharedCoordination: ...
    def expire(self, session: SharedCoordination) -> None:
        """Its broker is not heard of for too long."""

    def cut(self, session: SharedCoordination) -> None:
        """Lose the connection."""

    def heal(self, session: SharedCoordination) -> None: ...
    def lose_answer(self, session: SharedCoordination, *, stored: bool) -> None:
        """The next commit has no answer."""


class InProcess:
    """`logkernel.cluster.store`."""

    def __init__(self, keeper: Coordination) -> None:
        self.store = SharedStore(keeper)

    def session(self) -> StoreSession:
        return self.store.session()

    def expire(self, session: SharedCoordination) -> None:
        assert isinstance(session, StoreSession)
        session.expire()

    def cut(self, session: SharedCoordination) -> None:
        assert isinstance(session, StoreSession)
        session.make_unsure()

    def heal(self, session: SharedCoordination) -> None:
        assert isinstance(session, StoreSession)
        session.make_sure()

    def lose_answer(self, session: SharedCoordination, *, stored: bool) -> None:
        assert isinstance(session, StoreSession)
        session.lose_answer(stored=stored)


class OverZooKeeper:
    """The plugin `zookeeper`, each session through a proxy of its own."""

    def __init__(self, server: zookeepers.ZooKeeper, chroot: str, session_timeout_ms: int, stack: ExitStack) -> None:
        self._server = server
        self._chroot = chroot
        self._timeout_ms = session_timeout_ms
        self._stack = stack
        self.proxies: dict[int, zookeepers.Proxy] = {}

    def session(self) -> SharedCoordination:
        from logkernel.plugins.transport.zookeeper.options import Address, Options
        from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession

        proxy = zookeepers.Proxy(self._server.port)
        self._stack.callback(proxy.close)
        made = ZooKeeperSession(
            Options(Address.parse(proxy.address + self._chroot), session_timeout_ms=self._timeout_ms)
        )
        self._stack.callback(made.close)
        self.proxies[id(made)] = proxy
        return made

    def expire(self, session: SharedCoordination) -> None:
        self.proxies[id(session)].cut()

    def cut(self, session: SharedCoordination) -> None:
        self.proxies[id(session)].cut()

    def heal(self, session: SharedCoordination) -> None:
        self.proxies[id(session)].heal()

    def lose_answer(self, session: SharedCoordination, *, stored: bool) -> None:
        proxy = self.proxies[id(session)]
        proxy.swallow() if stored else proxy.cut()


CHROOTS = count(1)


@contextmanager
def over_zookeeper(server: zookeepers.ZooKeeper, session_timeout_ms: int = 2_000) -> Iterator[OverZooKeeper]:
    """In a chroot of its own."""
    with ExitStack() as stack:
        yield OverZooKeeper(server, f"/test-{next(CHROOTS)}/kafka", session_timeout_ms, stack)
