"""Groups of the new protocol: who comes, stays and goes, and what each is told. All times in ms."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MemberIdentity,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

INVALID_REQUEST, UNSUPPORTED_VERSION, UNKNOWN_MEMBER, NOT_FOUND, MAX_SIZE = 42, 35, 25, 69, 81
FENCED_INSTANCE, FENCED_EPOCH, UNRELEASED_INSTANCE, UNSUPPORTED_ASSIGNOR, STALE_EPOCH = 82, 110, 111, 112, 113
INVALID_REGEX = 128
ALL = [("orders", number) for number in range(4)]


def parts(*numbers: int) -> list[tuple[str, int]]:
    return [("orders", number) for number in numbers]


def describe(world: Any) -> Any:
    return world.ask(ConsumerGroupDescribeRequest(["g"], True)).groups[0]


def settle(world: Any, *members: str) -> dict[str, tuple[int, list[tuple[str, int]]]]:
    """Let members beat, and give up what they are told to, until all is Stable: member → (epoch, partitions)."""
    known = {name: (0, list[tuple[str, int]]()) for name in members}
    for name in members:
        answer = world.hb(name, 0, "orders")
        known[name] = answer.member_epoch, world.told(answer)
    for _ in range(10):
        world.after(1_000)
        for name, (epoch, held) in known.items():
            answer = world.hb(name, epoch, held=held)
            told = world.told(answer)
            known[name] = answer.member_epoch, held if told is None else told
    assert world.state == "Stable"
    return known


def test_one_member_from_join_to_leave(world: Any) -> None:
    answer = world.hb("m1", 0, "orders")
    assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (
        0,
        "m1",
        2,
        5_000,
    )
    assert world.told(answer) == ALL
    assert world.state == "Stable"
    assert world.told(world.hb("m1", 2, held=ALL)) is None
    size = len(world.log)
    assert world.told(world.hb("m1", 2)) is None
    assert len(world.log) == size, "a heartbeat that changes nothing is not kept"
    assert world.hb("m1", -1).member_epoch == -1
    assert world.state == "Empty"
    assert world.group.consumer.epoch == 3


def test_partitions_move_when_they_are_given_up_and_not_before(world: Any) -> None:
    world.hb("m1", 0, "orders")
    second = world.hb("m2", 0, "orders")
    assert (second.member_epoch, world.told(second)) == (2, []), "the next assignment is a second away"
    assert world.state == "Assigning"
    world.after(1_000)
    second = world.hb("m2", 2, held=[])
    assert (second.member_epoch, world.told(second)) == (3, None)
    assert world.state == "Reconciling"
    first = world.hb("m1", 2)
    assert (first.member_epoch, world.told(first)) == (2, parts(0, 1))
    assert world.told(world.hb("m2", 3)) is None, "still held"
    assert world.told(world.hb("m1", 2, held=ALL)) is None
    assert world.told(world.hb("m2", 3)) is None, "still held"
    first = world.hb("m1", 2, held=parts(0, 1))
    assert (first.member_epoch, world.told(first)) == (3, None)
    assert world.told(world.hb("m2", 3)) == parts(2, 3)
    assert world.state == "Stable"
    row = describe(world)
    assert (row.group_state, row.group_epoch, row.assignment_epoch, row.assignor_name) == ("Stable", 3, 3, "uniform")
    assert [(m.member_id, m.member_epoch, m.member_type, m.client_host) for m in row.members] == [
        ("m1", 3, 1, "/10.0.0.1"),
        ("m2", 3, 1, "/10.0.0.1"),
    ]
    assert [m.assignment for m in row.members] == [m.target_assignment for m in row.members]
    assert row.authorized_operations == 3400


def test_one_that_does_not_give_up_in_time_is_fenced(world: Any) -> None:
    world.hb("m1", 0, "orders", rebalance_ms=20_000)
    world.hb("m2", 0, "orders")
    world.after(1_000)
    world.hb("m2", 2)
    world.hb("m1", 2)
    for _ in range(19):
        world.after(1_000)
        assert world.hb("m1", 2, held=ALL).error_code == 0
        world.hb("m2", 3)
    world.after(1_000)
    assert world.hb("m1", 2, held=ALL).error_code == UNKNOWN_MEMBER
    assert world.told(world.hb("m2", 3)) == ALL


def test_a_silent_member_is_fenced(world: Any) -> None:
    known = settle(world, "m1", "m2")
    for _ in range(9):
        world.after(5_000)
        answer = world.hb("m1", known["m1"][0])
    assert (answer.member_epoch, sorted(world.told(answer) or ())) == (4, ALL)
    assert world.hb("m2", known["m2"][0]).error_code == UNKNOWN_MEMBER


def test_two_that_expire_in_one_turn_leave_one_epoch_behind(world: Any) -> None:
    settle(world, "m1", "m2", "m3")
    epoch = world.group.consumer.epoch
    world.after(60_000)
    assert world.state == "Empty"
    assert world.group.consumer.epoch == epoch + 1


@pytest.mark.parametrize("epoch", [0, 2, 3, 4, 7])
def test_epochs_that_are_believed(world: Any, epoch: int) -> None:
    """The member's own; the one before, from one that holds no more than it may; 0, from one that begins anew."""
    known = settle(world, "m1", "m2")
    assert known["m1"][0] == 3
    previous = world.group.consumer.members["m1"].previous_epoch
    answer = world.hb("m1", epoch, "orders", held=[] if epoch == 0 else known["m1"][1])
    if epoch in (0, 3, previous):
        assert (answer.error_code, answer.member_epoch) == (0, 3)
    else:
        assert answer.error_code == FENCED_EPOCH
    assert world.hb("m1", previous - 1 or 9, held=known["m1"][1]).error_code == FENCED_EPOCH
    assert world.hb("m1", previous, held=ALL).error_code == (0 if previous == 3 else FENCED_EPOCH)


