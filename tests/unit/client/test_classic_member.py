"""A member of a classic group: every answer that it may get, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel.client.consumer.metrics import ConsumerMetrics
from logkernel.client.membership.base import (
    ASSIGN,
    ASSIGNING,
    FAILED,
    JOINING,
    LEFT,
    LOST,
    OUT,
    PREPARING,
    REVOKE,
    STABLE,
    SYNCING,
)
from logkernel.client.membership.classic_member import ClassicMember
from logkernel.client.membership.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from logkernel.errors import (
    FencedInstanceId,
    GroupAuthorizationFailed,
    IllegalGeneration,
    InconsistentGroupProtocol,
    LogkernelError,
    MemberIdRequired,
    NetworkException,
    RebalanceInProgress,
    UnknownMemberId,
)
from logkernel.requests.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from logkernel.vocabulary import TopicPartition


def t(*indexes: int) -> list[TopicPartition]:
    return [TopicPartition("t", index) for index in indexes]


class Bench:
    def __init__(self, play: Callable[..., Any], **settings: Any) -> None:
        self.core = play(group_id="g", **{"partition_assignment_strategy": "range", **settings})
        self.core.learn("t", 4)
        self.group = ClassicMember(self.core, self.core.settings, ConsumerMetrics(self.core.settings))
        self.now_ms = 1000

    def step(self, ms: int = 0) -> Bench:
        self.now_ms += ms
        self.group.step(self.now_ms)
        return self

    def subscribed(self) -> Bench:
        self.group.subscribe(["t"])
        self.group.polled(self.now_ms)
        return self.step()

    def follows(self, generation: int = 1) -> Bench:
        """Another member leads the round."""
        self.core.answer(JoinGroupResponse(0, generation, "range", "other", "me"))
        return self

    def given(self, *indexes: int) -> Bench:
        self.core.answer(SyncGroupResponse(0, encode_assignment(t(*indexes))))
        return self.handle()

    def handle(self) -> Bench:
        while self.group.events:
            self.group.handled(self.group.events[0])
        return self

    def member_of(self, *indexes: int) -> Bench:
        self.subscribed().follows().given(*indexes)
        assert (self.group.state, self.group.owned) == (STABLE, set(t(*indexes)))
        return self

    def events(self) -> list[tuple[str, list[TopicPartition]]]:
        return [(event.kind, event.partitions) for event in self.group.events]


@pytest.mark.parametrize(
    ("error", "state", "member_id"),
    [
        (MemberIdRequired, OUT, "new"),
        (UnknownMemberId, OUT, ""),
        (IllegalGeneration, OUT, "me"),
        (RebalanceInProgress, OUT, "me"),
        (FencedInstanceId, FAILED, ""),
        (InconsistentGroupProtocol, FAILED, ""),
        (GroupAuthorizationFailed, FAILED, ""),
    ],
)
def test_a_join_that_is_refused(play: Callable[..., Any], error: Any, state: int, member_id: str) -> None:
    bench = Bench(play)
    bench.group.member_id = "me"
    bench.subscribed()
    bench.core.answer(JoinGroupResponse(error.code, member_id="new"))
    assert (bench.group.state, bench.group.member_id) == (state, member_id)
    if state == FAILED:
        assert isinstance(bench.group.error, error)
        assert bench.step(60_000).core.calls == []
    else:
        bench.step(60_000)
        assert bench.core.asked(JoinGroupRequest).member_id == member_id


@pytest.mark.parametrize(
    ("error", "state", "member_id"),
    [
        (UnknownMemberId, OUT, ""),
        (IllegalGeneration, OUT, "me"),
        (RebalanceInProgress, OUT, "me"),
        (FencedInstanceId, FAILED, ""),
    ],
)
def test_a_synchronization_that_is_refused(play: Callable[..., Any], error: Any, state: int, member_id: str) -> None:
    bench = Bench(play).subscribed().follows()
    assert bench.group.state == SYNCING
    bench.core.answer(SyncGroupResponse(error.code))
    assert (bench.group.state, bench.group.member_id) == (state, member_id)


@pytest.mark.parametrize(
    ("error", "state", "events"),
    [
        (UnknownMemberId, PREPARING, [(LOST, t(0, 1))]),
        (IllegalGeneration, PREPARING, [(LOST, t(0, 1))]),
        (RebalanceInProgress, PREPARING, [(REVOKE, t(0, 1))]),
        (FencedInstanceId, FAILED, [(LOST, t(0, 1))]),
        (GroupAuthorizationFailed, FAILED, [(LOST, t(0, 1))]),
    ],
)
def test_a_heartbeat_s_answer(play: Callable[..., Any], error: Any, state: int, events: list[Any]) -> None:
    bench = Bench(play).member_of(0, 1).step(3000)
    assert bench.core.asked(HeartbeatRequest).generation_id == 1
    bench.core.answer(HeartbeatResponse(error.code))
    bench.step()
    assert (bench.group.state, bench.events()) == (state, events)
    if state == PREPARING:
        bench.handle().step(60_000)
        bench.core.asked(JoinGroupRequest)


def test_a_heartbeat_without_an_answer_changes_nothing(play: Callable[..., Any]) -> None:
    bench = Bench(play).member_of(0).step(3000)
    bench.core.fail(NetworkException("gone"))
    assert (bench.group.state, bench.core.forgotten) == (STABLE, 1)
    bench.step(3000)
    bench.core.asked(HeartbeatRequest)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_only_eager_members_give_up_what_they_keep(play: Callable[..., Any], strategy: str) -> None:
    bench = Bench(play, partition_assignment_strategy=strategy).member_of(0, 1)
    bench.group.rejoin()
    bench.step()
    eager = strategy == "range"
    assert bench.events() == ([(REVOKE, t(0, 1))] if eager else [])
    bench.handle().step()
    bench.follows(2)
    bench.core.answer(SyncGroupResponse(0, encode_assignment(t(1, 2))))
    assert bench.events() == ([(ASSIGN, t(1, 2))] if eager else [(REVOKE, t(0)), (ASSIGN, t(2))])
    bench.handle().step()
    assert bench.group.owned == set(t(1, 2))
    assert [type(call.request) for call in bench.core.calls] == ([] if eager else [JoinGroupRequest])


def test_the_leader_shares_out_when_it_knows_all_partitions(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed()
    rows = [
        JoinGroupResponseMember("me", encode_subscription(Subscription(["t"]))),
        JoinGroupResponseMember("x", encode_subscription(Subscription(["u"]))),
    ]
    bench.core.answer(JoinGroupResponse(0, 1, "range", "me", "me", rows))
    assert bench.step().group.state == ASSIGNING
    bench.core.learn("u", 2)
    bench.step()
    given = {row.member_id: decode_assignment(row.assignment) for row in bench.core.asked(SyncGroupRequest).assignments}
    assert given == {"me": t(0, 1, 2, 3), "x": [TopicPartition("u", 0), TopicPartition("u", 1)]}
    bench.given(0, 1, 2, 3)
    bench.core.learn("t", 5)
    bench.step()
    assert bench.events() == [(REVOKE, t(0, 1, 2, 3))], "a topic grew"


def test_bytes_that_no_member_wrote_fail_the_group(play: Callable[..., Any]) -> None:
    bench = Bench(play).subscribed()
    bench.core.answer(JoinGroupResponse(0, 1, "range", "me", "me", [JoinGroupResponseMember("me", b"\xff")]))
    assert bench.group.state == FAILED
    other = Bench(play).subscribed().follows()
    other.core.answer(SyncGroupResponse(0, b"\x00"))
    assert other.group.state == FAILED
    third = Bench(play).subscribed()
    third.core.answer(JoinGroupResponse(0, 1, "sticky", "me", "me", []))
    third.step()
    assert third.group.state == FAILED
    assert isinstance(third.group.error, LogkernelError)
    assert "did not offer" in str(third.group.error)


@pytest.mark.parametrize("instance", [None, "i"])
def test_who_polls_too_late_leaves_and_comes_again(play: Callable[..., Any], instance: Any) -> None:
    bench = Bench(play, max_poll_interval_ms=5000, group_instance_id=instance).member_of(0)
    bench.step(5001)
    assert bench.events() == [(LOST, t(0))]
    assert [type(call.request) for call in bench.core.calls] == ([] if instance else [LeaveGroupRequest])
    bench.core.calls.clear()
    bench.handle().step()
    assert bench.core.calls == [], "not before a poll"
    bench.group.polled(bench.now_ms)
    bench.step()
    assert bench.core.asked(JoinGroupRequest).member_id == ("me" if instance else "")


def test_an_answer_of_an_earlier_round_is_not_looked_at(play: Callable[..., Any]) -> None:
    bench = Bench(play, max_poll_interval_ms=5000).subscribed()
    bench.step(5001)
    join = bench.core.calls.pop(0)
    join.done(JoinGroupResponse(0, 1, "range", "other", "me"), None)
    assert (bench.group.state, bench.group.member) == (OUT, False)


@pytest.mark.parametrize(
    ("code", "member_id"), [(UnknownMemberId.code, ""), (IllegalGeneration.code, "me")], ids=["unknown", "generation"]
)
def test_a_commit_that_was_a_stranger_s(play: Callable[..., Any], code: int, member_id: str) -> None:
    bench = Bench(play).member_of(0)
    bench.group.lost(code)
    assert (bench.group.member, bench.group.member_id) == (False, member_id)
    assert bench.events() == [(LOST, t(0))]


def test_a_changed_subscription_joins_again_and_none_leaves(play: Callable[..., Any]) -> None:
    bench = Bench(play).member_of(0)
    bench.group.subscribe(["t", "u"])
    bench.step().handle().step()
    bench.core.asked(JoinGroupRequest)
    bench.follows(2).given(1)
    bench.group.subscribe([])
    bench.step()
    assert bench.events() == [(REVOKE, t(1))]
    bench.handle().step()
    assert bench.core.asked(LeaveGroupRequest).member_id == "me"
    assert (bench.group.state, bench.group.member) == (OUT, False)


@pytest.mark.parametrize(("instance", "leaves"), [(None, True), ("i", False)])
def test_a_close(play: Callable[..., Any], instance: Any, leaves: bool) -> None:
    bench = Bench(play, group_instance_id=instance).member_of(0)
    bench.group.leave()
    assert (bench.group.state, bench.group.leaving, len(bench.core.calls)) == (LEFT, leaves, int(leaves))
    bench.group.leave()
    assert len(bench.core.calls) == int(leaves)
    assert bench.step(60_000).group.state == LEFT


def test_a_join_under_way_waits_as_long_as_the_slowest_member(play: Callable[..., Any]) -> None:
    bench = Bench(play, max_poll_interval_ms=70_000).subscribed()
    assert bench.group.state == JOINING
    assert bench.core.calls[0].timeout_ms == 75_000
