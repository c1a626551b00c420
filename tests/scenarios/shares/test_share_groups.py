"""Members, assignments, and what operators ask for."""

from __future__ import annotations

from typing import Any

from logkernel.errors import InvalidGroupId
from logkernel.requests.consumer_groups import ConsumerGroupHeartbeatRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    SyncGroupRequest,
)
from logkernel.requests.share_groups import ShareGroupDescribeRequest
from logkernel.requests.share_offsets import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic
from logkernel.requests.topics import DeleteTopicsRequest, DeleteTopicState


def places(response: Any) -> list[int] | None:
    """The assigned partitions of the one topic; None where nothing is said of them."""
    if response.assignment is None:
        return None
    return [row for topic in response.assignment.topic_partitions for row in topic.partitions]


def described(world: Any) -> Any:
    return world.ask(ShareGroupDescribeRequest([world.group], True)).groups[0]


def listed(world: Any, **filters: Any) -> list[tuple[str, str, str]]:
    groups = world.ask(ListGroupsRequest(**filters)).groups
    return [(row.group_id, row.group_state, row.group_type) for row in groups]


def test_a_group_without_a_name_is_not_described(world: Any) -> None:
    """Kafka says so, rather than that there is no such group."""
    (row,) = world.ask(ShareGroupDescribeRequest([""], True)).groups
    assert (row.error_code, row.group_id) == (InvalidGroupId.code, "")


def test_a_member_joins_and_is_told_its_partitions_at_once(world: Any) -> None:
    answer = world.join("a")
    assert (answer.error_code, answer.member_id, places(answer)) == (0, "a", [0])
    assert answer.heartbeat_interval_ms == 5000
    again = world.beat("a", answer.member_epoch)
    assert (again.member_epoch, places(again)) == (answer.member_epoch, None)


def test_members_share_partitions(world: Any) -> None:
    world.broker.create_topic("wide", 3, {})
    first = world.join("a", "wide")
    assert places(first) == [0, 1, 2]
    assert sorted(places(world.join("b", "wide")) or []) == [1]
    assert places(world.beat("a", first.member_epoch)) == [0, 2]
    for member in ("c", "d", "e"):
        world.join(member, "wide")
    rows = described(world).members
    assert {row.member_id for row in rows} == set("abcde")


def test_members_that_come_soon_after_an_assignment_wait_for_the_next_one(world: Any) -> None:
    """Until then a new member has nothing, and the others keep what they have (KIP-1263)."""
    world.broker.create_topic("wide", 3, {})
    world.configure(**{"share.assignment.interval.ms": "2000"})
    first = world.join("a", "wide")
    assert places(first) == [0, 1, 2]
    second = world.join("b", "wide")
    assert (second.member_epoch, places(second)) == (first.member_epoch, [])
    world.wait(1_999)
    held = world.beat("a", first.member_epoch)
    assert (held.member_epoch, places(held)) == (first.member_epoch, None)
    world.wait(1)
    after = world.beat("b", second.member_epoch)
    assert places(after) == [1]
    assert after.member_epoch > first.member_epoch
    assert places(world.beat("a", first.member_epoch)) == [0, 2]
    assert world.beat("b", -1).error_code == 0
    world.crash()
    assert places(world.beat("a", after.member_epoch)) is None, "the time of the last assignment was not kept"
    world.configure(**{"share.assignment.interval.ms": "0"})
    assert places(world.beat("a", after.member_epoch)) == [0, 1, 2], "0 is no interval"


def test_more_partitions_reach_members_by_their_heartbeats(world: Any) -> None:
    from logkernel.requests.topics import CreatePartitionsRequest, CreatePartitionsTopic

    first = world.join("a")
    world.ask(CreatePartitionsRequest(topics=[CreatePartitionsTopic(world.topic, 3)]))
    second = world.beat("a", first.member_epoch)
    assert places(second) == [0, 1, 2]
    assert second.member_epoch > first.member_epoch


def test_a_topic_that_comes_later_and_one_that_goes(world: Any) -> None:
    first = world.join("a", "later")
    assert (first.error_code, places(first)) == (0, [])
    world.broker.create_topic("later", 2, {})
    second = world.beat("a", first.member_epoch)
    assert places(second) == [0, 1]
    world.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="later")]))
    assert places(world.beat("a", second.member_epoch)) == []


def test_a_member_leaves_and_its_records_are_free(world: Any) -> None:
    world.join("a")
    world.join("b")
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    assert world.beat("a", -1).member_epoch == -1
    assert world.ack("a", "", epoch=-1) == ""
    assert world.fetch("b") == "0-1:2"
    assert world.beat("a", 5).error_code == 25
    assert [row.member_id for row in described(world).members] == ["b"]


