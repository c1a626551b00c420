"""A member that is abandoned says no goodbye."""

from __future__ import annotations

from typing import Any

from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.network import ProcessNetwork
from logkernel.cluster.store import SharedStore
from logkernel.kernel import Kernel


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


def test_an_abandoned_controller_neither_resigns_nor_ends_its_session() -> None:
    store = SharedStore(Kernel().coordination("memory", no_log))
    access = ClusterAccess(store.session, ProcessNetwork(lambda call: None).transport(1))
    broker = build(None, ("log.dirs=/data", "node.id=1", "log.cleaner.enable=false"), in_memory=True, access=access)
    broker.start()
    broker.governance.join()
    broker.step()
    assert store.controller_id == 1
    broker.abandon()
    assert store.controller_id == 1
    assert set(store.brokers) == {1}
    (session,) = store.sessions
    session.close()
    assert store.controller_id is None
