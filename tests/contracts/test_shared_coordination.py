"""The coordinations that brokers share keep the contract: in a process, over each plain one, between
processes, and over ZooKeeper."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import zookeepers

from logkernel.cluster.processes.coordination import CoordinationServer
from logkernel.cluster.processes.session import SocketSession
from logkernel.cluster.store import SharedStore, StoreSession
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.kernel import Kernel
from logkernel.testing.contracts import SharedCoordinationContract
from logkernel.testing.contracts.coordination import ListLog
from logkernel.testing.contracts.shared_coordination import FACT, ORDERS

CHROOTS = count(1)


def store_over(name: str, log: ListLog) -> SharedStore:
    return SharedStore(Kernel().coordination(name, lambda: log))


class InProcess(SharedCoordinationContract):
    """`logkernel.cluster.store` over a plain coordination."""

    keeper = ""

    @cached_property
    def store(self) -> SharedStore:
        return store_over(self.keeper, ListLog())

    def make(self) -> SharedCoordination:
        return self.store.session()

    def expire(self, session: Any) -> None:
        session.expire()

    def cut(self, session: Any) -> None:
        session.make_unsure()

    def heal(self, session: Any) -> None:
        if session.state == "unsure":
            session.make_sure()

    def lose_answer(self, session: Any, *, stored: bool) -> None:
        session.lose_answer(stored=stored)


class TestLocal(InProcess):
    keeper = "local"


class TestMemory(InProcess):
    keeper = "memory"


class TestProcesses(SharedCoordinationContract):
    """The coordination of another process, over its UNIX socket. A connection that breaks ends its session."""

    @pytest.fixture(autouse=True)
    def _served(self, tmp_path: Path) -> Iterator[None]:
        self.folder = str(tmp_path)
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        self.loop, self.store = loop, store_over("memory", ListLog())
        self.served: dict[int, StoreSession] = {}
        server = CoordinationServer(self.store, self.folder)
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        with ExitStack() as self.stack:
            yield
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def make(self) -> SharedCoordination:
        made = SocketSession(self.folder, 60_000)
        self.stack.callback(made.close)
        self.served[id(made)] = self.store.sessions[-1]
        return made

    def expire(self, session: Any) -> None:
        self.loop.call_soon_threadsafe(self.served[id(session)].expire)


class TestZooKeeper(SharedCoordinationContract):
    """The plugin `zookeeper`, each session through a proxy of its own."""

    wait_s = 60.0

    @pytest.fixture(autouse=True)
    def _in_a_chroot(self, patient_zookeeper: zookeepers.ZooKeeper) -> Iterator[None]:
        self.server = patient_zookeeper
        self.chroot = f"/test-{next(CHROOTS)}/kafka"
        self.proxies: dict[int, zookeepers.Proxy] = {}
        with ExitStack() as self.stack:
            yield

    def make(self) -> SharedCoordination:
        from logkernel.plugins.transport.zookeeper.options import Address, Options
        from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession

        proxy = zookeepers.Proxy(self.server.port)
        self.stack.callback(proxy.close)
        made = ZooKeeperSession(Options(Address.parse(proxy.address + self.chroot), session_timeout_ms=18_000))
        self.stack.callback(made.close)
        self.proxies[id(made)] = proxy
        return made

    def expire(self, session: SharedCoordination) -> None:
        zookeepers.end_session(self.server, self.proxies[id(session)], session)
        self.heal(session)

    def cut(self, session: SharedCoordination) -> None:
        self.proxies[id(session)].cut()

    def heal(self, session: SharedCoordination) -> None:
        self.proxies[id(session)].heal()

    def lose_answer(self, session: SharedCoordination, *, stored: bool) -> None:
        proxy = self.proxies[id(session)]
        proxy.swallow() if stored else proxy.cut()


def test_a_term_outlives_the_process() -> None:
    log = ListLog()
    first = store_over("local", log)
    one = first.session()
    term, epoch = one.campaign(1), one.announce(1, FACT)
    assert term is not None
    one.replace([ORDERS, MetadataChange("broker", "1", FACT)])
    first.close()
    log.closed = False
    two = store_over("local", log).session()
    kept = list(two.changes())
    assert ORDERS in kept
    assert not [each for each in kept if each.kind == "broker"]
    later = two.campaign(2)
    assert later is not None
    assert later > term
    assert two.announce(1, FACT) > epoch