def test_a_member_that_left_may_still_end_its_session(world: Any) -> None:
    """librdkafka leaves on one connection and acknowledges on another, both at once."""
    world.join("a")
    world.join("b")
    world.produce(3)
    assert world.fetch("a") == "0-2:1"
    assert world.beat("a", -1).member_epoch == -1
    assert world.ack("a", "0-1 reject", epoch=-1) == "", "the acknowledgements that came after are lost"
    assert world.fetch("b") == "2-2:2"


def test_a_member_that_left_waits_no_longer_and_its_connection_frees_what_it_held(world: Any) -> None:
    world.join("a")
    world.join("b")
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    waiting = world.fetching("a", wait_ms=500)
    assert waiting.got is None
    assert world.beat("a", -1).member_epoch == -1
    assert waiting.got == "", "the fetch of a member that left waits on"
    world.disconnect("a")
    assert world.fetch("b") == "0-1:2"


def test_a_member_that_is_gone_without_a_word_holds_nothing(world: Any) -> None:
    epoch = world.join("a").member_epoch
    later = world.join("b").member_epoch
    world.configure(**{"share.record.lock.duration.ms": "60000"})
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    world.wait(40_000)
    assert world.beat("b", later).error_code == 0
    world.wait(6_000)
    assert world.beat("a", epoch).error_code == 25
    assert world.fetch("b") == "0-1:2"


def test_a_member_without_heartbeats_is_gone(world: Any) -> None:
    epoch = world.join("a").member_epoch
    world.wait(44_000)
    assert world.beat("a", epoch).error_code == 0
    world.wait(44_999)
    assert described(world).group_state == "Stable"
    world.wait(2)
    assert described(world).group_state == "Empty"
    assert world.beat("a", epoch).error_code == 25


def test_epochs_of_members(world: Any) -> None:
    epoch = world.join("a").member_epoch
    assert world.beat("a", epoch + 1).error_code == 110
    world.join("b")
    later = world.beat("a", epoch).member_epoch
    assert later > epoch
    assert world.beat("a", epoch).error_code == 0, "the answer to the last heartbeat may have been lost"
    assert world.join("a").error_code == 0


def test_requests_that_are_refused(world: Any) -> None:
    assert world.beat("a", 0, []).error_code == 42
    assert world.beat("", 0, ["t"]).error_code == 42
    assert world.beat("a", -2).error_code == 42
    assert world.beat("a", 3).error_code == 69
    assert world.beat("a", 0, ["t"], group=" ").error_code == 42
    assert world.beat("a", 0, ["t"], group="x" * 40_000).error_code == 24


def test_members_are_limited(worlds: Any) -> None:
    world = worlds("group.share.max.size=1")
    assert world.join("a").error_code == 0
    assert world.join("b").error_code == 81
    assert world.join("a").error_code == 0


def test_an_id_that_another_kind_of_group_has(world: Any) -> None:
    protocols = [JoinGroupRequestProtocol("range", b"")]
    waiting = world.submit(JoinGroupRequest(world.group, 10_000, "", "consumer", protocols, 10_000))
    world.wait(3_000)
    member = waiting.response.member_id
    assert world.ask(SyncGroupRequest(world.group, 1, member)).error_code == 0
    assert world.join("a").error_code == 69


def test_groups_are_listed_beside_others(world: Any) -> None:
    world.join("a")
    assert listed(world) == [("g", "Stable", "share")]
    assert listed(world, types_filter=["classic"]) == []
    assert listed(world, types_filter=["Share"], states_filter=["empty"]) == []
    world.beat("a", -1)
    assert listed(world, types_filter=["Share"], states_filter=["empty"]) == [("g", "Empty", "share")]


def test_a_group_and_its_members_last(world: Any) -> None:
    epoch = world.join("a").member_epoch
    before = described(world)
    world.crash()
    assert described(world) == before
    assert world.beat("a", epoch).error_code == 0


def test_offsets_are_altered_while_nobody_reads(world: Any) -> None:
    epoch = world.join("a").member_epoch
    world.produce(1, batches=6)
    assert world.fetch("a") == "0-5:1"
    assert world.ack("a", "0-4 accept") == ""
    assert world.alter(3) == 68
    world.beat("a", -1)
    assert world.offsets() == (5, 1)
    assert world.alter(2) == 0
    assert world.offsets() == (2, 4)
    world.epochs.clear()
    assert world.fetch("a") == "2-5:1"
    assert epoch > 0


