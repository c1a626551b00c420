"""The cluster keeps in which rack a broker was, so that groups see its replicas there while it is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.network import ProcessNetwork
from logkernel.cluster.store import SharedStore
from logkernel.contracts import MetadataChange
from logkernel.errors import KafkaStorageError
from logkernel.kernel import Kernel

Start = Callable[..., Broker]
ROW = [[1, 2], [1, 2], 1, 0, 0]
TOPIC = MetadataChange("topic", "t", {"id": str(UUID(int=9)), "internal": False, "partitions": [ROW]})


def no_log() -> Any:
    raise AssertionError("memory keeps no log")


@pytest.fixture
def store() -> SharedStore:
    return SharedStore(Kernel().coordination("memory", no_log))


@pytest.fixture
def start(store: SharedStore) -> Iterator[Start]:
    with ExitStack() as stack:

        def one(node_id: int, rack: str = "") -> Broker:
            settings = [f"node.id={node_id}", "log.cleaner.enable=false", *([f"broker.rack={rack}"] if rack else [])]
            access = ClusterAccess(store.session, ProcessNetwork(lambda call: None).transport(node_id))
            broker = build(None, settings, in_memory=True, access=access)
            stack.callback(broker.abandon)
            broker.start()
            broker.governance.join()
            broker.step()
            broker.metadata.image.apply(TOPIC)
            return broker

        yield one


def written(store: SharedStore) -> list[Any]:
    """What was written of racks, in order."""
    return [change.value for change in store.keeper.changes() if change.kind == "rack"]


def test_a_broker_that_was_not_seen_since_a_restart_is_in_its_rack(start: Start) -> None:
    """It counted as without one, and groups on its partitions got a new epoch, and another when it was back."""
    start(2, "b").governance.close()
    assert start(1, "a").cluster.racks("t") == [["a", "b"]]


def test_a_rack_is_written_where_it_is_another(start: Start, store: SharedStore) -> None:
    for rack in ("b", "b", "c", "", ""):
        start(2, rack).governance.close()
    assert written(store) == [{"rack": "b"}, {"rack": "c"}, None]


def test_a_broker_that_lives_without_a_rack_has_none(start: Start) -> None:
    start(2, "b").governance.close()
    one = start(1, "a")
    one.metadata.image.apply(MetadataChange("broker", "2", {"listeners": {"P": ["h", 1]}, "rack": None}))
    assert one.cluster.racks("t") == [["a"]]


def test_a_broker_joins_though_its_rack_cannot_be_kept(
    start: Start, store: SharedStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start(1)
    keep = store.commit

    def commit(changes: Any) -> None:
        if any(change.kind == "rack" for change in changes):
            raise KafkaStorageError("no answer")
        keep(changes)

    monkeypatch.setattr(store, "commit", commit)
    start(2, "b")
    assert "this broker's rack is not kept until it joins again: rack=b error=no answer" in caplog.text
    assert set(store.brokers) == {1, 2}
