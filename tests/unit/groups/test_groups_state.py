"""One group: the table of its transitions, the vote, and what a subscription says."""

from __future__ import annotations

import struct

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.services.groups.settings import NAMES, GroupSettings
from logkernel.plugins.services.groups.state import (
    TRANSITIONS,
    ClassicMember,
    Event,
    Group,
    State,
    subscribed_topics,
)


def member(name: str, *protocols: str) -> ClassicMember:
    return ClassicMember(name, None, name, "", 1_000, 1_000, dict.fromkeys(protocols, b""))


def group_of(*members: ClassicMember) -> Group:
    group = Group("g", State.PREPARING, protocol_type="consumer")
    for each in members:
        group.add(each)
    return group


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        ([("range",)], "range"),
        ([("a", "b"), ("b", "a"), ("b",)], "b"),  # a is not known to all
        ([("a", "b"), ("a", "b"), ("b", "a")], "a"),  # two votes to one
        ([("a", "b"), ("b", "a")], "a"),  # a tie: the first vote
        ([("x", "a"), ("y", "a")], "a"),  # one votes for what all know
    ],
)
def test_the_vote(members: list[tuple[str, ...]], chosen: str) -> None:
    group = group_of(*(member(f"m{number}", *protocols) for number, protocols in enumerate(members)))
    assert group.select_protocol() == chosen


def test_one_protocol_must_be_known_to_all() -> None:
    group = group_of(member("m1", "a", "b"), member("m2", "b"))
    assert group.accepts("consumer", ["b", "c"])
    assert not group.accepts("consumer", ["a", "c"])
    assert not group.accepts("connect", ["b"])
    group.remove("m2")
    assert group.accepts("consumer", ["a"])
    assert group.known_by == {"a": 1, "b": 1}


def test_what_the_table_does_not_have_is_a_fault() -> None:
    for state in State:
        for event in Event:
            group = Group("g", state)
            if (state, event) in TRANSITIONS:
                group.move(event)
                assert group.state is TRANSITIONS[state, event]
            else:
                with pytest.raises(RuntimeError, match=event.value):
                    group.move(event)
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.DEAD}
    assert set(TRANSITIONS.values()) == set(State)


def subscription(*topics: str, version: int = 3) -> bytes:
    body = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", version, len(topics)) + body + b"\xff\xff\xff\xff"


def test_a_subscription_of_any_version_is_read() -> None:
    assert subscribed_topics(subscription("a", "orders")) == ["a", "orders"]
    assert subscribed_topics(subscription(version=0)) == []


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\0\0",
        b"\xff\xff\0\0\0\0",
        struct.pack(">hi", 0, 2**31 - 1),
        struct.pack(">hih", 0, 1, 9),
        struct.pack(">hih", 0, 1, -1),
        struct.pack(">hih", 0, 1, 1) + b"\xff",
    ],
)
def test_what_is_no_subscription_is_not_read(junk: bytes) -> None:
    assert subscribed_topics(junk) is None


def test_settings_by_kafkas_names() -> None:
    found = GroupSettings.read({"group.max.size": "5", "offsets.retention.minutes": 2, "unrelated": object()})
    assert (found.max_size, found.retention_ms, found.initial_rebalance_delay_ms) == (5, 120_000, 3_000)
    assert set(NAMES) == set(GroupSettings.__slots__) - {"__weakref__", "consumer", "task_assignors"}
    for value in ("x", -1, object()):
        with pytest.raises(ConfigError, match=r"group\.max\.size"):
            GroupSettings.read({"group.max.size": value})


@pytest.mark.parametrize("kind", ["consumer", "streams"])
@pytest.mark.parametrize(
    ("given", "less", "more"),
    [
        ({"session.timeout.ms": 44_999}, "min.session.timeout.ms=45000", "session.timeout.ms=44999"),
        ({"session.timeout.ms": 60_001}, "session.timeout.ms=60001", "max.session.timeout.ms=60000"),
        ({"max.session.timeout.ms": 44_999}, "min.session.timeout.ms=45000", "max.session.timeout.ms=44999"),
        ({"heartbeat.interval.ms": 4_999}, "min.heartbeat.interval.ms=5000", "heartbeat.interval.ms=4999"),
        ({"heartbeat.interval.ms": 15_001}, "heartbeat.interval.ms=15001", "max.heartbeat.interval.ms=15000"),
        ({"assignment.interval.ms": 15_001}, "assignment.interval.ms=15001", "max.assignment.interval.ms=15000"),
        (
            {"max.heartbeat.interval.ms": 90_000, "heartbeat.interval.ms": 45_000},
            "heartbeat.interval.ms=45000",
            "session.timeout.ms=45000",
        ),
    ],
)
def test_settings_that_contradict_one_another_are_refused(
    kind: str, given: dict[str, int], less: str, more: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        GroupSettings.read({f"group.{kind}.{name}": value for name, value in given.items()})
    equal = "" if less == "heartbeat.interval.ms=45000" else " or equal to"
    assert str(refused.value) == (
        f"group.{kind}.{less} must be less than{equal} group.{kind}.{more}; raise the one or lower the other"
    )


def test_standbys_have_an_upper_bound_alone() -> None:
    assert GroupSettings.read({"group.streams.num.standby.replicas": 2})
    with pytest.raises(ConfigError, match=r"num\.standby\.replicas=3 must be .*\.max\.standby\.replicas=2"):
        GroupSettings.read({"group.streams.num.standby.replicas": 3})
