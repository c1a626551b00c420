"""What administrators ask of the controller by nodes of ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logkernel.contracts import MetadataChange
from logkernel.errors import CorruptMessage
from logkernel.plugins.transport.zookeeper.asked import KINDS, LEADERS, MOVES, Asked
from logkernel.plugins.transport.zookeeper.plan import Delete, Operation, Set, Tree

TOPIC_ID = "7d7d6d32-6a7d-4fb8-a4ec-3fe6f1f2a1b1"


def asks(*rows: Any) -> bytes:
    return json.dumps({"version": 1, "partitions": list(rows)}).encode()


def move(index: int, *replicas: int) -> dict[str, Any]:
    return {"topic": "t", "partition": index, "replicas": list(replicas)}


def topic(*rows: list[Any]) -> MetadataChange:
    return MetadataChange("topic", "t", {"id": TOPIC_ID, "internal": False, "partitions": list(rows)})


@pytest.fixture
def tree() -> Tree:
    """With topic t of two partitions on brokers 1 and 2."""
    made = Tree(1, 7)
    made.plan([topic([[1, 2], [1, 2], 1, 0, 0], [[2, 1], [2, 1], 2, 0, 0])])
    return made


def read(tree: Tree, kind: str, data: bytes | None, version: int = 0) -> list[tuple[str, Any]]:
    return [(change.key, change.value) for change in tree.asked[kind].read(data, version, tree.is_moving)]


def written(tree: Tree, *changes: MetadataChange) -> list[Operation]:
    """To the nodes by which was asked."""
    return [each for stage in tree.plan(changes) for each in stage if each.path in KINDS.values()]


def begun(index: int, epoch: int) -> MetadataChange:
    """From the brokers 1 and 2 to the brokers 3 and 1."""
    return MetadataChange("partition", f"t:{index}", {"row": [[3, 1, 2], [1, 2], 1, epoch, epoch, [3], [2]]})


def ended(index: int, epoch: int) -> MetadataChange:
    return MetadataChange("partition", f"t:{index}", {"row": [[3, 1], [3, 1], 3, epoch, epoch]})


def test_what_is_asked_for_is_told_once(tree: Tree) -> None:
    asked = asks(move(0, 3, 1))
    assert read(tree, "asked_move", asked) == [("t:0", {"replicas": [3, 1]})]
    assert read(tree, "asked_move", asked) == []
    assert read(tree, "asked_move", asks(move(0, 3, 1), move(1, 3)), 1) == [("t:1", {"replicas": [3]})]
    assert read(tree, "asked_leader", asks({"topic": "t", "partition": 1})) == [("t:1", {"replicas": []})]


def test_what_is_asked_for_again_after_it_was_done_is_told_again(tree: Tree) -> None:
    read(tree, "asked_leader", asks({"topic": "t", "partition": 1}))
    assert written(tree, MetadataChange("asked_leader", "t:1", None)) == [Delete(LEADERS, 0)]
    assert read(tree, "asked_leader", None) == []
    assert read(tree, "asked_leader", asks({"topic": "t", "partition": 1})) == [("t:1", {"replicas": []})]


def test_a_move_stays_in_the_node_until_it_is_over(tree: Tree) -> None:
    read(tree, "asked_move", asks(move(0, 3, 1), move(1, 3, 1)), 4)
    assert written(tree, begun(0, 1)) == []
    assert written(tree, begun(1, 1)) == []
    (left,) = written(tree, ended(0, 2))
    assert isinstance(left, Set)
    assert (left.path, json.loads(left.data or b""), left.version) == (MOVES, json.loads(asks(move(1, 3, 1))), 4)
    assert written(tree, ended(1, 2)) == [Delete(MOVES, 5)]


def test_a_move_that_is_refused_goes_from_the_node(tree: Tree) -> None:
    read(tree, "asked_move", asks(move(0, 3, 1), {"topic": "none", "partition": 9, "replicas": [1]}))
    (left,) = written(tree, MetadataChange("asked_move", "none:9", None), begun(0, 1))
    assert isinstance(left, Set)
    assert json.loads(left.data or b"") == json.loads(asks(move(0, 3, 1)))


def test_a_controller_that_finds_a_move_under_way_sees_its_end(tree: Tree) -> None:
    tree.plan([begun(0, 1)])
    assert read(tree, "asked_move", asks(move(0, 3, 1))) == [("t:0", {"replicas": [3, 1]})]
    assert written(tree, ended(0, 2)) == [Delete(MOVES, 0)]


def test_a_move_of_a_topic_that_is_deleted_meanwhile_is_over(tree: Tree) -> None:
    tree.plan([begun(0, 1)])
    read(tree, "asked_move", asks(move(0, 3, 1)))
    tree.plan([MetadataChange("topic", "t", None)])
    assert written(tree, MetadataChange("gone", TOPIC_ID, None)) == [Delete(MOVES, 0)]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"x", b"[]", b"{}", asks(5), asks({"topic": 1, "partition": 0, "replicas": [1]}), asks(move(-1, 1)),
        asks(move(0, -1)), asks(move(0, 1, 1)), asks({"topic": "t", "partition": 0}), asks(move(1 << 30, 1)),
    ],
)  # fmt: skip
def test_a_node_that_is_none_of_kafkas_asks_for_nothing(tree: Tree, data: bytes) -> None:
    asked = Asked("asked_move", {"t:0": (3, 1)})
    with pytest.raises(CorruptMessage, match=MOVES):
        asked.read(data, 1, tree.is_moving)
    assert asked.rows == {}