def test_a_lost_answer_does_no_harm(world: Any) -> None:
    world.hb("m1", 0, "orders")
    world.after(1_000)
    world.add_topic("more", 2)
    lost = world.hb("m1", 2, "orders", "more", held=ALL)
    assert lost.member_epoch == 3
    again = world.hb("m1", 2, "orders", "more", held=ALL, rebalance_ms=60_000)
    assert (again.member_epoch, world.told(again)) == (3, [*ALL, ("more", 0), ("more", 1)])


def test_what_is_not_read_any_more_is_given_up_before_the_next_assignment(world: Any) -> None:
    world.hb("m1", 0, "orders", "other")
    world.hb("m2", 0, "orders", "other")
    answer = world.hb("m1", 2, "orders", held=[*ALL, ("other", 0), ("other", 1)])
    assert world.told(answer) == ALL
    assert world.state == "Assigning"


def test_topics_come_grow_and_go(world: Any) -> None:
    assert world.told(world.hb("m1", 0, "later")) == []
    world.after(1_000)
    world.add_topic("later", 2)
    assert world.told(world.hb("m1", 2)) == [("later", 0), ("later", 1)]
    world.after(1_000)
    world.add_topic("later", 3)
    assert world.told(world.hb("m1", 3)) == [("later", number) for number in range(3)]
    world.commit(7, "m1", 4, topic="later")
    world.after(1_000)
    world.drop_topic("later")
    assert world.told(world.hb("m1", 4)) == []
    assert world.told(world.hb("m1", 4, held=[])) is None
    assert world.group.consumer.members["m1"].epoch == 5
    assert "later" not in world.group.offsets


def test_replicas_that_move_to_other_racks_give_a_new_target(world: Any) -> None:
    world.hb("m1", 0, "orders")
    world.topics.partition_racks["orders"] = [frozenset({"a"})] * 4
    world.add_topic("orders", 4)
    world.after(1_000)
    assert world.hb("m1", 2).member_epoch == 3
    world.add_topic("orders", 4)
    assert world.hb("m1", 3).member_epoch == 3, "they are where they were"


def test_a_topic_that_is_not_subscribed_to_changes_nothing(world: Any) -> None:
    world.hb("m1", 0, "orders")
    size = len(world.log)
    world.add_topic("elsewhere", 9)
    world.hb("m1", 2)
    assert len(world.log) == size


