"""Static membership (KIP-345): members with a name of their own keep their place."""

from __future__ import annotations

from typing import Any

import pytest

NONE, UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, FENCED = 0, 25, 27, 82


@pytest.fixture
def pair(world: Any) -> tuple[Any, str, str]:
    """A Stable group of two static members, the leader first."""
    first, second = world.join(instance="i1"), world.join(instance="i2")
    world.to(6_000)
    one, two = world.answers[first].member_id, world.answers[second].member_id
    assert world.answers[first].leader == one
    assert one.startswith("i1-")
    world.sync(one, 1, {one: b"1", two: b"2"})
    return world, one, two


def test_no_member_id_is_asked_for(world: Any) -> None:
    ticket = world.join(instance="i1")
    world.to(3_000)
    assert world.answers[ticket].error_code == NONE
    assert [row.group_instance_id for row in world.answers[ticket].members] == ["i1"]


def test_a_follower_comes_back_without_a_round(pair: Any) -> None:
    world, one, two = pair
    again = world.answers[world.join(instance="i2")]
    assert (again.error_code, again.generation_id, again.leader, again.skip_assignment) == (NONE, 1, one, False)
    assert again.member_id != two
    assert world.state == "Stable"
    assert world.answers[world.sync(again.member_id, 1, instance="i2")].assignment == b"2"
    assert world.beat(one, 1) == NONE
    assert world.beat(two, 1, "i2") == FENCED
    assert world.answers[world.sync(two, 1, instance="i2")].error_code == FENCED
    assert world.answers[world.join(two, instance="i2")].error_code == FENCED
    assert world.leave(two, "i2") == FENCED
    assert world.beat(two, 1) == UNKNOWN_MEMBER
    world.crash()
    assert world.beat(again.member_id, 1, "i2") == NONE, "the new id is kept"


def test_a_leader_comes_back_and_is_told_to_skip_the_assignment(pair: Any) -> None:
    world, one, two = pair
    again = world.answers[world.join(instance="i1")]
    assert again.leader == again.member_id != one
    assert again.skip_assignment is True
    assert {row.member_id for row in again.members} == {again.member_id, two}
    assert world.group.leader == again.member_id
    assert world.answers[world.sync(again.member_id, 1, instance="i1")].assignment == b"1"


def test_a_leader_that_cannot_be_told_takes_itself_for_a_follower(pair: Any, old: frozenset[str]) -> None:
    world, one, _ = pair
    again = world.answers[world.join(instance="i1", capabilities=old)]
    assert (again.leader, again.members, again.skip_assignment) == (one, [], False)
    assert world.group.leader == again.member_id
    assert world.state == "Stable"


def test_a_return_that_changes_the_protocol_begins_a_round(world: Any) -> None:
    both = {"range": b"", "sticky": b""}
    first = world.join(instance="i1", protocols=both)
    second = world.join(instance="i2", protocols=both)
    world.to(6_000)
    one, two = world.answers[first].member_id, world.answers[second].member_id
    world.sync(one, 1, {one: b"1", two: b"2"})
    again = world.join(instance="i2", protocols={"sticky": b""})
    assert world.state == "PreparingRebalance"
    world.join(one, instance="i1", protocols=both)
    assert (world.answers[again].generation_id, world.answers[again].protocol_name) == (2, "sticky")
    assert two not in world.group.members


def test_a_return_that_cannot_be_kept_leaves_the_old_member(pair: Any) -> None:
    world, _, two = pair
    world.fail_next = 56
    assert world.answers[world.join(instance="i2")].error_code == 16
    assert world.beat(two, 1, "i2") == NONE
    assert world.state == "Stable"


def test_a_return_during_a_round_fences_who_waits(pair: Any) -> None:
    world, one, two = pair
    waiting = world.join(one, instance="i1")  # the leader forces a round
    assert world.state == "PreparingRebalance"
    again = world.join(instance="i1")
    assert (world.answers[waiting].error_code, world.answers[waiting].member_id) == (FENCED, one)
    world.join(two, instance="i2")
    assert world.answers[again].generation_id == 2
    assert world.answers[again].leader == world.answers[again].member_id
    parked = world.sync(two, 2, instance="i2")
    third = world.join(instance="i2")  # while CompletingRebalance: its id is with the leader already
    assert world.answers[parked].error_code == FENCED
    world.join(world.answers[again].member_id, instance="i1")
    assert world.answers[third].generation_id == 3


def test_a_static_member_that_is_late_stays_in(pair: Any) -> None:
    world, one, two = pair
    at = world.mono_ms
    back = world.join(one, instance="i1", rebalance_ms=9_000, session_ms=300_000)
    world.to(at + 9_000)
    for _ in range(12):
        world.beat(two, 1, "i2")
        world.after(5_000)
    assert world.answers[back].generation_id == 2
    assert {row.group_instance_id for row in world.answers[back].members} == {"i1", "i2"}


def test_when_no_static_member_comes_back_nothing_is_decided(pair: Any) -> None:
    world, one, two = pair
    _, dynamic = world.enter()
    world.after(1_000)
    assert world.state == "PreparingRebalance"
    world.leave(next(member for member in world.group.members if member not in (one, two)))
    assert world.answers[dynamic].error_code == UNKNOWN_MEMBER
    for _ in range(20):
        world.after(4_000)
        assert world.beat(one, 1, "i1") == world.beat(two, 1, "i2") == REBALANCE_IN_PROGRESS
    assert (world.state, world.group.generation) == ("PreparingRebalance", 1)
    world.after(30_000)
    assert world.state == "Empty"


def test_an_operator_removes_a_member_by_its_name(pair: Any) -> None:
    world, one, _ = pair
    assert world.leave("", "nobody") == world.leave() == UNKNOWN_MEMBER
    assert world.leave("", "i2") == NONE
    assert list(world.group.static) == ["i1"]
    assert world.beat(one, 1, "i1") == REBALANCE_IN_PROGRESS


def test_a_commit_under_an_old_id_is_fenced(pair: Any) -> None:
    from logkernel.requests.groups import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    world, _, two = pair
    world.join(instance="i2")
    topics = [OffsetCommitRequestTopic("orders", [OffsetCommitRequestPartition(0, 1)])]
    request = OffsetCommitRequest("g", 1, two, -1, topics, "i2")
    assert world.ask(request).topics[0].partitions[0].error_code == FENCED


def test_a_leader_that_is_late_leads_no_more(pair: Any) -> None:
    world, one, two = pair
    world.enter()
    back = world.join(two, instance="i2", rebalance_ms=5_000, session_ms=300_000)
    while back in world.parked:
        world.after(5_000)
        assert world.beat(one, 1, "i1") in (REBALANCE_IN_PROGRESS, 22)
    assert one in world.group.members
    assert world.answers[back].leader == two


def test_a_member_that_came_back_keeps_all_it_knows(pair: Any) -> None:
    world, _, _ = pair
    again = world.answers[world.join(instance="i2", protocols={"range": b"new", "sticky": b""})]
    assert world.group.members[again.member_id].protocols == {"range": b"new", "sticky": b""}


def test_a_member_that_came_back_is_not_waited_for_under_its_old_id(pair: Any) -> None:
    world, one, two = pair
    assert two in world.group.unsynced
    again = world.answers[world.join(instance="i2")].member_id
    for _ in range(10):
        world.after(9_000)
        assert world.beat(one, 1, "i1") == world.beat(again, 1, "i2") == NONE
