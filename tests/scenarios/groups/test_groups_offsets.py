"""Offsets: who may commit when, what is read back, how they age, and that a failed append leaves no trace."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.vocabulary import Record

NONE, UNKNOWN_TOPIC, TOO_LARGE, ILLEGAL_GENERATION, UNKNOWN_MEMBER = 0, 3, 12, 22, 25
REBALANCE_IN_PROGRESS, NON_EMPTY, GROUP_NOT_FOUND, SUBSCRIBED, UNKNOWN_ID = 27, 68, 69, 86, 100
MINUTE, DAY = 60_000, 86_400_000


def test_a_simple_consumer_commits_and_reads_back(world: Any) -> None:
    assert world.fetch() == -1
    assert world.commit(42, metadata="note") == NONE
    world.crash()
    asked = OffsetFetchRequestGroup("g", [OffsetFetchRequestTopics("orders", [0, 1])])
    rows = world.ask(OffsetFetchRequest(groups=[asked])).groups[0].topics[0].partitions
    assert [(r.partition_index, r.committed_offset, r.metadata, r.committed_leader_epoch) for r in rows] == [
        (0, 42, "note", 5),
        (1, -1, "", -1),
    ]
    assert world.commit(7) == NONE
    assert world.fetch() == 7, "an operator may go back"


def test_what_a_commit_writes_is_kafkas(world: Any) -> None:
    world.commit(9, metadata="m")
    (record,) = world.log
    assert record.key == bytes.fromhex("0001 0001 67 0006 6f7264657273 00000000")
    stamp = world.wall_ms.to_bytes(8, "big")
    topic_id = world.topics.ids["orders"].bytes
    assert record.value == bytes.fromhex("0004 0000000000000009 00000005 02 6d") + stamp + b"\1\0\x10" + topic_id
    assert record.timestamp_ms == world.wall_ms


def test_members_commit_with_their_generation(world: Any) -> None:
    (one, two), generation = world.stable(2)
    assert world.commit(1, one, generation) == NONE
    assert world.commit(2, one, generation + 1) == ILLEGAL_GENERATION
    assert world.commit(2, "ghost", generation) == UNKNOWN_MEMBER
    assert world.commit(2) == UNKNOWN_MEMBER, "no generation, and somebody is in"
    world.join(one)
    assert world.commit(3, two, generation) == NONE, "PreparingRebalance: last words before the round"
    world.join(two)
    assert world.commit(4, two, generation + 1) == REBALANCE_IN_PROGRESS
    world.after(100_000)
    assert world.state == "Empty"
    assert world.commit(5, one, generation) == UNKNOWN_MEMBER
    assert world.commit(6) == NONE
    assert world.fetch() == 6


def test_a_commit_is_a_sign_of_life(world: Any) -> None:
    (one,), generation = world.stable(1)
    for offset in range(5):
        world.after(9_000)
        assert world.commit(offset, one, generation) == NONE


def test_a_generation_of_a_group_that_is_not_there(world: Any) -> None:
    assert world.commit(1, "m", 3) == GROUP_NOT_FOUND
    assert world.commit(1, "m", 3, capabilities=frozenset()) == ILLEGAL_GENERATION


def test_topics_that_are_not_there(world: Any) -> None:
    assert world.commit(1, topic="nothing") == UNKNOWN_TOPIC
    assert world.commit(1, partition=4) == world.commit(1, partition=-1) == UNKNOWN_TOPIC
    assert world.group is None


def test_topics_by_id(world: Any) -> None:
    row = [OffsetCommitRequestPartition(0, 3)]
    topics = [OffsetCommitRequestTopic("", row, UUID(int=77)), OffsetCommitRequestTopic("", row, UUID(int=5))]
    answered = world.ask(OffsetCommitRequest("g", topics=topics)).topics
    assert [(topic.topic_id.int, topic.partitions[0].error_code) for topic in answered] == [(77, NONE), (5, UNKNOWN_ID)]
    asked = [OffsetFetchRequestTopics("", [0], UUID(int=number)) for number in (77, 5)]
    found = world.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", asked)])).groups[0].topics
    rows = [(t.topic_id.int, t.partitions[0].committed_offset, t.partitions[0].error_code) for t in found]
    assert rows == [(77, 3, NONE), (5, -1, UNKNOWN_ID)]


def test_all_topics(world: Any) -> None:
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g"), OffsetFetchRequestGroup("nobody")])
    world.commit(1)
    world.commit(2, partition=3)
    world.commit(3, topic="other")
    ours, nobody = world.ask(everything).groups
    rows = {(t.name, t.topic_id.int, r.partition_index): r.committed_offset for t in ours.topics for r in t.partitions}
    assert rows == {("orders", 77, 0): 1, ("orders", 77, 3): 2, ("other", 78, 0): 3}
    assert (nobody.group_id, nobody.error_code, nobody.topics) == ("nobody", NONE, [])
    del world.topics.ids["other"], world.topics.partitions["other"]
    assert [topic.name for topic in world.ask(everything).groups[0].topics] == ["orders", "other"]
    by_id = world.ask(everything, frozenset({"topic_ids"})).groups[0]
    assert [topic.name for topic in by_id.topics] == ["orders"]


@pytest.mark.parametrize(
    ("metadata", "code"),
    [("x" * 10, NONE), ("x" * 11, TOO_LARGE), ("é" * 10, NONE), ("😀" * 5, NONE), ("😀" * 6, TOO_LARGE)],
)
def test_metadata_is_bounded_in_javas_chars(make_world: Any, metadata: str, code: int) -> None:
    assert make_world({"offset.metadata.max.bytes": 10}).commit(1, metadata=metadata) == code


def test_metadata_that_cannot_be_kept_whatever_the_bound(make_world: Any) -> None:
    assert make_world({"offset.metadata.max.bytes": 10**6}).commit(1, metadata="x" * 40_000) == TOO_LARGE


def test_good_partitions_are_kept_beside_bad_ones(world: Any) -> None:
    rows = [OffsetCommitRequestPartition(0, 1, "x" * 5_000), OffsetCommitRequestPartition(1, 2)]
    answer = world.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("orders", rows)]))
    assert [row.error_code for row in answer.topics[0].partitions] == [TOO_LARGE, NONE]
    assert (world.fetch(partition=0), world.fetch(partition=1)) == (-1, 2)


@pytest.mark.parametrize(("failure", "told"), [(19, 15), (6, 16), (10, 28)])
def test_a_commit_that_cannot_be_kept_is_not_there(world: Any, failure: int, told: int) -> None:
    world.commit(1)
    world.fail_next = failure
    assert world.commit(2) == told
    assert world.fetch() == 1
    assert world.commit(3) == NONE
    assert world.fetch() == 3


# ---------------------------------------------------------------- age


def test_offsets_of_a_simple_group_age_from_their_commit(make_world: Any) -> None:
    world = make_world({"offsets.retention.minutes": 60})
    world.commit(1)
    world.after(30 * MINUTE)
    world.commit(2, partition=1)
    world.after(40 * MINUTE)
    assert (world.fetch(partition=0), world.fetch(partition=1)) == (-1, 2)
    world.after(40 * MINUTE)
    assert world.group is None
    world.after(10 * MINUTE)
    assert world.machine.next_deadline() is None, "nothing to look through, so no timer"


def test_offsets_of_a_group_age_from_when_it_became_empty(world: Any) -> None:
    (one,), generation = world.stable(1)
    world.commit(1, one, generation)
    for _ in range(9):
        world.after(9_000)
        world.beat(one, generation)
    world.wall_ms += 30 * DAY  # the wall clock runs on, and the member with it
    world.beat(one, generation)
    world.after(1)
    world.leave(one)
    world.after(7 * DAY - 10 * MINUTE)
    assert world.fetch() == 1
    world.crash()
    world.after(20 * MINUTE)
    assert world.group is None
    assert world.log[-1].value is None, "the group's own tombstone comes last"


def test_while_members_are_in_only_what_they_do_not_read_ages(make_world: Any) -> None:
    world = make_world({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000})
    (one,), generation = world.stable(1)
    world.commit(1, one, generation)
    world.commit(2, one, generation, topic="other")
    for _ in range(10):
        world.after(9_000)
        assert world.beat(one, generation) == NONE
    assert (world.fetch("orders"), world.fetch("other")) == (1, -1)


def test_consumers_whose_subscription_cannot_be_read_keep_all(make_world: Any) -> None:
    world = make_world({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000})
    (one,), generation = world.stable(1, protocols={"range": b"?"})
    world.commit(2, one, generation, topic="other")
    for _ in range(10):
        world.after(9_000)
        world.beat(one, generation)
    assert world.fetch("other") == 2


def test_a_commit_may_name_its_own_time(world: Any) -> None:
    world.commit(1, retention_ms=15 * MINUTE)
    assert world.log[0].value[:2] == b"\0\1"
    world.after(14 * MINUTE)
    assert world.fetch() == 1
    world.crash()
    world.after(11 * MINUTE)
    assert world.fetch() == -1
    assert world.commit(1, retention_ms=2**63 - 1) == NONE


def test_an_empty_group_without_offsets_goes_at_the_next_check(world: Any) -> None:
    (one,), _ = world.stable(1)
    world.leave(one)
    assert world.state == "Empty"
    world.after(10 * MINUTE)
    assert world.group is None
    assert world.log[-1].value is None


def test_one_commit_is_enough_to_be_looked_through(world: Any) -> None:
    world.commit(1)
    assert world.machine.next_deadline() == 10 * MINUTE


def test_a_sweep_writes_so_many_tombstones_at_once_and_goes_on(make_world: Any) -> None:
    world = make_world({"offsets.retention.minutes": 1})
    world.topics.partitions["wide"] = 2_500
    rows = [OffsetCommitRequestPartition(partition, 1) for partition in range(2_500)]
    world.ask(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("wide", rows)]))
    world.to(world.machine.next_deadline() - 1)
    world.check = lambda: None
    world.after(1)
    assert len(world.log) == 2_500 + 1_000
    world.after(10)
    assert len(world.log) == 5_001, "and one for the group"
    assert world.group is None


def test_a_topic_that_is_deleted_takes_its_offsets_along(world: Any) -> None:
    world.commit(1)
    world.commit(2, topic="other")
    world.run(world.machine.on_topics_deleted(["orders", "nothing"], world.wall_ms, world.mono_ms))
    assert (world.fetch("orders"), world.fetch("other")) == (-1, 2)


# ---------------------------------------------------------------- OffsetDelete


def delete(world: Any, topic: str = "orders", partition: int = 0) -> Any:
    rows = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(partition)])]
    answer = world.ask(OffsetDeleteRequest(world.group_id, rows))
    return answer.error_code or answer.topics[0].partitions[0].error_code


def test_offsets_are_deleted_where_nobody_reads(world: Any) -> None:
    assert delete(world) == GROUP_NOT_FOUND
    (one,), generation = world.stable(1)
    world.commit(1, one, generation)
    world.commit(2, one, generation, topic="other")
    assert delete(world) == SUBSCRIBED
    assert delete(world, "other") == NONE
    assert delete(world, "other", 1) == NONE, "what is not there is deleted already"
    assert delete(world, "nothing") == delete(world, "orders", 9) == UNKNOWN_TOPIC
    assert (world.fetch("orders"), world.fetch("other")) == (1, -1)
    world.leave(one)
    assert delete(world) == NONE
    assert world.fetch() == -1


def test_offsets_of_others_than_consumers_are_deleted_when_they_are_gone(world: Any) -> None:
    first = world.answers[world.join(kind="connect")].member_id
    world.join(first, kind="connect")
    assert delete(world) == NON_EMPTY


# ---------------------------------------------------------------- replay


def test_records_of_other_kinds_are_passed_over(world: Any) -> None:
    world.machine.replay(Record(b"\0\x0b\0\1g", b"\0\0\0\0\0\1"))
    world.machine.replay(Record(None, b"?"))
    world.machine.replay(Record(b"\0\2\0\1g", None))
    assert world.machine.groups == {}