# ---------------------------------------------------------------- requests that are refused


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"group_id": ""}, INVALID_REQUEST),
        ({"member_id": ""}, INVALID_REQUEST),
        ({"instance_id": ""}, INVALID_REQUEST),
        ({"rack_id": " "}, INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, INVALID_REQUEST),
        ({"topic_partitions": None}, INVALID_REQUEST),
        ({"subscribed_topic_names": None}, INVALID_REQUEST),
        ({"subscribed_topic_names": ["x" * 40_000]}, INVALID_REQUEST),
        ({"member_epoch": -3}, INVALID_REQUEST),
        ({"member_epoch": -2}, INVALID_REQUEST),
        ({"member_epoch": -2, "instance_id": "i"}, NOT_FOUND),
        ({"member_epoch": -1}, NOT_FOUND),
        ({"member_epoch": 4}, NOT_FOUND),
        ({"server_assignor": "best"}, UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "("}, INVALID_REGEX),
        ({"subscribed_topic_regex": r"(?=no)re2"}, INVALID_REGEX),
    ],
)
def test_a_malformed_first_heartbeat_is_refused(world: Any, change: dict[str, Any], code: int) -> None:
    whole: dict[str, Any] = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 9,
        "subscribed_topic_names": ["orders"],
        "topic_partitions": [],
    }
    answer = world.ask(ConsumerGroupHeartbeatRequest(**(whole | change)))
    assert (answer.error_code, bool(answer.error_message)) == (code, True)
    assert world.log == []
    assert world.machine.groups == {}


