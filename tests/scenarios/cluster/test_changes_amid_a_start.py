"""What is set while a broker starts, after it has read settings and before it has joined, is not missed."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest
import zookeepers

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.network import ProcessNetwork
from logkernel.cluster.store import SharedStore
from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.controller.image import acl_key, quota_key
from logkernel.kernel import Kernel
from logkernel.vocabulary import Acl, AclOperation, ResourceType

SOON_S = 180.0
CHROOTS = count(1)
NewSession = Callable[[], SharedCoordination]
RULE = acl_key(Acl(ResourceType.TOPIC, 3, "orders", "User:ann", "*", AclOperation.READ, 2))
QUOTA = quota_key((("user", "ann"),))
BEFORE = (
    MetadataChange("config", "topic:kept", {"retention.ms": "1"}),
    MetadataChange("config", "topic:gone", {"retention.ms": "1"}),
)
AMID = (
    MetadataChange("config", "topic:kept", {"retention.ms": "2"}),
    MetadataChange("config", "topic:gone", None),
    MetadataChange("config", "topic:new", {"retention.ms": "3"}),
    MetadataChange("config", "broker:", {"log.retention.ms": "4"}),
    MetadataChange("acl", RULE, {}),
    MetadataChange("quota", QUOTA, {"request_percentage": 5.0}),
)


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


class Delayed:
    """A session in which somebody else sets something right after the settings were read."""

    def __init__(self, session: SharedCoordination, set_amid: Callable[[], object]) -> None:
        self._session = session
        self._set_amid = set_amid

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        found = list(self._session.changes(kinds))
        if kinds is not None and "acl" in kinds:
            self._set_amid()
        return iter(found)


@pytest.fixture(params=["a store in this process", "ZooKeeper"])
def new_session(request: pytest.FixtureRequest) -> Iterator[NewSession]:
    with ExitStack() as stack:
        if request.param != "ZooKeeper":
            yield SharedStore(Kernel().coordination("memory", no_log)).session
            return
        server: zookeepers.ZooKeeper = request.getfixturevalue("patient_zookeeper")
        from logkernel.plugins.transport.zookeeper.options import Address, Options
        from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession

        address = Address.parse(f"{server.address}/amid-{next(CHROOTS)}")

        def new() -> SharedCoordination:
            made = ZooKeeperSession(Options(address, 18_000))
            stack.callback(made.close)
            return made

        yield new


def until(holds: Callable[[], bool], broker: Broker, what: str) -> None:
    deadline = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < deadline, what
        broker.step()
        time.sleep(0.002)


def commit(session: SharedCoordination, changes: Sequence[MetadataChange]) -> None:
    for change in changes:
        session.commit([change])


def test_what_is_set_between_the_read_of_a_start_and_its_join_is_heard(new_session: NewSession) -> None:
    """News came from the join on: what fell between was not known until the broker began a new session."""
    other = new_session()
    commit(other, BEFORE)
    set_amid = [lambda: commit(other, AMID)]
    access = ClusterAccess(
        lambda: Delayed(new_session(), lambda: set_amid.pop()() if set_amid else None),
        ProcessNetwork(lambda call: None).transport(1),
    )
    broker = build(None, ("log.dirs=/data", "node.id=1", "log.cleaner.enable=false"), in_memory=True, access=access)
    broker.start()
    try:
        assert not set_amid
        image = broker.metadata.image
        assert image.topic_config("kept") == {"retention.ms": "1"}, "the change came after the read"
        broker.governance.join()
        until(lambda: RULE in dict.fromkeys(map(acl_key, image.acls)), broker, "the rule is known")
        until(lambda: bool(image.quotas), broker, "the quota is known")
        found = {name: image.topic_config(name) for name in ("kept", "gone", "new")}
        assert found == {"kept": {"retention.ms": "2"}, "gone": {}, "new": {"retention.ms": "3"}}
        assert broker.runtime.config.get("log.retention.ms") == 4
    finally:
        broker.abandon()
