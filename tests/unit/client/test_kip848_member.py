"""A member of a KIP-848 group: what its heartbeats say, and what follows from the answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from logkernel.client.consumer.metrics import ConsumerMetrics
from logkernel.client.membership.base import ASSIGN, FAILED, JOINING, LEFT, LOST, OUT, PREPARING, REVOKE, STABLE
from logkernel.client.membership.kip848_member import Kip848Member
from logkernel.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRegularExpression,
    NetworkException,
    RequestTimedOut,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedAssignor,
    UnsupportedVersion,
)
from logkernel.requests.cluster import MetadataRequest, MetadataResponse, MetadataResponseTopic
from logkernel.requests.consumer_groups import (
    Assignment,
    AssignmentTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from logkernel.vocabulary import TopicPartition

A, B = UUID(int=1), UUID(int=2)
IDS = {"a": A, "b": B}


def parts(*names: str) -> list[TopicPartition]:
    """a0 is partition 0 of topic a."""
    return [TopicPartition(name[0], int(name[1:])) for name in names]


class Bench:
    def __init__(self, play: Callable[..., Any], **settings: Any) -> None:
        self.core = play(group_id="g", group_protocol="consumer", **settings)
        self.core.learn("a", 4, A)
        self.core.learn("b", 4, B)
        self.member = Kip848Member(self.core, self.core.settings, ConsumerMetrics(self.core.settings))
        self.now_ms = 1000

    def subscribed(self) -> Bench:
        self.member.subscribe(["a", "b"])
        self.member.polled(self.now_ms)
        return self.step()

    def step(self, ms: int = 0) -> Bench:
        self.now_ms += ms
        self.member.step(self.now_ms)
        return self

    @property
    def request(self) -> ConsumerGroupHeartbeatRequest:
        found = self.core.asked(ConsumerGroupHeartbeatRequest)
        assert isinstance(found, ConsumerGroupHeartbeatRequest)
        return found

    def answer(self, epoch: int, *assigned: str, silent: bool = False, code: int = 0) -> Bench:
        rows = [AssignmentTopicPartitions(IDS[name.topic], [name.partition]) for name in parts(*assigned)]
        given = None if silent or code else Assignment(rows)
        self.core.answer(ConsumerGroupHeartbeatResponse(0, code, None, self.member.member_id, epoch, 5000, given))
        return self

    def events(self) -> list[tuple[str, list[TopicPartition]]]:
        return [(event.kind, event.partitions) for event in self.member.events]

    def handle(self) -> Bench:
        """The user's poll."""
        while self.member.events:
            self.member.handled(self.member.events[0])
        return self.step()

    def joined(self, *assigned: str) -> Bench:
        self.subscribed().answer(1, *assigned)
        self.handle()
        if self.core.calls:
            self.answer(1, silent=True)
        assert (self.member.state, self.core.calls) == (STABLE, [])
        return self


def held(request: ConsumerGroupHeartbeatRequest) -> set[tuple[UUID, int]] | None:
    rows = request.topic_partitions
    return None if rows is None else {(row.topic_id, index) for row in rows for index in row.partitions}


@pytest.mark.setting("group.remote.assignor")
def test_the_first_heartbeat_says_all(play: Callable[..., Any]) -> None:
    bench = Bench(play, client_rack="r", max_poll_interval_ms=9000, group_remote_assignor="uniform").subscribed()
    request = bench.request
    assert (request.member_epoch, request.rebalance_timeout_ms, request.rack_id) == (0, 9000, "r")
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["a", "b"], None)
    assert (request.server_assignor, request.topic_partitions) == ("uniform", [])
    assert len(request.member_id) == 22
    assert bench.member.state == JOINING
    assert not bench.member.member


def test_nobody_joins_before_a_poll_or_without_a_subscription(play: Callable[..., Any]) -> None:
    bench = Bench(play)
    bench.member.subscribe(["a"])
    assert bench.step().core.calls == []
    other = Bench(play)
    other.member.polled(1000)
    assert other.step().core.calls == []


