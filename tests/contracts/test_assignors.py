"""What every assignor owes to the groups that it serves, over random groups; and what each of ours is for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from logkernel.contracts import Assignor, GroupFacts, Subscriber
from logkernel.kernel import Kernel

A, B, C = (UUID(int=number) for number in (1, 2, 3))
Part = tuple[UUID, int]
Found = dict[str, set[Part]]


@pytest.fixture(scope="module", params=["uniform", "range"])
def assignor(request: Any) -> Assignor:
    found = Kernel().assignor(request.param)
    assert isinstance(found, Assignor)
    assert found.name == request.param
    return found


@pytest.fixture
def uniform() -> Assignor:
    return Kernel().assignor("uniform")


@pytest.fixture
def by_range() -> Assignor:
    return Kernel().assignor("range")


def group(
    members: Mapping[str, tuple[UUID, ...]], before: Mapping[str, set[Part]] | None = None, **sizes: int
) -> GroupFacts:
    ids = {"a": A, "b": B, "c": C}
    rows = {
        name: Subscriber(frozenset(topics), frozenset((before or {}).get(name, ())))
        for name, topics in sorted(members.items())
    }
    read = {topic for member in rows.values() for topic in member.topics}
    return GroupFacts(rows, {ids[name]: size for name, size in sizes.items() if ids[name] in read})


def run(assignor: Assignor, facts: GroupFacts) -> Found:
    found = assignor.assign(facts)
    return {name: set(found.get(name, ())) for name in facts.members}


def check(facts: GroupFacts, found: Found) -> None:
    given = [part for parts in found.values() for part in parts]
    assert len(given) == len(set(given))
    for name, parts in found.items():
        assert {part[0] for part in parts} <= facts.members[name].topics
    wanted = {(topic, number) for topic, size in facts.partitions.items() for number in range(size)}
    assert set(given) == wanted


@pytest.mark.parametrize("seed", range(40))
def test_every_partition_has_one_reader_who_subscribes(assignor: Assignor, seed: int) -> None:
    chance = random.Random(seed)
    before: Found = {}
    for _ in range(6):
        alike = chance.random() < 0.5
        shared = tuple(chance.sample((A, B, C), chance.randint(1, 3)))
        members = {
            f"m{number}": shared if alike else tuple(chance.sample((A, B, C), chance.randint(0, 3)))
            for number in chance.sample(range(9), chance.randint(1, 6))
        }
        sizes = {name: chance.randint(1, 7) for name in "abc"}
        facts = group(members, before, **sizes)
        found = run(assignor, facts)
        check(facts, found)
        assert run(assignor, facts) == found, "the same facts, the same assignment"
        if alike and assignor.name == "uniform":
            counts = [len(parts) for parts in found.values()]
            assert max(counts) - min(counts) <= 1
        before = found


def test_uniform_moves_as_little_as_it_can(uniform: Assignor) -> None:
    alone = run(uniform, group({"m1": (A,)}, a=5))
    two = run(uniform, group({"m1": (A,), "m2": (A,)}, alone, a=5))
    assert {name: len(parts) for name, parts in two.items()} == {"m1": 3, "m2": 2}
    assert two["m1"] < alone["m1"]
    back = run(uniform, group({"m2": (A,), "m3": (A,)}, two, a=5))
    assert two["m2"] <= back["m2"]
    assert run(uniform, group({"m2": (A,), "m3": (A,)}, back, a=5)) == back
    grown = run(uniform, group({"m2": (A,), "m3": (A,)}, back, a=8))
    assert all(back[name] <= grown[name] for name in back)


def test_uniform_levels_members_who_read_different_topics(uniform: Assignor) -> None:
    members = {"m1": (A, B), "m2": (A,), "m3": (B, C)}
    lopsided = {"m1": {(A, number) for number in range(6)} | {(B, 0)}}
    found = run(uniform, group(members, lopsided, a=6, b=1, c=2))
    assert {name: len(parts) for name, parts in found.items()} == {"m1": 3, "m2": 3, "m3": 3}


def test_range_gives_one_member_the_same_of_each_topic(by_range: Assignor) -> None:
    found = run(by_range, group({"m1": (A, B), "m2": (A, B)}, a=3, b=3))
    assert found["m1"] == {(A, 0), (A, 1), (B, 0), (B, 1)}
    assert found["m2"] == {(A, 2), (B, 2)}


def test_range_goes_by_instance_ids_first(by_range: Assignor) -> None:
    rows = {"m1": Subscriber(frozenset({A}), frozenset()), "m2": Subscriber(frozenset({A}), frozenset(), "z")}
    found = by_range.assign(GroupFacts(rows, {A: 3}))
    assert sorted(found["m2"]) == [(A, 0), (A, 1)]
