"""The built-in assignors keep the contract; and what each of them is for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from uuid import UUID

import pytest

from logkernel.contracts import Assignor, GroupFacts, Subscriber
from logkernel.kernel import Kernel
from logkernel.testing.contracts import AssignorContract

A, B, C = (UUID(int=number) for number in (1, 2, 3))
Part = tuple[UUID, int]
Found = dict[str, set[Part]]


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


class TestUniform(AssignorContract):
    name = "uniform"


class TestRange(AssignorContract):
    name = "range"


@pytest.mark.parametrize("seed", range(20))
def test_uniform_levels_members_who_read_the_same(uniform: Assignor, seed: int) -> None:
    chance = random.Random(seed)
    before: Found = {}
    for _ in range(6):
        shared = tuple(chance.sample((A, B, C), chance.randint(1, 3)))
        members = {f"m{number}": shared for number in chance.sample(range(9), chance.randint(1, 6))}
        before = run(uniform, group(members, before, **{name: chance.randint(1, 7) for name in "abc"}))
        counts = [len(parts) for parts in before.values()]
        assert max(counts) - min(counts) <= 1


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