def test_what_is_assigned_is_acknowledged_and_what_goes_is_held_until_it_is_given_up(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed().answer(3, "a0", "a1")
    assert bench.member.generation == 3
    assert bench.events() == [(ASSIGN, parts("a0", "a1"))]
    assert held(bench.step().request) == {(A, 0), (A, 1)}
    assert bench.request.member_epoch == 3
    assert bench.request.subscribed_topic_names is None
    bench.answer(3, silent=True).handle()
    assert bench.member.owned == {*parts("a0", "a1")}
    bench.step(4999)
    assert bench.core.calls == []
    bench.step(1)
    assert held(bench.request) is None
    bench.answer(3, "a1", "b2")
    assert bench.events() == [(REVOKE, parts("a0")), (ASSIGN, parts("b2"))]
    assert held(bench.step().request) == {(A, 0), (A, 1), (B, 2)}, "a0 is still read"
    bench.answer(3, silent=True).handle()
    assert held(bench.request) == {(A, 1), (B, 2)}
    bench.answer(4, "a1", "b2")
    assert bench.events() == []
    assert bench.member.generation == 4


def test_what_waits_to_be_assigned_can_be_taken_back(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed().answer(3, "a0", "a1")
    bench.step().answer(4, "a1")
    assert bench.events() == [(ASSIGN, parts("a1"))]
    assert held(bench.step().request) == {(A, 1)}
    bench.answer(4, silent=True).handle()
    assert bench.member.owned == {*parts("a1")}


def test_a_target_that_changes_while_the_user_revokes_is_come_to_after(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0", "a1")
    bench.step(5000).answer(2, "a1")
    event = bench.member.events[0]
    bench.step(5000).answer(2, "a0", "a1", "b0")
    assert bench.events() == [(REVOKE, parts("a0")), (ASSIGN, [])]
    bench.member.handled(event)
    bench.handle().handle()
    assert bench.member.owned == {*parts("a0", "a1", "b0")}


@pytest.mark.parametrize("error", [FencedMemberEpoch, UnknownMemberId, GroupIdNotFound])
def test_who_is_fenced_loses_all_and_comes_again(play: Callable[..., Any], error: Any) -> None:
    bench = Bench(play).joined("a0")
    name = bench.member.member_id
    bench.step(5000).answer(0, code=error.code)
    assert (bench.member.state, bench.member.generation) == (PREPARING, -1)
    assert bench.events() == [(LOST, parts("a0"))]
    assert bench.step(10_000).core.calls == [], "the user has not heard of it"
    bench.handle()
    assert (bench.request.member_epoch, bench.request.topic_partitions, bench.request.member_id) == (0, [], name)


@pytest.mark.parametrize("joining", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        UnreleasedInstanceId,
        FencedInstanceId,
        UnsupportedAssignor,
        UnsupportedVersion,
        GroupMaxSizeReached,
        GroupAuthorizationFailed,
        InvalidRegularExpression,
    ],
)
def test_what_no_attempt_can_mend_is_told(play: Callable[..., Any], error: Any, joining: bool) -> None:
    bench = Bench(play).subscribed() if joining else Bench(play).joined("a0").step(5000)
    bench.answer(0, code=error.code)
    assert bench.member.state == FAILED
    assert isinstance(bench.member.error, error)
    assert bench.step(60_000).core.calls == []


@pytest.mark.parametrize("error", [RequestTimedOut("late"), NetworkException("gone")])
def test_after_a_lost_answer_all_is_said_again(play: Callable[..., Any], error: Exception) -> None:
    bench = Bench(play).joined("a0")
    bench.step(5000).core.fail(error)
    assert bench.core.forgotten == 1
    assert bench.step().core.calls == [], "not at once"
    request = bench.step(2000).request
    assert (request.member_epoch, request.subscribed_topic_names, held(request)) == (1, ["a", "b"], {(A, 0)})
    assert request.rebalance_timeout_ms == 300_000
    bench.answer(2, "a0", "a1")
    assert bench.events() == [(ASSIGN, parts("a1"))]


def test_what_a_late_heartbeat_is_told_is_asked_for_again(play: Callable[..., Any]) -> None:
    """One that was given up reached the coordinator after its successor, and had the answer that gave a1."""
    bench = Bench(play).joined("a0").step(5000)
    bench.core.fail(RequestTimedOut("late"))
    bench.step(2000).answer(1, "a0")
    request = bench.step(5000).request
    assert (request.rebalance_timeout_ms, request.subscribed_topic_names, held(request)) == (
        300_000,
        ["a", "b"],
        {(A, 0)},
    )
    bench.answer(1, "a0", "a1").step()
    for _ in range(20):
        bench.answer(1, silent=True).step(5000)
    assert bench.request.rebalance_timeout_ms == -1, "it is late no more"


def test_a_join_without_an_answer_is_tried_again(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed()
    bench.core.fail(RequestTimedOut("late"))
    assert bench.member.state == OUT
    assert bench.step(2000).request.member_epoch == 0


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_who_polls_too_late_leaves_and_comes_again(play: Callable[..., Any], instance: Any, epoch: int) -> None:
    bench = Bench(play, max_poll_interval_ms=9000, group_instance_id=instance).joined("a0")
    bench.step(5000).answer(1, silent=True)
    bench.step(5000)
    assert (bench.request.member_epoch, bench.request.instance_id) == (epoch, instance)
    assert bench.events() == [(LOST, parts("a0"))]
    bench.member.polled(bench.now_ms)
    bench.handle()
    assert len(bench.core.calls) == 1, "first it has left"
    bench.answer(epoch, silent=True).step()
    assert bench.request.member_epoch == 0


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_a_close_leaves_after_the_heartbeat_under_way(play: Callable[..., Any], instance: Any, epoch: int) -> None:
    bench = Bench(play, group_instance_id=instance).joined("a0").step(5000)
    bench.member.leave()
    assert (bench.member.state, bench.member.leaving, len(bench.core.calls)) == (LEFT, True, 1)
    bench.answer(1, "a0", "a1")
    assert bench.request.member_epoch == epoch
    assert bench.events() == []
    bench.core.fail(RequestTimedOut("late"))
    assert not bench.member.leaving


def test_a_close_without_a_membership_says_nothing(play: Callable[..., Any]) -> None:
    bench = Bench(play)
    bench.member.leave()
    assert (bench.member.leaving, bench.core.calls) == (False, [])


def test_a_changed_subscription_is_said_at_once(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0")
    bench.member.subscribe(["a"])
    assert bench.step().request.subscribed_topic_names == ["a"]
    assert held(bench.request) is None


def test_an_expression_is_said_and_taken_back(play: Callable[..., Any]) -> None:
    bench = Bench(play)
    bench.member.subscribe([], "a.*")
    bench.member.polled(bench.now_ms)
    bench.step()
    assert (bench.request.subscribed_topic_names, bench.request.subscribed_topic_regex) == ([], "a.*")
    bench.answer(1)
    bench.member.subscribe(["b"])
    assert bench.step().request.subscribed_topic_regex == ""
    bench.core.fail(NetworkException("gone"))
    assert bench.step(2000).request.subscribed_topic_regex == ""


def test_nothing_subscribed_leaves_and_a_new_subscription_comes_again(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0")
    bench.member.subscribe([])
    bench.step()
    assert bench.events() == [(REVOKE, parts("a0")), (ASSIGN, [])]
    bench.answer(1, silent=True).handle()
    while bench.request.member_epoch != -1:
        bench.answer(1, silent=True).step()
    bench.answer(-1, silent=True).step(10_000)
    assert (bench.member.state, bench.core.calls) == (OUT, [])
    bench.member.subscribe(["b"])
    assert bench.step().request.member_epoch == 0


def test_a_subscription_again_before_all_was_given_up_asks_for_the_whole_assignment(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0")
    bench.member.subscribe([])
    bench.step().answer(1)
    bench.member.subscribe(["a"])
    request = bench.step().request
    assert (request.subscribed_topic_names, request.rebalance_timeout_ms) == (["a"], 300_000)
    assert held(request) == {(A, 0)}
    bench.answer(2, "a0")
    bench.handle().handle()
    assert bench.member.owned == {*parts("a0")}


def test_unknown_topics_are_asked_for_by_id(play: Callable[..., Any]) -> None:
    bench = Bench(play)
    del bench.core.metadata.names[B]
    bench.subscribed().answer(1, "a0", "b1")
    assert bench.events() == [(ASSIGN, parts("a0"))]
    bench.step()
    first, second = (call.request for call in bench.core.calls)
    assert held(first) == {(A, 0)}
    assert isinstance(second, MetadataRequest)
    assert [(row.name, row.topic_id) for row in second.topics or ()] == [(None, B)]
    bench.answer(1, silent=True).handle()
    bench.core.answer(MetadataResponse(topics=[MetadataResponseTopic(100, None, topic_id=B)]))
    assert bench.events() == []
    bench.step(1000)
    bench.core.answer(MetadataResponse(topics=[MetadataResponseTopic(0, "b", topic_id=B)]))
    assert bench.events() == [(ASSIGN, parts("b1"))]


def test_a_topic_made_anew_is_another_one(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0")
    new = UUID(int=9)
    bench.core.learn("a", 4, new)
    bench.step(5000)
    rows = [AssignmentTopicPartitions(new, [0])]
    bench.core.answer(ConsumerGroupHeartbeatResponse(member_epoch=2, assignment=Assignment(rows)))
    assert bench.events() == [(REVOKE, parts("a0")), (ASSIGN, parts("a0"))]
    bench.handle()
    assert held(bench.request) == {(new, 0)}


def test_an_event_of_a_membership_that_is_over_gives_nothing(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed().answer(1, "a0")
    event = bench.member.events[0]
    bench.step().answer(0, code=FencedMemberEpoch.code)
    assert not bench.member.is_next(event)
    bench.member.handled(event)
    assert bench.member.owned == set()


def test_a_commit_that_was_stale_or_a_stranger_s(play: Callable[..., Any]) -> None:
    bench = Bench(play).joined("a0")
    bench.member.stale()
    assert bench.step().request.member_epoch == 1
    bench.member.lost(UnknownMemberId.code)
    assert bench.events() == [(LOST, parts("a0"))]
    bench.answer(2, "a0", "a1")
    assert bench.events() == [(LOST, parts("a0"))], "an answer of an earlier round"
