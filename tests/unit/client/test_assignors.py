"""Assignors by tables, by Kafka's examples, and by seeded histories; the bytes they travel in."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from logkernel.client.membership.assignors import (
    ASSIGNORS,
    CooperativeSticky,
    Range,
    RoundRobin,
    Sticky,
    make_assignors,
)
from logkernel.client.membership.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from logkernel.errors import ConfigError, InvalidRequest
from logkernel.vocabulary import TopicPartition

T = TopicPartition


def members(**wishes: str) -> dict[str, Subscription]:
    return {name: Subscription(topics.split()) for name, topics in wishes.items()}


def shown(found: dict[str, list[TopicPartition]]) -> dict[str, str]:
    return {member: " ".join(f"{topic}{index}" for topic, index in rows) for member, rows in sorted(found.items())}


@pytest.mark.parametrize(
    ("counts", "wishes", "expected"),
    [
        ({"a": 3}, {"x": "a", "y": "a"}, {"x": "a0 a1", "y": "a2"}),
        ({"a": 3, "b": 3}, {"x": "a b", "y": "a b"}, {"x": "a0 a1 b0 b1", "y": "a2 b2"}),
        ({"a": 1}, {"x": "a", "y": "a"}, {"x": "a0", "y": ""}),
        ({"a": 2, "b": 2}, {"x": "a", "y": "a b"}, {"x": "a0", "y": "a1 b0 b1"}),
        ({}, {"x": "a"}, {"x": ""}),
    ],
)
def test_range_gives_each_member_a_contiguous_run(
    counts: dict[str, int], wishes: dict[str, str], expected: dict[str, str]
) -> None:
    assert shown(Range().assign(counts, members(**wishes))) == expected


@pytest.mark.parametrize(
    ("counts", "wishes", "expected"),
    [
        ({"a": 3, "b": 3}, {"x": "a b", "y": "a b"}, {"x": "a0 a2 b1", "y": "a1 b0 b2"}),
        (
            {"a": 1, "b": 2, "c": 3},
            {"x": "a", "y": "a b", "z": "a b c"},
            {"x": "a0", "y": "b0", "z": "b1 c0 c1 c2"},
        ),
        ({"a": 2, "b": 1}, {"x": "a"}, {"x": "a0 a1"}),
    ],
)
def test_round_robin(counts: dict[str, int], wishes: dict[str, str], expected: dict[str, str]) -> None:
    assert shown(RoundRobin().assign(counts, members(**wishes))) == expected


def test_static_members_come_first_by_their_names() -> None:
    group = members(a="t", b="t", c="t")
    group["c"].instance_id, group["b"].instance_id = "1", "2"
    assert shown(Range().assign({"t": 3}, group)) == {"a": "t2", "b": "t1", "c": "t0"}


def rejoin(assignor: Any, had: dict[str, list[TopicPartition]], group: dict[str, Subscription], age: int) -> None:
    """Each member of `group` tells what it had."""
    for name, wish in group.items():
        owned = had.get(name, [])
        wish.owned = owned if assignor.cooperative else []
        wish.generation = age if name in had else -1
        wish.user_data = assignor.user_data(owned, age if name in had else -1)


def test_sticky_moves_only_what_it_must() -> None:
    sticky = Sticky()
    group = members(x="a", y="a")
    first = sticky.assign({"a": 6}, group)
    group = members(x="a", y="a", z="a")
    rejoin(sticky, first, group, 1)
    second = sticky.assign({"a": 6}, group)
    assert [len(rows) for rows in second.values()] == [2, 2, 2]
    assert set(second["x"]) <= set(first["x"])
    assert set(second["y"]) <= set(first["y"])


def test_a_claim_of_a_newer_generation_holds_and_two_of_one_age_do_not() -> None:
    sticky = Sticky()
    group = members(x="a", y="a")
    group["x"].user_data = sticky.user_data([T("a", 0), T("a", 1)], 3)
    group["y"].user_data = sticky.user_data([T("a", 0)], 4)
    assert shown(sticky.assign({"a": 2}, group)) == {"x": "a1", "y": "a0"}
    group["x"].user_data = b"\x00"
    assert shown(sticky.assign({"a": 2}, group)) == {"x": "a1", "y": "a0"}


def test_cooperative_members_get_what_is_another_s_a_round_later() -> None:
    assignor = CooperativeSticky()
    group = members(x="a", y="a")
    rejoin(assignor, {"x": [T("a", 0), T("a", 1)]}, group, 1)
    first = assignor.assign({"a": 2}, group)
    assert sorted(len(rows) for rows in first.values()) == [0, 1]
    assert first["y"] == []
    rejoin(assignor, first, group, 2)
    assert sorted(len(rows) for rows in assignor.assign({"a": 2}, group).values()) == [1, 1]


def test_a_chain_of_moves_makes_it_even() -> None:
    sticky = Sticky()
    group = members(x="a", y="a b", z="b")
    group["x"].user_data = sticky.user_data([T("a", 0), T("a", 1)], 1)
    group["y"].user_data = sticky.user_data([T("b", 0)], 1)
    assert [len(rows) for rows in sticky.assign({"a": 2, "b": 1}, group).values()] == [1, 1, 1]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@pytest.mark.parametrize("seed", range(8))
def test_every_partition_has_one_reader_who_wants_it(name: str, seed: int) -> None:
    random = Random(seed)
    assignor = ASSIGNORS[name]()
    had: dict[str, list[TopicPartition]] = {}
    for age in range(6):
        counts = {topic: random.randint(1, 9) for topic in "abc"}
        group = {
            f"m{n}": Subscription(sorted(random.sample("abcd", random.randint(1, 4))))
            for n in range(random.randint(1, 6))
        }
        for _ in range(3):  # a cooperative group comes to rest within three rounds
            rejoin(assignor, had, group, age)
            had = assignor.assign(counts, group)
            given = [row for rows in had.values() for row in rows]
            assert len(given) == len(set(given))
            assert all(row.topic in group[member].topics for member, rows in had.items() for row in rows)
        wanted = {T(t, i) for t, n in counts.items() for i in range(n) if any(t in m.topics for m in group.values())}
        assert set(given) == wanted
        if name.endswith("sticky"):
            for member, rows in had.items():
                for row in rows:
                    takers = [m for m in group if row.topic in group[m].topics]
                    assert len(rows) - min(len(had[m]) for m in takers) <= 1, member


def test_the_setting_takes_kafka_s_names_and_refuses_others() -> None:
    made = make_assignors(("org.apache.kafka.clients.consumer.RangeAssignor", "sticky", RoundRobin))
    assert [one.name for one in made] == ["range", "sticky", "roundrobin"]
    for bad in ((), ("rang",), ("range", "range")):
        with pytest.raises(ConfigError):
            make_assignors(bad)


# ---------------------------------------------------------------- bytes


def test_a_subscription_is_read_as_it_was_written() -> None:
    wish = Subscription(["a", "b"], b"data", [T("a", 1), T("a", 2), T("b", 0)], 7, "rack")
    assert decode_subscription(encode_subscription(wish)) == wish
    assert decode_assignment(encode_assignment([T("b", 0), T("a", 1)])) == [T("a", 1), T("b", 0)]
    assert decode_assignment(b"") == []


def test_bytes_of_other_clients_are_read() -> None:
    """Version 0, 1 and one of the future."""
    old = bytes.fromhex("000000000001000161ffffffff")
    assert decode_subscription(old) == Subscription(["a"])
    one = bytes.fromhex("00010000000100016100000000000000010001610000000100000002")
    assert decode_subscription(one) == Subscription(["a"], b"", [T("a", 2)])
    wish = Subscription(["a"], None, [], 3, None)
    assert decode_subscription(b"\x00\x09" + encode_subscription(wish)[2:] + b"more") == wish


@pytest.mark.parametrize(
    "data", ["", "00", "ffff00000000", "00007fffffff", "000000000001000561", "0000000000010002ffff00000000"]
)
def test_rotten_bytes_are_refused(data: str) -> None:
    with pytest.raises(InvalidRequest):
        decode_subscription(bytes.fromhex(data))
