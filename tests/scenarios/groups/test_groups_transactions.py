"""Offsets in transactions: pending until the marker, unstable meanwhile; who may commit; what ages away."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.requests.groups import (
    DeleteGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.requests.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

NONE, UNKNOWN_TOPIC, TOO_LARGE, LOADING, NOT_AVAILABLE, ILLEGAL_GENERATION = 0, 3, 12, 14, 15, 22
INVALID_GROUP, UNKNOWN_MEMBER, INVALID_EPOCH, INVALID_STATE, CONCURRENT = 24, 25, 47, 48, 51
FENCED_INSTANCE, UNSTABLE, PRODUCER_FENCED, ABORTABLE = 82, 88, 90, 120
V2 = frozenset({"transactions_v2", "transaction_abortable"})
DAY = 86_400_000


def send(
    world: Any,
    offset: int,
    member: str = "",
    generation: int = -1,
    *,
    producer: int = 7,
    epoch: int = 0,
    topic: str = "orders",
    partition: int = 0,
    instance: str | None = None,
    metadata: str | None = None,
    capabilities: frozenset[str] = V2,
) -> int:
    row = TxnOffsetCommitRequestPartition(partition, offset, 5, metadata)
    topics = [TxnOffsetCommitRequestTopic(topic, [row])]
    request = TxnOffsetCommitRequest("tx", world.group_id, producer, epoch, generation, member, instance, topics)
    return world.send(request, capabilities)


def commit(world: Any, offset: int, *args: Any, said: int = 0, **more: Any) -> int:
    """The error code; the coordinator, if it is asked, answers with `said`."""
    ticket = send(world, offset, *args, **more)
    if world.sent:
        world.coordinator(said)
    return world.answers.pop(ticket).topics[0].partitions[0].error_code


def stable_fetch(world: Any, *partitions: int, topic: str = "orders") -> list[tuple[int, int]]:
    """(offset, error) by partition, as one who wants stable offsets is told."""
    asked = OffsetFetchRequestGroup("g", [OffsetFetchRequestTopics(topic, list(partitions or (0,)))])
    rows = world.ask(OffsetFetchRequest(require_stable=True, groups=[asked])).groups[0].topics[0].partitions
    return [(row.committed_offset, row.error_code) for row in rows]


def test_an_offset_holds_when_its_transaction_commits(world: Any) -> None:
    world.commit(1)
    assert commit(world, 5) == NONE
    assert world.fetch() == 1, "who does not ask for stable offsets gets the old one"
    assert stable_fetch(world, 0, 1) == [(-1, UNSTABLE), (-1, NONE)]
    world.crash()
    assert stable_fetch(world) == [(-1, UNSTABLE)]
    world.end(7, committed=True)
    assert stable_fetch(world) == [(5, NONE)]
    world.crash()
    assert world.fetch() == 5


def test_partitions_that_do_not_exist_are_told_whatever_is_wrong_with_the_group(world: Any) -> None:
    rows = [TxnOffsetCommitRequestPartition(number, 5, 5, None) for number in (0, 99)]
    topics = [TxnOffsetCommitRequestTopic("orders", rows)]
    ticket = world.send(TxnOffsetCommitRequest("tx", world.group_id, 7, 0, 3, "nobody", None, topics), V2)
    world.coordinator(0)
    told = [row.error_code for row in world.answers.pop(ticket).topics[0].partitions]
    assert told == [ILLEGAL_GENERATION, UNKNOWN_TOPIC]


def test_an_aborted_offset_leaves_no_trace(world: Any) -> None:
    commit(world, 5)
    world.end(7, committed=False)
    assert (world.group.offsets, world.group.uncommitted) == ({}, {}), "nothing but its name"
    world.commit(1)
    commit(world, 5)
    world.end(7, committed=False)
    assert (world.fetch(), stable_fetch(world)) == (1, [(1, NONE)])


def test_all_topics_are_unstable_too(world: Any) -> None:
    world.commit(1)
    world.commit(2, partition=1)
    commit(world, 5)
    asked = OffsetFetchRequest(require_stable=True, groups=[OffsetFetchRequestGroup("g")])
    rows = world.ask(asked).groups[0].topics[0].partitions
    assert [(row.partition_index, row.committed_offset, row.error_code) for row in rows] == [
        (0, -1, UNSTABLE),
        (1, 2, NONE),
    ]


def test_of_two_commits_the_later_in_the_log_holds(world: Any) -> None:
    commit(world, 5)
    world.commit(9)
    world.end(7, committed=True)
    assert world.fetch() == 9
    commit(world, 10)
    commit(world, 20, producer=8)
    world.end(8, committed=True)
    world.end(7, committed=True)
    assert world.fetch() == 20


def test_the_coordinator_is_asked_once_a_transaction(world: Any) -> None:
    ticket = send(world, 1)
    asked = world.coordinator()
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch, asked.verify_only) == ("tx", 7, 0, False)
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [("__consumer_offsets", [0])]
    assert world.answers.pop(ticket).topics[0].partitions[0].error_code == NONE
    send(world, 2, partition=1)
    assert world.sent == []
    send(world, 3, epoch=1)
    assert len(world.sent) == 1, "another epoch is another transaction"


def test_old_producers_add_the_group_themselves(world: Any) -> None:
    send(world, 1, capabilities=frozenset())
    assert world.coordinator().verify_only


@pytest.mark.parametrize(
    ("said", "told", "told_old"),
    [
        (ABORTABLE, ABORTABLE, INVALID_STATE),
        (PRODUCER_FENCED, INVALID_EPOCH, INVALID_EPOCH),
        (CONCURRENT, CONCURRENT, CONCURRENT),
        (13, LOADING, LOADING),
        (UNKNOWN_TOPIC, NOT_AVAILABLE, NOT_AVAILABLE),
    ],
)
def test_a_coordinator_that_does_not_confirm(world: Any, said: int, told: int, told_old: int) -> None:
    assert commit(world, 1, said=said) == told
    assert commit(world, 1, said=said, capabilities=frozenset()) == told_old
    assert world.log == []


def test_a_marker_before_the_answer_ends_what_was_asked_for(world: Any) -> None:
    for capabilities, epoch in ((V2, 1), (frozenset(), 0)):
        ticket = send(world, 1, capabilities=capabilities)
        world.end(7, committed=False, epoch=epoch)
        world.coordinator()
        assert world.answers.pop(ticket).topics[0].partitions[0].error_code == INVALID_STATE
    assert world.group is None


def test_the_marker_of_the_transaction_before_ends_no_newer_one(world: Any) -> None:
    """Of transactions v2 it has the next one's epoch, and may come between the next one's question and its answer:
    franz-go's transactions failed over it, with the two coordinators on different brokers."""
    for said, told in ((CONCURRENT, CONCURRENT), (NONE, NONE)):
        ticket = send(world, 1, epoch=3)
        world.end(7, committed=True, epoch=3)
        world.coordinator(said)
        assert world.answers.pop(ticket).topics[0].partitions[0].error_code == told
    world.end(7, committed=True, epoch=4)
    assert stable_fetch(world) == [(1, NONE)]


