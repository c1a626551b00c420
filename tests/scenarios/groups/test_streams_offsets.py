"""Offsets of Streams groups, operators, and groups that go from one protocol to another."""

from __future__ import annotations

from typing import Any

from streams_members import (
    ALL,
    INCONSISTENT,
    NON_EMPTY,
    NOT_FOUND,
    STALE_EPOCH,
    SUBSCRIBED,
    UNKNOWN_MEMBER,
    UNKNOWN_TOPIC,
    UNSUPPORTED_VERSION,
    beat,
    describe,
    told,
)

from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from logkernel.requests.streams_groups import (
    Endpoint,
    KeyValue,
    StreamsGroupDescribeRequest,
)

# ---------------------------------------------------------------- offsets


def test_members_commit_and_fetch_by_their_epoch(world: Any) -> None:
    beat(world, "m1", 0)
    assert world.commit(5, member_id="m1", generation=2) == 0
    assert world.commit(6, member_id="m1", generation=3) == STALE_EPOCH
    assert world.commit(6, member_id="m9", generation=2) == UNKNOWN_MEMBER
    assert world.commit(6, member_id="m1", generation=-1) == STALE_EPOCH, "a member that names no epoch"
    assert world.commit(6, generation=-1) == UNKNOWN_MEMBER, "nobody commits for a group with members"
    assert world.commit(6, member_id="m1", generation=2, capabilities=frozenset()) == UNSUPPORTED_VERSION
    assert world.fetch() == 5

    def fetched(member: str, epoch: int) -> int:
        asked = OffsetFetchRequestGroup("g", None, member, epoch)
        return int(world.ask(OffsetFetchRequest(groups=[asked])).groups[0].error_code)

    assert [fetched("m1", 2), fetched("m1", 1), fetched("m2", 2)] == [0, STALE_EPOCH, UNKNOWN_MEMBER]
    beat(world, "m1", -1)
    assert world.commit(7, generation=-1) == 0


def test_partitions_that_do_not_exist_are_told_whoever_commits(world: Any) -> None:
    """Kafka looks at topics before it looks at the group."""
    beat(world, "m1", 0)
    for member, epoch, code in (("", -1, UNKNOWN_MEMBER), ("m1", 3, STALE_EPOCH), ("m1", 2, 0)):
        told = [world.commit(5, member_id=member, generation=epoch, partition=number) for number in (0, 4)]
        assert told == [code, UNKNOWN_TOPIC]
        assert world.commit(5, member_id=member, generation=epoch, topic="none") == UNKNOWN_TOPIC


def test_an_older_epoch_commits_what_the_member_has_held_since(world: Any) -> None:
    beat(world, "m1", 0)
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2)
    kept = told(beat(world, "m1", 2).active_tasks)
    assert kept is not None
    beat(world, "m1", 2, active=kept)
    assert world.group.streams.members["m1"].epoch == 3
    (_, held), *_ = kept
    assert world.commit(5, member_id="m1", generation=2, partition=held) == 0
    moved = next(number for _, number in ALL if ("0", number) not in kept)
    assert world.commit(5, member_id="m1", generation=2, partition=moved) == STALE_EPOCH
    assert world.commit(5, member_id="m1", generation=2, topic="other") == STALE_EPOCH


def test_offsets_of_what_is_read_are_not_deleted(world: Any) -> None:
    beat(world, "m1", 0)
    world.commit(5, member_id="m1", generation=2)
    rows = [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]

    def deleted() -> int:
        return int(world.ask(OffsetDeleteRequest("g", rows)).topics[0].partitions[0].error_code)

    assert deleted() == SUBSCRIBED
    beat(world, "m1", -1)
    assert deleted() == 0
    assert world.fetch() == -1


def test_a_group_without_members_goes_when_its_offsets_have_expired(world: Any) -> None:
    beat(world, "m1", 0)
    world.commit(5, member_id="m1", generation=2)
    for _ in range(20):
        world.after(40_000_000)
        if world.group is None:
            break
    assert world.group is None
    keys = {record.key: record.value for record in world.log}
    assert set(keys.values()) == {None}, "all that it left is deleted"


# ---------------------------------------------------------------- operators and other protocols


def test_a_group_is_listed_described_and_deleted(world: Any) -> None:
    beat(world, "m1", 0, user_endpoint=Endpoint("one", 1), client_tags=[KeyValue("zone", "a")], rack_id="r")
    row = world.ask(ListGroupsRequest([], ["Streams"])).groups[0]
    assert (row.group_id, row.protocol_type, row.group_state, row.group_type) == ("g", "streams", "Stable", "streams")
    assert world.ask(ListGroupsRequest([], ["consumer"])).groups == []
    found = describe(world)
    assert (found.error_code, found.group_state, found.group_epoch, found.assignment_epoch) == (0, "Stable", 2, 2)
    assert [(one.subtopology_id, one.source_topics) for one in found.topology.subtopologies] == [("0", ["orders"])]
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.process_id, member.rack_id) == ("m1", 2, "process of m1", "r")
    assert (member.user_endpoint, member.client_tags) == (Endpoint("one", 1), [KeyValue("zone", "a")])
    assert told(member.assignment.active_tasks) == told(member.target_assignment.active_tasks) == ALL
    assert (member.client_host, member.is_classic, found.authorized_operations > 0) == ("/10.0.0.1", False, True)
    assert world.ask(DescribeGroupsRequest(["g"])).groups[0].error_code == NOT_FOUND
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == NON_EMPTY
    beat(world, "m1", -1)
    assert describe(world).group_state == "Empty"
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 0
    assert describe(world).error_code == NOT_FOUND
    last = {record.key: record.value for record in world.log}
    assert set(last.values()) == {None}, "all that it left is deleted"
    assert world.ask(StreamsGroupDescribeRequest([""])).groups[0].error_code == 24
    assert beat(world, "m1", 2).error_code == beat(world, "m1", -1).error_code == NOT_FOUND


def test_an_empty_group_takes_the_protocol_of_its_next_member(world: Any) -> None:
    (member,), generation = world.stable()
    assert beat(world, "s1", 0).error_code == NOT_FOUND, "a classic group with members stays one"
    assert describe(world).error_code == NOT_FOUND
    world.commit(5, member_id=member, generation=generation)
    world.after(1_000_000)
    assert world.state == "Empty"
    assert beat(world, "s1", 0).error_code == 0
    assert (world.group.kind, world.state, world.fetch()) == ("streams", "Stable", 5)
    consumer = ConsumerGroupHeartbeatRequest(
        "g", "c1", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=["orders"], topic_partitions=[]
    )
    assert world.ask(consumer).error_code == NOT_FOUND
    assert world.answers.pop(world.join()).error_code == INCONSISTENT
    beat(world, "s1", -1)
    world.stable()
    assert (world.group.kind, world.fetch()) == ("classic", 5)


def test_an_append_that_fails_leaves_nothing_behind(world: Any) -> None:
    world.fail_next = 7
    assert beat(world, "m1", 0).error_code == 15
    assert world.group is None
    assert told(beat(world, "m1", 0).active_tasks) == ALL
