"""What operators ask: DescribeGroups, ListGroups, DeleteGroups."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from logkernel.vocabulary import Record


def describe(world: Any, name: str = "g", **more: Any) -> Any:
    return world.ask(DescribeGroupsRequest([name], **more)).groups[0]


def test_describe_in_every_state(world: Any) -> None:
    unknown = describe(world)
    assert (unknown.error_code, unknown.group_state, unknown.group_id) == (69, "Dead", "g")
    assert describe(world, include_authorized_operations=True).authorized_operations == -(2**31), "nothing can be done"
    assert world.ask(DescribeGroupsRequest(["g"]), frozenset()).groups[0].error_code == 0
    (one, two), _ = world.stable(2)
    stable = describe(world, include_authorized_operations=True)
    assert (stable.error_code, stable.group_state, stable.protocol_type, stable.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    assert stable.authorized_operations == 3400
    assert {row.member_id: row.member_assignment for row in stable.members} == {one: one.encode(), two: two.encode()}
    assert {(row.client_id, row.client_host) for row in stable.members} == {("c", "/10.0.0.1")}
    assert all(row.member_metadata for row in stable.members)
    world.join(one)
    preparing = describe(world)
    assert (preparing.group_state, preparing.protocol_data) == ("PreparingRebalance", "")
    assert not any(row.member_metadata for row in preparing.members)
    assert {row.member_assignment for row in preparing.members} == {one.encode(), two.encode()}, "they work by it still"
    assert preparing.authorized_operations == -(2**31)
    world.join(two)
    assert describe(world).group_state == "CompletingRebalance"
    world.leave(one)
    world.leave(two)
    assert (describe(world).group_state, describe(world).members) == ("Empty", [])


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], ["g", "simple"]),
        (["stable"], [], ["g"]),
        (["Stable", "Empty"], ["Classic"], ["g", "simple"]),
        (["Dead"], [], []),
        ([], ["consumer"], []),
    ],
)
def test_groups_are_listed_by_state_and_type(
    world: Any, states: list[str], types: list[str], expected: list[str]
) -> None:
    world.stable(1)
    world.group_id = "simple"
    world.commit(1)
    rows = world.ask(ListGroupsRequest(states, types)).groups
    assert sorted(row.group_id for row in rows) == expected
    for row in rows:
        told = (row.protocol_type, row.group_state, row.group_type)
        assert told == (("", "Empty", "classic") if row.group_id == "simple" else ("consumer", "Stable", "classic"))


def test_a_group_is_deleted_only_when_it_is_empty(world: Any) -> None:
    def delete() -> int:
        return int(world.ask(DeleteGroupsRequest(["g"])).results[0].error_code)

    assert delete() == 69
    (one,), generation = world.stable(1)
    world.commit(5, one, generation)
    assert delete() == 68
    world.leave(one)
    world.fail_next = 7
    assert delete() == 15
    assert world.fetch() == 5
    assert delete() == 0
    assert world.group is None
    assert world.fetch() == -1
    assert delete() == 69
    assert [record.value for record in world.log[-2:]] == [None, None]
    world.crash()
    assert world.machine.groups == {}


def test_a_simple_group_is_deleted_with_its_offsets(world: Any) -> None:
    world.commit(5)
    assert world.ask(DeleteGroupsRequest(["g", "g"])).results[0].error_code == 0
    assert world.group is None
    assert [record.value for record in world.log[1:]] == [None, None]


def test_a_group_whose_last_offset_is_deleted_is_there_until_a_sweep(make_world: Any) -> None:
    """As in Kafka: DescribeGroups knows it, DeleteGroups ends it, and so does the next sweep."""

    def bare() -> Any:
        world = make_world({})
        world.commit(5)
        topics = [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
        assert world.ask(OffsetDeleteRequest("g", topics)).topics[0].partitions[0].error_code == 0
        assert describe(world).group_state == "Empty"
        return world

    world = bare()
    world.crash()
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 0
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 69
    world = bare()
    world.after(600_000)
    assert world.group is None
    world.crash()
    assert world.machine.groups == {}


def test_an_id_that_a_share_group_has_is_taken(world: Any) -> None:
    """As Kafka answers; a tombstone frees it."""
    share_group = b"\x00\x0b\x00\x01g"
    join = JoinGroupRequest("g", 10_000, protocol_type="consumer")
    beat = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    world.machine.replay(Record(share_group, b"\x00\x00"))
    assert world.ask(join).error_code == 23
    assert world.ask(beat).error_code == 69
    assert world.commit(1) == 69
    assert world.group is None
    world.machine.replay(Record(share_group, None))
    assert world.commit(1) == 0
