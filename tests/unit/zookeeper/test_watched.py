"""What is heard of nodes that are not as they should be, and of areas that cannot be heard."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest
from logkernel.plugins.transport.zookeeper import asked, layout, watched
from logkernel.plugins.transport.zookeeper.connection import Connection, Node, Unanswered
from logkernel.plugins.transport.zookeeper.plan import Operation, Tree
from logkernel.plugins.transport.zookeeper.watched import OwnTerm, WatchedAreas

BROKERS = layout.BROKER_IDS
CHANGE = f"{layout.FACT_CHANGES}/change_0000000001"
CHANGE_LAST = f"{layout.FACT_CHANGES}/change_0000009999"
FACT = layout.fact_path("rack", "7")


class FakeZooKeeper:
    """Nodes by path, as `Connection` reads them."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {
            layout.CONTROLLER: layout.controller_data(1, 0),
            layout.CONTROLLER_EPOCH: b"1",
        }
        self.unanswered: set[str] = set()
        self.rings: list[float] = []
        self.ctimes: dict[str, int] = {}
        self.removed: list[str] = []

    def node(self, path: str) -> Node | None:
        if path in self.unanswered:
            raise Unanswered("no answer")
        data = self.nodes.get(path)
        if data is None:
            return None
        return cast("Node", SimpleNamespace(data=data, czxid=1, mzxid=1, ctime=self.ctimes.get(path, 0), version=0))

    def get(self, path: str, watch: Any = None) -> Node | None:
        return self.node(path)

    exists = get

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return [self.node(path) for path in paths]

    def get_watched(self, paths: Sequence[str], watch: Any) -> list[Node | None]:
        return self.get_many(paths)

    def children(self, path: str, watch: Any = None) -> list[str]:
        self.node(path)
        return [name.removeprefix(f"{path}/") for name in self.nodes if name.startswith(f"{path}/")]

    def multi(self, operations: Sequence[Operation]) -> None:
        self.removed += [operation.path for operation in operations]

    def wakeup_in(self, seconds: float) -> None:
        self.rings.append(seconds)


class Events:
    def __init__(self) -> None:
        self.facts: dict[tuple[str, str], Any] = {}
        self.controllers: list[tuple[int | None, int]] = []
        self.refuses: str | None = None
        self.breaks: str | None = None

    def on_controller(self, node_id: int | None, term: int) -> None:
        self.controllers.append((node_id, term))

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        if any(change.kind == self.refuses for change in changes):
            raise InvalidRequest("not now")
        if any(change.kind == self.breaks for change in changes):
            raise ValueError("not foreseen")
        self.facts.update({(change.kind, change.key): change.value for change in changes})

    def on_session(self, state: str) -> None:
        raise AssertionError("a session tells this")


class World:
    def __init__(self) -> None:
        self.zk, self.events = FakeZooKeeper(), Events()
        self.watched = WatchedAreas(cast("Connection", self.zk), OwnTerm(number=1), lambda: None, lambda why: None)
        self.zk.nodes[f"{BROKERS}/1"] = layout.broker_data({"listeners": {"A": ["h", 1]}, "rack": None}, 0)

    def poll(self) -> None:
        self.watched.poll(self.events)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: found[0])
    return found


