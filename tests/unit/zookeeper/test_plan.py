"""What a controller writes to ZooKeeper: stages of operations, at the versions that it read."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from logkernel.contracts import MetadataChange
from logkernel.errors import PolicyViolation
from logkernel.plugins.transport.zookeeper.layout import StateNode, TopicNode
from logkernel.plugins.transport.zookeeper.plan import (
    Check,
    Create,
    Delete,
    Operation,
    Set,
    StaleTree,
    StateShadow,
    TopicShadow,
    Tree,
    grouped,
)

ID, OTHER = "7d7d6d32-6a7d-4fb8-a4ec-3fe6f1f2a1b1", "00000000-0000-0000-0000-000000000002"


def topic(*rows: list[Any], topic_id: str = ID, name: str = "t") -> MetadataChange:
    return MetadataChange("topic", name, {"id": topic_id, "internal": False, "partitions": list(rows)})


def row(replicas: list[int], leader: int, leader_epoch: int, epoch: int, *moving: list[int]) -> list[Any]:
    return [replicas, replicas, leader, leader_epoch, epoch, *moving]


def planned(tree: Tree, *changes: MetadataChange) -> list[list[Operation]]:
    return tree.plan(changes)


def one_stage(tree: Tree, *changes: MetadataChange) -> list[Operation]:
    (stage,) = planned(tree, *changes)
    return stage


@pytest.fixture
def tree() -> Tree:
    """Of term 7, with topic t of two partitions."""
    made = Tree(1, 7)
    made.plan([topic(row([1, 2], 1, 0, 0), row([2, 1], 2, 0, 0))])
    return made


def paths(operations: list[Operation]) -> list[str]:
    return [f"{type(each).__name__} {each.path}" for each in operations]


def test_a_new_topic_has_its_settings_first_and_then_all_its_nodes() -> None:
    tree = Tree(1, 7)
    config = MetadataChange("config", "topic:t", {"retention.ms": "1"})
    made = one_stage(tree, topic(row([1], 1, 0, 0)), config)
    assert paths(made) == [
        "Create /config/topics/t", "Create /brokers/topics/t", "Create /brokers/topics/t/partitions",
        "Create /brokers/topics/t/partitions/0", "Create /brokers/topics/t/partitions/0/state",
    ]  # fmt: skip
    assert json.loads(made[0].data or b"")["config"] == {"retention.ms": "1"}  # type: ignore[union-attr]
    state = json.loads(made[-1].data or b"")  # type: ignore[union-attr]
    assert state == {"controller_epoch": 7, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1]}


def test_a_state_is_written_at_the_version_before_its_epoch(tree: Tree) -> None:
    changed = MetadataChange("partition", "t:1", {"row": row([2, 1], 1, 1, 1)})
    (operation,) = one_stage(tree, changed)
    assert operation[0] == "/brokers/topics/t/partitions/1/state"
    assert operation[2] == 0
    (again,) = one_stage(tree, MetadataChange("partition", "t:1", {"row": row([2, 1], 2, 2, 2)}))
    assert again[2] == 1


def test_two_changes_of_a_partition_in_one_commit_follow_each_other(tree: Tree) -> None:
    changes = [MetadataChange("partition", "t:0", {"row": row([1, 2], 1, n, n)}) for n in (1, 2)]
    assert [each[2] for each in one_stage(tree, *changes)] == [0, 1]


def test_rows_of_a_topic_that_did_not_change_are_not_written(tree: Tree) -> None:
    made = one_stage(tree, topic(row([1, 2], 1, 0, 0), row([2, 1], 1, 1, 1)))
    assert paths(made) == ["Set /brokers/topics/t/partitions/1/state"]


def test_a_move_writes_the_assignment_and_who_comes_and_goes(tree: Tree) -> None:
    moving = MetadataChange("partition", "t:0", {"row": row([3, 1, 2], 1, 1, 1, [3], [1])})
    assignment, state = one_stage(tree, moving)
    assert paths([assignment, state]) == ["Set /brokers/topics/t", "Set /brokers/topics/t/partitions/0/state"]
    node = TopicNode.parse(assignment[1], "")  # type: ignore[arg-type]
    assert (node.replicas[0], dict(node.adding), dict(node.removing)) == ((3, 1, 2), {0: (3,)}, {0: (1,)})
    done = one_stage(tree, MetadataChange("partition", "t:0", {"row": row([3, 2], 3, 2, 2)}))
    assert done[0][2] == 1
    assert json.loads(done[0][1] or b"")["adding_replicas"] == {}  # type: ignore[arg-type]


def test_a_topic_that_grows_gets_nodes_for_its_new_partitions(tree: Tree) -> None:
    made = one_stage(tree, topic(row([1, 2], 1, 0, 0), row([2, 1], 2, 0, 0), row([1, 2], 1, 0, 0)))
    assert paths(made) == [
        "Set /brokers/topics/t", "Create /brokers/topics/t/partitions/2", "Create /brokers/topics/t/partitions/2/state"
    ]  # fmt: skip


def test_an_epoch_that_does_not_follow_says_that_the_tree_is_stale(tree: Tree) -> None:
    with pytest.raises(StaleTree, match="t-0 has partition epoch 0"):
        planned(tree, MetadataChange("partition", "t:0", {"row": row([1, 2], 1, 1, 5)}))
    with pytest.raises(StaleTree, match="no partition x-0"):
        planned(tree, MetadataChange("partition", "x:0", {"row": row([1], 1, 1, 1)}))
    with pytest.raises(StaleTree, match="has the id"):
        planned(tree, topic(row([1, 2], 1, 0, 0), topic_id=OTHER))


def test_a_deleted_topic_waits_in_the_queue_until_no_broker_has_it(tree: Tree) -> None:
    deleted = MetadataChange("topic", "t", None)
    assert paths(one_stage(tree, deleted)) == ["Create /admin/delete_topics/t"]
    assert [change.value for change in tree.topic_facts()][-1] is None
    assert planned(tree, deleted) == []
    made = paths(one_stage(tree, MetadataChange("gone", ID, None)))
    assert made[-3:] == ["Delete /brokers/topics/t", "Delete /config/topics/t", "Delete /admin/delete_topics/t"]
    assert len(made) == 2 * 2 + 1 + 3
    assert planned(tree, MetadataChange("gone", ID, None)) == []


def test_a_new_topic_takes_the_name_of_one_in_the_queue(tree: Tree) -> None:
    planned(tree, MetadataChange("topic", "t", None))
    made = one_stage(tree, topic(row([1], 1, 0, 0), topic_id=OTHER))
    kept = [each for each in made if isinstance(each, Create) and each.path == f"/logkernel/facts/gone/{ID}"]
    assert json.loads(kept[0].data or b"") == {"topic": "t", "replicas": [[1, 2], [2, 1]]}
    assert paths(made).index("Delete /admin/delete_topics/t") < paths(made).index("Create /brokers/topics/t")
    assert paths(one_stage(tree, MetadataChange("gone", ID, None))) == [f"Delete /logkernel/facts/gone/{ID}"]
    assert tree.topics.keys() == {"t"}


def test_what_says_that_all_was_done_is_written_last(tree: Tree) -> None:
    incarnation = MetadataChange("incarnation", "1", {"epoch": 9})
    first, last = planned(tree, incarnation, MetadataChange("partition", "t:0", {"row": row([1, 2], 1, 1, 1)}))
    assert paths(first) == ["Set /brokers/topics/t/partitions/0/state"]
    assert paths(last) == ["Create /logkernel/facts/incarnation", "Create /logkernel/facts/incarnation/1"]
    assert paths(one_stage(tree, incarnation)) == ["Set /logkernel/facts/incarnation/1"]
    assert paths(one_stage(tree, MetadataChange("incarnation", "1", None))) == ["Delete /logkernel/facts/incarnation/1"]


def test_producer_ids_and_features_are_written_at_their_versions(tree: Tree) -> None:
    ids = one_stage(tree, MetadataChange("producer_ids", "", {"next": 1000}))
    assert ids == [Set("/latest_producer_id_block", ids[0][1], 0)]  # type: ignore[arg-type]
    assert json.loads(ids[0][1] or b"")["block_end"] == "999"  # type: ignore[arg-type]
    feature = one_stage(tree, MetadataChange("feature", "share.version", {"level": 1}))
    assert feature[0].path == "/feature"
    assert [each[2] for each in one_stage(tree, MetadataChange("feature", "share.version", None))] == [1]


def test_a_partition_without_a_state_is_in_sync_and_waits_for_a_leader() -> None:
    tree = Tree(1, 7)
    states = [StateShadow(has_folder=False), StateShadow(StateNode(2, 4, (2, 9), 6), 3)]
    tree.topics["t"] = TopicShadow(TopicNode(None, ((1, 2), (2, 1))), 5, states, has_folder=True)
    tree.topics["t"].node = TopicNode(UUID(ID), ((1, 2), (2, 1)))
    (fact,) = tree.topic_facts()
    assert fact.value is not None
    assert fact.value["partitions"] == [[[1, 2], [1, 2], -1, -1, -1], [[2, 1], [2], 2, 4, 3]]
    elected = [[1, 2], [1, 2], 1, 0, 0]
    made = one_stage(tree, MetadataChange("partition", "t:0", {"row": elected}))
    assert paths(made) == ["Create /brokers/topics/t/partitions/0", "Create /brokers/topics/t/partitions/0/state"]


def test_multis_are_bounded_in_number_and_bytes() -> None:
    lead = [Check("/controller_epoch", 3)]
    groups = list(grouped([Delete(f"/{i}") for i in range(250)], lead))
    assert [len(group) for group in groups] == [100, 100, 53]
    assert all(group[0] == lead[0] for group in groups)
    large = [Create(f"/{i}", b"x" * 200_000) for i in range(5)]
    assert [len(group) for group in grouped(large)] == [2, 2, 1]
    with pytest.raises(PolicyViolation, match=r"jute\.maxbuffer"):
        list(grouped([Create("/large", b"x" * (1 << 20))]))
    assert list(grouped([], lead)) == []