def test_an_old_client_is_given_its_id(world: Any) -> None:
    request = ConsumerGroupHeartbeatRequest(
        "g", "", 0, rebalance_timeout_ms=9, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    answer = world.ask(request, frozenset())
    assert (answer.error_code, answer.member_id) == (0, "id1")


def test_the_protocol_can_be_off(world: Any) -> None:
    world.topics.group_version = 0
    assert world.hb("m1", 0, "orders").error_code == UNSUPPORTED_VERSION


def test_an_operator_who_names_an_instance_finds_it_in_the_answer(world: Any) -> None:
    """Java's Admin looks for the very row that it asked for."""
    world.hb("m1", 0, "orders", instance="i1")
    answer = world.ask(LeaveGroupRequest(world.group_id, members=[MemberIdentity("", "i1"), MemberIdentity("", "i2")]))
    assert [(row.member_id, row.group_instance_id, row.error_code) for row in answer.members] == [
        ("", "i1", 0),
        ("", "i2", UNKNOWN_MEMBER),
    ]
    assert world.group.consumer.members == {}


def test_a_group_has_times_of_its_own(world: Any) -> None:
    """Set by IncrementalAlterConfigs of the group; the next heartbeat goes by it."""
    own = world.topics.group_settings
    own["g", "consumer.heartbeat.interval.ms"] = 300
    assert world.hb("m1", 0, "orders").heartbeat_interval_ms == 300
    own["g", "consumer.session.timeout.ms"] = 2_000
    assert world.hb("m1", 2).heartbeat_interval_ms == 300
    world.after(1_900)
    assert "m1" in world.group.consumer.members
    world.after(200)
    assert world.group.consumer.members == {}
    own["g", "consumer.session.timeout.ms"] = 45_000
    own["g", "consumer.assignment.interval.ms"] = 30_000
    assert world.told(world.hb("m2", 0, "orders")) == []
    world.after(26_000)
    assert world.told(world.hb("m2", 0, "orders")) == []
    world.after(2_000)
    assert world.told(world.hb("m2", 0, "orders")) == ALL


def test_unknown_members_and_too_many(make_world: Any) -> None:
    world = make_world({"group.consumer.max.size": 1})
    world.hb("m1", 0, "orders")
    assert world.hb("m2", 0, "orders").error_code == MAX_SIZE
    assert world.hb("m1", 0, "orders").error_code == 0
    assert world.hb("m1", 2).error_code == 0
    assert world.hb("m2", -1).error_code == UNKNOWN_MEMBER


def test_members_choose_the_assignor_by_vote(world: Any) -> None:
    world.hb("m1", 0, "orders", assignor="range")
    assert describe(world).assignor_name == "range"


# ---------------------------------------------------------------- static members


def test_a_static_member_comes_back_to_what_it_had(world: Any) -> None:
    world.hb("m1", 0, "orders", instance="i1")
    assert world.hb("m9", 0, "orders", instance="i1").error_code == UNRELEASED_INSTANCE
    assert world.hb("m9", 2, instance="i1").error_code == FENCED_INSTANCE
    assert world.hb("m1", 2, instance="i7").error_code == UNKNOWN_MEMBER
    left = world.hb("m1", -2, instance="i1")
    assert (left.error_code, left.member_epoch) == (0, -2)
    world.after(44_000)
    back = world.hb("m2", 0, "orders", instance="i1")
    assert (back.member_epoch, world.told(back)) == (2, ALL)
    assert list(world.group.consumer.members) == ["m2"]
    assert world.group.consumer.epoch == 2, "nobody else notices"
    assert world.hb("m1", 2, instance="i1").error_code == FENCED_INSTANCE
    world.hb("m2", -1, instance="i1")
    assert world.state == "Empty"


def test_a_static_member_that_does_not_come_back_is_gone(world: Any) -> None:
    world.hb("m1", 0, "orders", instance="i1")
    world.hb("m1", -2, instance="i1")
    world.after(45_000)
    assert world.state == "Empty"


def test_a_static_member_may_begin_anew_under_its_own_id(world: Any) -> None:
    world.hb("m1", 0, "orders", instance="i1")
    assert world.told(world.hb("m1", 0, "orders", instance="i1")) == ALL
    world.hb("m1", -2, instance="i1")
    assert world.told(world.hb("m1", 0, "orders", instance="i1")) == ALL


# ---------------------------------------------------------------- regular expressions


def test_expressions_follow_the_topics(world: Any) -> None:
    assert world.told(world.hb("m1", 0, regex="o.*r")) == [("other", 0), ("other", 1)]
    world.after(1_000)
    world.add_topic("ogre", 1)
    world.add_topic("oyster", 1)
    assert world.told(world.hb("m1", 2)) == [("other", 0), ("other", 1), ("oyster", 0)]
    world.after(1_000)
    world.drop_topic("other")
    assert world.told(world.hb("m1", 3)) == [("oyster", 0)]
    assert world.group.reads("oyster")
    assert not world.group.reads("ogre")
    world.after(1_000)
    world.hb("m1", 3, "orders", regex="", held=[("oyster", 0)])
    assert world.group.consumer.regexes == {}


def test_expressions_are_looked_at_again_in_time(world: Any) -> None:
    """Though nobody told the machine of a topic: after a load, and by the refresh interval."""
    epoch = world.hb("m1", 0, regex="o.*").member_epoch
    found = []
    for name, pause_ms in (("over", 30_000), ("out", 30_000)):
        world.topics.partitions[name] = 1
        world.topics.ids[name] = UUID(int=500 + len(found))
        if not found:
            world.crash()
        waited_ms = 0
        while name not in world.group.consumer.regexes["o.*"].topics:
            assert waited_ms <= 600_000
            world.after(pause_ms)
            waited_ms += pause_ms
            epoch = world.hb("m1", epoch).member_epoch
        found.append(waited_ms)
    assert found == [30_000, 600_000]


def test_an_expression_is_forgotten_with_its_last_member(world: Any) -> None:
    world.hb("m1", 0, regex="o.*")
    world.hb("m2", 0, regex="o.*")
    world.hb("m1", -1)
    assert set(world.group.consumer.regexes) == {"o.*"}
    world.hb("m2", -1)
    assert world.group.consumer.regexes == {}


# ---------------------------------------------------------------- offsets


def test_commits_are_guarded_by_the_epoch(world: Any) -> None:
    assert world.commit(5) == 0, "nobody is in"
    world.hb("m1", 0, "orders")
    assert world.commit(6) == UNKNOWN_MEMBER
    assert world.commit(6, "m9", 2) == UNKNOWN_MEMBER
    assert world.commit(6, "m1", 3) == STALE_EPOCH
    assert world.commit(6, "m1", 2) == 0
    assert world.commit(7, "m1", 2, capabilities=frozenset()) == UNSUPPORTED_VERSION
    assert world.fetch() == 6


def test_a_commit_under_way_while_the_epoch_grows_holds_for_what_was_held(world: Any) -> None:
    known = settle(world, "m1", "m2")
    mine, others = known["m1"][1][0][1], known["m2"][1][0][1]
    assert known["m1"][0] == 3
    assert world.commit(5, "m1", 2, partition=mine) == 0, "it has had it since epoch 2"
    assert world.commit(5, "m1", 2, partition=others) == STALE_EPOCH
    assert world.commit(5, "m2", 2, partition=others) == STALE_EPOCH, "it got it in epoch 3"


def test_fetches_name_a_member_or_nobody(world: Any) -> None:
    world.hb("m1", 0, "orders")
    world.commit(6, "m1", 2)

    def code(member_id: str | None, epoch: int) -> int:
        asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, member_id, epoch)])
        return int(world.ask(asked).groups[0].error_code)

    assert [code(None, -1), code("m1", 2), code("m1", 3), code("m9", 2)] == [0, 0, STALE_EPOCH, UNKNOWN_MEMBER]


