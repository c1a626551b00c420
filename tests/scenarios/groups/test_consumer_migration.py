"""A live group goes from one protocol to the other, and members of one are in a group of the other meanwhile."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from logkernel.plugins.services.groups.consumer import wire
from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest
from logkernel.requests.groups import JoinGroupRequest, JoinGroupRequestProtocol

ILLEGAL_GENERATION, INCONSISTENT, UNKNOWN_MEMBER, REBALANCE, NOT_FOUND, MAX_SIZE = 22, 23, 25, 27, 69, 81
MEMBER_ID_REQUIRED, FENCED_INSTANCE = 79, 82
ALL = [("orders", number) for number in range(4)]


def owning(*numbers: int, topics: tuple[str, ...] = ("orders",)) -> bytes:
    """A subscription of version 1 that says what it owns of `orders`."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    owned = b"\0\6orders" + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">ii", -1, 1) + owned


def assignment(*numbers: int) -> bytes:
    return wire.encode_assignment(1, {"orders": list(numbers)})


def classic_pair(world: Any) -> tuple[str, str]:
    """A Stable classic group of two with the partitions shared."""
    entered = [world.enter(protocols={"range": owning()}, session_ms=10_000) for _ in range(2)]
    world.after(6_000)
    joined = [world.answers.pop(ticket) for _, ticket in entered]
    one, two = (answer.member_id for answer in sorted(joined, key=lambda a: a.member_id != a.leader))
    tickets = [world.sync(two, 1), world.sync(one, 1, {one: assignment(0, 1), two: assignment(2, 3)})]
    assert [world.answers.pop(ticket).error_code for ticket in tickets] == [0, 0]
    return one, two


def rejoin(world: Any, member: str, *held: int, **more: Any) -> tuple[int, list[int]]:
    """JoinGroup and SyncGroup of a classic member: its generation, its partitions."""
    joined = world.answers.pop(world.join(member, protocols={"range": owning(*held)}, session_ms=10_000, **more))
    assert (joined.error_code, joined.protocol_name, joined.members, joined.skip_assignment) == (0, "range", [], False)
    assert joined.leader != joined.member_id
    synced = world.answers.pop(world.sync(joined.member_id, joined.generation_id, instance=more.get("instance")))
    assert synced.error_code == 0
    return joined.generation_id, [number for _, number in wire.decode_assignment(synced.assignment)]


def test_members_are_replaced_one_by_one_there_and_back(world: Any) -> None:
    one, two = classic_pair(world)
    world.commit(5, one, 1)
    new = world.hb("new", 0, "orders")
    assert (new.error_code, new.member_epoch, world.told(new)) == (0, 2, [])
    assert world.group.kind == "consumer"
    assert [world.beat(name, 1) for name in (one, two)] == [REBALANCE, REBALANCE]
    assert rejoin(world, one, 0, 1) == (2, [0, 1])
    assert rejoin(world, two, 2, 3) == (1, [2]), "told to give up one of two"
    assert world.beat(two, 1) == REBALANCE
    assert rejoin(world, two, 2) == (2, [2])
    assert [world.beat(name, 2) for name in (one, two)] == [0, 0]
    assert world.told(world.hb("new", 2)) == [("orders", 3)]
    assert world.state == "Stable"
    assert world.commit(6, one, 2) == 0
    assert world.commit(6, one, 7) == ILLEGAL_GENERATION
    types = world.ask(ConsumerGroupDescribeRequest(["g"])).groups[0].members
    assert sorted(row.member_type for row in types) == [0, 0, 1]
    assert world.leave(one) == 0
    assert world.leave("nobody") == UNKNOWN_MEMBER
    assert world.leave("new") == 0, "operators may remove it by this too"
    assert world.group.kind == "classic"
    assert world.state == "Stable"
    world.after(1)
    assert world.state == "PreparingRebalance"
    assert world.beat(two, world.group.generation) == REBALANCE
    ticket = world.join(two, protocols={"range": owning()}, session_ms=10_000)
    joined = world.answers.pop(ticket)
    assert (joined.error_code, joined.leader, joined.generation_id > 2) == (0, two, True)
    assert world.fetch() == 6


def test_a_round_under_way_ends_with_the_upgrade(world: Any) -> None:
    one, two = classic_pair(world)
    waiting = world.join(one, protocols={"range": owning()})
    assert world.state == "PreparingRebalance"
    assert world.hb("new", 0, "orders").error_code == 0
    assert world.answers.pop(waiting).error_code == REBALANCE
    assert not world.parked
    assert rejoin(world, one)[0] == 2
    assert rejoin(world, two)[0] == 2


def test_a_group_that_awaits_its_assignment_can_go_too(world: Any) -> None:
    one, two = classic_pair(world)
    tickets = [world.join(name, protocols={"range": owning()}) for name in (one, two)]
    follower = two if world.group.leader == one else one
    waiting = world.sync(follower, 2)
    assert world.state == "CompletingRebalance"
    assert world.hb("new", 0, "orders").error_code == 0
    assert world.answers.pop(waiting).error_code == REBALANCE
    assert [world.answers.pop(ticket).error_code for ticket in tickets] == [0, 0]


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_a_group_may_have_to_stay_classic(make_world: Any, policy: str) -> None:
    world = make_world({"group.consumer.migration.policy": policy})
    one, _ = classic_pair(world)
    assert world.hb("new", 0, "orders").error_code == NOT_FOUND
    assert (world.state, world.beat(one, 1)) == ("Stable", 0)