def test_a_refusal_is_told_though_a_marker_came_before_it(world: Any) -> None:
    ticket = send(world, 1, capabilities=frozenset())
    world.end(7, committed=False)
    world.coordinator(CONCURRENT)
    assert world.answers.pop(ticket).topics[0].partitions[0].error_code == CONCURRENT


def test_members_commit_with_their_generation(world: Any) -> None:
    (one, two), generation = world.stable(2)
    assert commit(world, 1, one, generation) == NONE
    assert commit(world, 1, one, generation - 1) == ILLEGAL_GENERATION
    assert commit(world, 1, "ghost", generation) == UNKNOWN_MEMBER
    assert commit(world, 1, "", generation) == UNKNOWN_MEMBER
    assert commit(world, 1, one, generation, instance="i") == UNKNOWN_MEMBER
    assert commit(world, 2) == NONE, "old producers name neither"
    world.join(one)
    world.join(two)
    assert world.state == "CompletingRebalance"
    assert commit(world, 3, two, generation + 1) == NONE, "it has seen the generation"


def test_a_generation_of_a_group_that_is_not_there(world: Any) -> None:
    assert commit(world, 1, "m", 3) == ILLEGAL_GENERATION
    assert world.group is None


def test_what_cannot_be_committed(make_world: Any) -> None:
    world = make_world({"offset.metadata.max.bytes": 3})
    assert commit(world, 1, topic="nothing") == commit(world, 1, partition=9) == UNKNOWN_TOPIC
    assert commit(world, 1, metadata="long") == TOO_LARGE
    world.group_id = ""
    assert commit(world, 1) == INVALID_GROUP
    assert world.log == []


def test_what_is_written_is_kafkas(world: Any) -> None:
    commit(world, 9, metadata="m")
    (record,) = world.log
    stamp = world.wall_ms.to_bytes(8, "big")
    assert record.key == bytes.fromhex("0001 0001 67 0006 6f7264657273 00000000")
    assert record.value == bytes.fromhex("0004 0000000000000009 00000005 02 6d") + stamp + b"\0", "it has no topic id"


@pytest.mark.parametrize(("failure", "told"), [(19, 15), (6, 16), (47, 47), (10, -1)])
def test_a_commit_that_cannot_be_kept_is_not_there(world: Any, failure: int, told: int) -> None:
    world.commit(1)
    ticket = send(world, 2)
    world.fail_next = failure
    world.coordinator()
    assert world.answers.pop(ticket).topics[0].partitions[0].error_code == told
    assert stable_fetch(world) == [(1, NONE)]


def test_offsets_do_not_expire_while_a_transaction_may_change_them(world: Any) -> None:
    world.commit(1)
    world.commit(2, partition=1)
    commit(world, 5)
    world.after(8 * DAY)
    assert (world.fetch(), world.fetch(partition=1)) == (1, -1)
    world.end(7, committed=False)
    world.after(DAY)
    assert world.group is None


def test_a_group_with_pending_offsets_alone_stays(world: Any) -> None:
    (one,), generation = world.stable(1)
    commit(world, 5, one, generation)
    world.after(9 * DAY)
    assert world.state == "Empty"
    world.end(7, committed=True)
    assert world.fetch() == 5


def test_deleting_a_group_takes_what_is_pending(world: Any) -> None:
    world.commit(1, partition=1)
    commit(world, 5)
    assert world.ask(DeleteGroupsRequest(["g"])).results[0].error_code == NONE
    assert world.group is None
    world.end(7, committed=True)
    assert world.fetch() == -1


def test_deleting_an_offset_takes_what_is_pending(world: Any) -> None:
    commit(world, 5)
    topics = [OffsetDeleteRequestTopic("orders", [OffsetDeleteRequestPartition(0)])]
    assert world.ask(OffsetDeleteRequest("g", topics)).topics[0].partitions[0].error_code == NONE
    world.end(7, committed=True)
    assert world.fetch() == -1


def test_a_deleted_topic_takes_what_is_pending(world: Any) -> None:
    commit(world, 5)
    commit(world, 6, topic="other")
    world.run(world.machine.on_topics_deleted(["orders"], world.wall_ms, world.mono_ms))
    world.end(7, committed=True)
    assert (world.fetch(), world.fetch("other")) == (-1, 6)