def test_offsets_of_a_subscribed_topic_stay(make_world: Any) -> None:
    world = make_world({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 20_000})
    world.hb("m1", 0, "orders")
    world.commit(6, "m1", 2)
    world.commit(6, "m1", 2, topic="other")
    for _ in range(4):
        world.after(25_000)
        world.hb("m1", 2)
    assert world.group.offsets.keys() == {"orders"}
    row = OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])
    assert world.ask(OffsetDeleteRequest("g", [row])).topics[0].partitions[0].error_code == 86
    assert world.hb("m1", -1).error_code == 0
    assert world.ask(OffsetDeleteRequest("g", [row])).topics[0].partitions[0].error_code == 0
    world.after(20_000)
    assert world.group is None, "nothing is left of it"


# ---------------------------------------------------------------- operators, crashes


def test_what_operators_see(world: Any) -> None:
    assert describe(world).error_code == NOT_FOUND
    world.hb("m1", 0, "orders")
    rows = world.ask(ListGroupsRequest([], ["Consumer"])).groups
    assert [(row.group_id, row.protocol_type, row.group_state, row.group_type) for row in rows] == [
        ("g", "consumer", "Stable", "consumer")
    ]
    assert world.ask(ListGroupsRequest(["empty"], [])).groups == []
    classic = world.ask(DescribeGroupsRequest(["g"])).groups[0]
    assert (classic.error_code, classic.group_state) == (NOT_FOUND, "Dead")
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 68
    world.hb("m1", -1)
    world.commit(4)
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 0
    assert world.group is None
    world.crash()
    assert world.machine.groups == {}


def test_a_crash_is_not_noticed(world: Any) -> None:
    world.hb("m1", 0, "orders")
    world.hb("m2", 0, "orders")
    world.after(1_000)
    world.hb("m2", 2)
    world.hb("m1", 2)
    world.crash()
    assert world.state == "Reconciling"
    first = world.hb("m1", 2, held=parts(0, 1))
    assert first.member_epoch == 3
    assert world.told(world.hb("m2", 3)) == parts(2, 3)
    size = len(world.log)
    world.crash()
    world.hb("m1", 3)
    assert len(world.log) == size
    world.after(45_000)
    assert world.state == "Empty"


def test_a_failed_append_changes_nothing(world: Any) -> None:
    world.hb("m1", 0, "orders")
    world.fail_next = 7
    assert world.hb("m2", 0, "orders").error_code == 15
    assert list(world.group.consumer.members) == ["m1"]
    world.fail_next = 6
    assert world.hb("m1", -1).error_code == 16
    assert world.hb("m1", 2).error_code == 0