def test_a_group_of_another_kind_stays_classic(world: Any) -> None:
    _, ticket = world.enter(kind="connect")
    world.after(3_000)
    assert world.answers.pop(ticket).error_code == 0
    assert world.hb("new", 0, "orders").error_code == NOT_FOUND
    assert world.state == "CompletingRebalance"


def test_a_consumer_group_may_have_to_stay_one(make_world: Any) -> None:
    world = make_world({"group.consumer.migration.policy": "upgrade"})
    one, _ = classic_pair(world)
    world.hb("new", 0, "orders")
    world.hb("new", -1)
    assert world.group.kind == "consumer"
    assert world.beat(one, 1) == REBALANCE


def test_an_empty_group_is_of_whatever_protocol_comes(world: Any) -> None:
    one, two = classic_pair(world)
    world.commit(7, one, 1)
    world.leave(one)
    world.leave(two)
    assert world.hb("new", 0, "orders").error_code == 0
    assert world.group.kind == "consumer"
    world.hb("new", -1)
    assert world.state == "Empty"
    classic_pair_again = world.enter(protocols={"range": owning()})
    world.after(3_000)
    assert world.answers.pop(classic_pair_again[1]).error_code == 0
    assert (world.group.kind, world.fetch()) == ("classic", 7)


def test_a_downgrade_is_followed_by_a_round_after_a_crash_too(world: Any) -> None:
    one, _ = classic_pair(world)
    world.hb("new", 0, "orders")
    rejoin(world, one)
    world.hb("new", -1)
    assert world.group.kind == "classic"
    world.crash()
    assert world.state == "PreparingRebalance"


def test_classic_members_have_to_come_back_in_time(world: Any) -> None:
    one, two = classic_pair(world)
    world.hb("new", 0, "orders")
    rejoin(world, two)
    for _ in range(70):
        world.after(1_000)
        world.hb("new", world.group.consumer.members["new"].epoch)
        assert world.beat(two, world.group.consumer.members[two].epoch) in (0, REBALANCE)
        if one in world.group.consumer.members:
            assert world.beat(one, 1) == REBALANCE
            if world.beat(two, world.group.consumer.members[two].epoch) == REBALANCE:
                rejoin(world, two)
        else:
            break
    assert world.beat(one, 1) == UNKNOWN_MEMBER


def test_a_classic_member_that_never_syncs_is_out(world: Any) -> None:
    world.hb("new", 0, "orders")
    asked = world.answers.pop(world.join(protocols={"range": owning()}, rebalance_ms=8_000))
    assert asked.error_code == MEMBER_ID_REQUIRED
    joined = world.answers.pop(world.join(asked.member_id, protocols={"range": owning()}, rebalance_ms=8_000))
    assert joined.error_code == 0
    world.after(8_000)
    assert world.sync(joined.member_id, joined.generation_id) in world.answers
    assert list(world.group.consumer.members) == ["new"]


def test_a_silent_classic_member_is_out_after_its_own_session(world: Any) -> None:
    _, two = classic_pair(world)
    world.hb("new", 0, "orders")
    world.after(9_999)
    world.beat(two, 1)
    world.after(1)
    assert set(world.group.consumer.members) == {two, "new"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"protocol_type": "connect"}, INCONSISTENT),
        ({"member_id": "m9", "group_instance_id": "i9"}, UNKNOWN_MEMBER),
    ],
)
def test_joins_that_are_refused(world: Any, change: dict[str, str], code: int) -> None:
    world.hb("new", 0, "orders")
    ticket = world.join("m1", protocols={"range": owning()})
    assert world.answers.pop(ticket).error_code == 0
    request = JoinGroupRequest("g", 10_000, "m2", "consumer", [], 60_000)
    for name, value in change.items():
        setattr(request, name, value)
    request.protocols = [JoinGroupRequestProtocol("range", owning())]
    assert world.ask(request).error_code == code
    request = JoinGroupRequest("g", 10_000, "m2", "consumer", [], 60_000)
    request.protocols = [JoinGroupRequestProtocol("range", b"\0\1\0\0\0\7")]
    assert world.ask(request).error_code == INCONSISTENT
    request.protocols = [JoinGroupRequestProtocol("other", owning())]
    assert world.ask(request).error_code == INCONSISTENT, "the classic member there does not know it"


def test_a_static_member_changes_its_protocol_there_and_back(world: Any) -> None:
    world.hb("m1", 0, "orders", instance="i1")
    world.hb("m2", 0, "orders", instance="i2")
    ticket = world.join(instance="i1", protocols={"range": owning()}, session_ms=10_000)
    joined = world.answers.pop(ticket)
    assert (joined.error_code, world.group.kind) == (0, "consumer")
    assert world.hb("m1", 1, instance="i1").error_code == FENCED_INSTANCE
    back = world.hb("m3", 0, "orders", instance="i1")
    assert back.error_code == 0
    assert {member.is_classic for member in world.group.consumer.members.values()} == {False}
    for instance in ("i1", "i2"):
        ticket = world.join(instance=instance, protocols={"range": owning()}, session_ms=10_000)
        assert world.answers.pop(ticket).error_code == 0
    assert world.group.kind == "classic", "the last consumer came back as a classic member"
    assert set(world.group.static) == {"i1", "i2"}
    world.after(1)
    assert world.state == "PreparingRebalance"


def test_a_failed_append_leaves_the_group_as_it_was(world: Any) -> None:
    one, two = classic_pair(world)
    world.fail_next = 7
    assert world.hb("new", 0, "orders").error_code == 15
    assert (world.group.kind, world.beat(one, 1), world.beat(two, 1)) == ("classic", 0, 0)