def test_a_group_that_is_not_there_is_told_where_to_begin(world: Any) -> None:
    """As Kafka 4.3 has it: the group comes into being, Empty, and its first member begins there."""
    world.produce(1, batches=6)
    assert world.alter(4) == 0
    assert listed(world) == [("g", "Empty", "share")]
    assert world.offsets() == (4, 2)
    world.crash()
    world.join("a")
    assert world.fetch("a") == "4-5:1"


def test_an_id_belongs_to_one_kind_of_group(world: Any) -> None:
    beat = ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=1_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    world.join("a")
    assert world.ask(beat).error_code == 69
    world.beat("a", -1)
    assert world.ask(beat).error_code == 69, "the share group is Empty, and there"
    beat.group_id = world.group = "other"
    assert world.ask(beat).error_code == 0
    assert world.join("a").error_code == 69
    assert world.alter(3) == 69
    world.crash()
    assert world.join("a").error_code == 69


def test_who_fetched_before_the_group_made_the_state_is_heard(world: Any) -> None:
    """A client learns the id of a topic that was made anew before its group does."""
    world.produce(3)
    assert world.fetch("a") == "0-2:1"
    world.join("a")
    assert world.ack("a", "0-1 accept, 2 release") == ""
    assert world.offsets() == (2, 1)
    world.crash()
    assert world.offsets() == (2, 1)


def test_who_fetched_before_the_start_was_set_is_fenced(world: Any) -> None:
    world.produce(3)
    assert world.fetch("a") == "0-2:1"
    assert world.alter(1) == 0
    assert world.ack("a", "0-1 accept") != ""
    world.join("a")
    assert world.fetch("a", epoch=0) == "1-2:1"


def test_a_leader_that_heard_nothing_of_it_is_fenced(world: Any) -> None:
    """A session may live without a member: what it says after the offsets were altered does not hold."""
    world.join("a")
    world.produce(1, batches=3)
    world.beat("a", -1)
    assert world.fetch("x") == "0-2:1"
    assert world.alter(1) == 0
    assert world.ack("x", "0-2 accept") == "!122"
    world.epochs.clear()
    assert world.fetch("x") == "1-2:1"


def test_offsets_are_deleted(world: Any) -> None:
    def delete(topic: str) -> int:
        asked = DeleteShareGroupOffsetsRequest(world.group, [DeleteShareGroupOffsetsRequestTopic(topic)])
        response = world.ask(asked)
        code: int = response.error_code or response.responses[0].error_code
        return code

    world.join("a")
    world.produce(2)
    assert world.fetch("a") == "0-1:1"
    assert world.ack("a", "0-1 accept") == ""
    assert delete("t") == 68
    world.beat("a", -1)
    assert delete("none") == 3
    assert delete("t") == 0
    assert delete("t") == 3
    world.epochs.clear()
    world.join("a")
    assert world.fetch("a") == "0-1:1"


def test_a_group_is_deleted(world: Any) -> None:
    def delete(name: str) -> int:
        code: int = world.ask(DeleteGroupsRequest([name])).results[0].error_code
        return code

    world.join("a")
    world.produce(1)
    assert world.fetch("a") == "0-0:1"
    assert world.ack("a", "0 accept") == ""
    assert delete("none") == 69
    assert delete("g") == 68
    world.beat("a", -1)
    assert delete("g") == 0
    assert described(world).error_code == 69
    world.crash()
    assert listed(world) == []
    world.join("a")
    assert world.fetch("a") == "0-0:1", "a group made anew inherits nothing"


def test_a_share_coordinator_is_found(world: Any) -> None:
    def find(key: str, **context: Any) -> int:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
        code: int = world.ask(request, **context).coordinators[0].error_code
        return code

    newest = frozenset({"share_coordinator"})
    assert find("g:ESIzRFVmd4iZqrvM3e7_AA:3", capabilities=newest) == 0
    assert find("g:3", capabilities=newest) == 42
    assert find("g:ESIzRFVmd4iZqrvM3e7_AA:3") == 42


def commit(world: Any) -> int:
    topics = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, 5)])]
    code: int = world.ask(OffsetCommitRequest("g", topics=topics)).topics[0].partitions[0].error_code
    return code


def test_an_id_that_is_known_by_committed_offsets_alone_is_not_taken(world: Any) -> None:
    """As Kafka 4.3.1 has it, also after a restart, and until the group is deleted."""
    assert commit(world) == 0
    for _ in range(2):
        answer = world.join("a")
        assert (answer.error_code, answer.error_message) == (69, "Group g is not a share group.")
        assert world.alter(3) == 69
        world.crash()
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == 0
    assert world.join("a").error_code == 0
    assert commit(world) == 69, "now it is a share group"