@pytest.mark.parametrize("path", [layout.CONTROLLER, layout.CONTROLLER_EPOCH, FACT])
def test_a_node_that_is_none_of_kafkas_hides_no_other_area(
    world: World, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    world.zk.nodes.update({CHANGE: layout.dump({"kind": "rack", "key": "7"}), path: b"\xff"})
    world.watched.begin()
    world.poll()
    assert ("broker", "1") in world.events.facts
    assert "node left out" in caplog.text
    assert not world.zk.rings
    assert world.watched.own_term.number == 1


def test_a_bad_epoch_is_no_new_term(world: World) -> None:
    world.watched.begin()
    world.poll()
    world.zk.nodes[layout.CONTROLLER_EPOCH] = b"x"
    world.watched.all_again()
    world.poll()
    assert world.events.controllers == [(1, 1)]


def test_an_area_that_cannot_be_heard_is_heard_again_after_longer_and_longer(
    world: World, now_s: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    world.zk.nodes.update({CHANGE: layout.dump({"kind": "rack", "key": "7"}), FACT: b'{"rack": "r"}'})
    world.events.refuses = "rack"
    world.watched.begin()
    world.poll()
    assert ("broker", "1") in world.events.facts
    for expected in ([1.0], [1.0, 2.0], [1.0, 2.0, 4.0]):
        assert world.zk.rings == expected
        assert not world.watched.has_fired
        world.poll()
        assert world.zk.rings == expected
        now_s[0] += expected[-1]
        assert world.watched.has_fired
        world.poll()
    world.events.refuses = None
    now_s[0] += watched.LONGEST_WAIT_S
    world.poll()
    assert world.events.facts["rack", "7"] == {"rack": "r"}
    assert not world.watched.has_fired


def test_a_change_is_heard_again_when_what_it_tells_of_had_no_answer(world: World) -> None:
    world.zk.nodes.update({CHANGE: layout.dump({"kind": "rack", "key": "7"}), FACT: b'{"rack": "r"}'})
    world.zk.unanswered.add(FACT)
    world.watched.begin()
    with pytest.raises(Unanswered):
        world.poll()
    world.zk.unanswered.clear()
    world.poll()
    assert world.events.facts["rack", "7"] == {"rack": "r"}


def test_what_administrators_ask_for_by_nodes_is_told_to_the_controller_alone(world: World) -> None:
    moves = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [2, 3]}]}
    world.zk.nodes.update({asked.MOVES: layout.dump(moves), asked.LEADERS: b"x"})
    world.watched.begin()
    world.poll()
    assert ("asked_move", "t:0") not in world.events.facts, "the controller has read nothing in this term yet"
    world.watched.own_term.tree = Tree(1, 1)
    world.watched.queues_again()
    world.poll()
    assert world.events.facts["asked_move", "t:0"] == {"replicas": [2, 3]}
    assert not world.zk.rings, "a node that is none of Kafka's is passed over"
    world.events.facts.clear()
    world.watched.own_term.leave()
    world.watched.all_again()
    world.poll()
    assert ("asked_move", "t:0") not in world.events.facts


def test_an_area_that_fails_as_nobody_foresaw_hides_no_other(
    world: World, now_s: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    world.zk.nodes.update({CHANGE: layout.dump({"kind": "rack", "key": "7"}), FACT: b'{"rack": "r"}'})
    world.events.breaks = "rack"
    world.watched.begin()
    world.poll()
    assert ("broker", "1") in world.events.facts
    assert "area=facts" in caplog.text
    world.events.breaks = None
    now_s[0] += watched.LONGEST_WAIT_S
    world.poll()
    assert world.events.facts["rack", "7"] == {"rack": "r"}


def test_a_notification_with_a_number_of_its_own_hides_no_later_one(world: World) -> None:
    """A client that made the node may give it any number, and later ones have smaller numbers then."""
    world.watched.begin()
    world.zk.nodes[f"{layout.FACT_CHANGES}/change_{2**63 - 1}"] = b"{}"
    world.poll()
    world.zk.nodes.update({CHANGE: layout.dump({"kind": "rack", "key": "7"}), FACT: b'{"rack": "r"}'})
    world.watched.all_again()
    world.poll()
    assert world.events.facts["rack", "7"] == {"rack": "r"}


def test_some_old_notifications_are_removed_at_once(world: World) -> None:
    world.zk.nodes.update({f"{layout.FACT_CHANGES}/change_{number:010}": b"{}" for number in range(1_000)})
    world.zk.ctimes[CHANGE_LAST] = 2 * watched.KEPT_MS
    world.watched.begin()
    world.zk.nodes[CHANGE_LAST] = b"{}"
    world.poll()
    assert len(world.zk.removed) == watched.PURGED
