"""The pure parts of KIP-848 groups: a member's states, settings, what an outside assignor may not do."""

from __future__ import annotations

from collections.abc import Collection
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve

from logkernel.errors import ConfigError, FencedMemberEpoch, InvalidRegularExpression, UnknownServerError
from logkernel.plugins.services.groups.by_epochs.steps import TRANSITIONS, Finding
from logkernel.plugins.services.groups.by_epochs.values import CurrentFacts, MemberState
from logkernel.plugins.services.groups.consumer import regex, target
from logkernel.plugins.services.groups.consumer.reconcile import Goal, reconcile
from logkernel.plugins.services.groups.consumer.records import MemberFacts, Part
from logkernel.plugins.services.groups.consumer.settings import ConsumerSettings
from logkernel.plugins.services.groups.consumer.state import ConsumerGroup, ConsumerMember

T, U = UUID(int=1), UUID(int=2)
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState
NOTHING = CurrentFacts[Part](0, 0, STABLE)


def parts(*numbers: int, topic: UUID = T) -> set[Part]:
    return {(topic, number) for number in numbers}


def goal(
    epoch: int,
    wanted: Collection[Part],
    held: Collection[Part] | None = None,
    others: Collection[Part] = (),
    readable: Collection[UUID] = (T, U),
) -> Goal:
    return Goal(epoch, wanted, readable, dict.fromkeys(others, "other"), held)


def member(
    state: MemberState, epoch: int, assigned: Collection[Part], revoking: Collection[Part] = ()
) -> ConsumerMember:
    current = CurrentFacts(epoch, epoch, state, dict.fromkeys(assigned, 3), dict.fromkeys(revoking, 3))
    return ConsumerMember("m", MemberFacts(), current)


CASES = [
    ("at its goal", member(STABLE, 5, parts(0)), goal(5, parts(0)), (STABLE, 5, parts(0), set())),
    ("gets what is free", member(STABLE, 5, parts(0)), goal(6, parts(0, 1)), (STABLE, 6, parts(0, 1), set())),
    (
        "waits for others",
        member(STABLE, 5, parts(0)),
        goal(6, parts(0, 1, 2), None, parts(2)),
        (UNRELEASED, 6, parts(0, 1), set()),
    ),
    (
        "gives up first",
        member(STABLE, 5, parts(0, 1)),
        goal(6, parts(0, 2), parts(0, 1)),
        (UNREVOKED, 5, parts(0), parts(1)),
    ),
    (
        "did not say what it holds",
        member(STABLE, 5, parts(0, 1)),
        goal(6, parts(0)),
        (UNREVOKED, 5, parts(0), parts(1)),
    ),
    (
        "has given up already",
        member(STABLE, 5, parts(0, 1)),
        goal(6, parts(0), parts(0)),
        (STABLE, 6, parts(0), set()),
    ),
    (
        "still holds",
        member(UNREVOKED, 5, parts(0), parts(1)),
        goal(7, parts(0, 2), parts(0, 1)),
        (UNREVOKED, 5, parts(0), parts(1)),
    ),
    (
        "has given up",
        member(UNREVOKED, 5, parts(0), parts(1)),
        goal(7, parts(0, 2), parts(0)),
        (STABLE, 7, parts(0, 2), set()),
    ),
    (
        "has given up, and must again",
        member(UNREVOKED, 5, parts(0, 3), parts(1)),
        goal(9, parts(0), parts(0, 3)),
        (UNREVOKED, 6, parts(0), parts(3)),
    ),
    (
        "nothing is free yet",
        member(UNRELEASED, 6, parts(0)),
        goal(6, parts(0, 1), None, parts(1)),
        (UNRELEASED, 6, parts(0), set()),
    ),
    (
        "what it waited for is free",
        member(UNRELEASED, 6, parts(0)),
        goal(6, parts(0, 1)),
        (STABLE, 6, parts(0, 1), set()),
    ),
    (
        "the goal moved on",
        member(UNRELEASED, 6, parts(0, 1)),
        goal(8, parts(1), parts(0, 1)),
        (UNREVOKED, 6, parts(1), parts(0)),
    ),
    (
        "a target older than its subscription",
        member(STABLE, 5, parts(0)),
        goal(6, parts(0) | parts(0, topic=U), None, (), (T,)),
        (STABLE, 6, parts(0), set()),
    ),
    ("of a later Kafka", member(UNKNOWN, 5, parts(0)), goal(6, parts(0), ()), (STABLE, 6, parts(0), set())),
]


@pytest.mark.parametrize(("name", "before", "to", "after"), CASES, ids=[case[0] for case in CASES])
def test_a_member_on_its_way(name: str, before: ConsumerMember, to: Goal, after: tuple[Any, ...]) -> None:
    found = reconcile(before, to, False)
    assert (found.state, found.epoch, set(found.assigned), set(found.revoking)) == after
    for part, since in found.assigned.items():
        assert since == (3 if part in before.assigned else found.epoch)
    if found != before:
        assert found.previous_epoch == before.epoch


def test_an_unknown_state_is_left_without_partitions_alone() -> None:
    for held in (None, parts(0)):
        with pytest.raises(FencedMemberEpoch):
            reconcile(member(UNKNOWN, 5, parts(0)), goal(6, parts(0), held), False)


@pytest.mark.parametrize("state", [STABLE, UNREVOKED])
def test_what_is_not_subscribed_to_any_more_goes_at_once(state: MemberState) -> None:
    revoking = parts(7) if state is UNREVOKED else ()
    before = member(state, 5, parts(0) | parts(0, topic=U), revoking)
    holds = goal(5, before.assigned, None, (), (T,))
    found = reconcile(before, holds, True)
    assert (found.state, found.epoch, set(found.assigned)) == (UNREVOKED, 5, parts(0))
    assert set(found.revoking) == parts(0, topic=U) | set(revoking)
    assert reconcile(before, holds, False) == before, "only a change of the subscription has it looked at"
    if state is STABLE:
        dropped = reconcile(before, evolve(holds, held=parts(0)), True)
        assert (dropped.state, set(dropped.assigned), dropped.revoking) == (STABLE, parts(0), {})


def test_every_state_has_a_way_on() -> None:
    for state in (STABLE, UNREVOKED, UNRELEASED):
        for finding in Finding:
            assert TRANSITIONS[state, finding] in (STABLE, UNREVOKED, UNRELEASED)
    assert (UNKNOWN, Finding.MUST_REVOKE) not in TRANSITIONS, "it begins anew without partitions"


# ---------------------------------------------------------------- settings


def test_settings_by_kafkas_names() -> None:
    assert ConsumerSettings.read({}) == ConsumerSettings()
    found = ConsumerSettings.read(
        {
            "group.consumer.max.size": "7",
            "group.consumer.assignors": "range",
            "group.consumer.migration.policy": "Upgrade",
        }
    )
    assert (found.max_size, found.assignors, found.upgrades, found.downgrades) == (7, ("range",), True, False)


@pytest.mark.parametrize(("name", "value"), [("max.size", "x"), ("max.size", -1), ("migration.policy", "sideways")])
def test_settings_that_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        ConsumerSettings.read({f"group.consumer.{name}": value})


# ---------------------------------------------------------------- assignors and expressions


class Greedy:
    """An assignor from outside that does as it is told."""

    name = "greedy"

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def assign(self, group: Any) -> Any:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


@pytest.mark.parametrize(
    "gives",
    [
        {"m1": parts(0), "m2": parts(0)},
        {"m1": parts(4)},
        {"m1": parts(-1)},
        {"m2": parts(0, topic=U)},
        ValueError("out of my depth"),
    ],
)
def test_what_an_assignor_may_not_do(gives: Any) -> None:
    with pytest.raises(UnknownServerError, match="greedy"):
        made(gives)


def test_who_is_left_out_gets_nothing() -> None:
    assert made({"m1": parts(0), "stranger": parts(1)}) == {"m1": frozenset(parts(0)), "m2": frozenset()}


def made(gives: Any) -> dict[str, frozenset[Part]]:
    coordinator: Any = SimpleNamespace(assignors={"greedy": Greedy(gives)})
    topics = target.Topics({"t": T, "u": U}, {T: 4, U: 1})
    members = {
        "m1": ConsumerMember("m1", MemberFacts(topics=("t", "u")), NOTHING),
        "m2": ConsumerMember("m2", MemberFacts(topics=("t", "gone")), NOTHING),
    }
    return target.make(coordinator, ConsumerGroup(), members, {}, topics)


@pytest.mark.parametrize(
    ("expression", "name", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("^orders.*", "orders-eu", True),
        (r"\p{L}+", "é", True),
        (r"(?i)ORDERS", "orders", True),
        ("a|b", "ab", False),
        ("(a+)+$", "a" * 2_000 + "b", False),
    ],
)
def test_expressions_match_whole_names(expression: str, name: str, matches: bool) -> None:
    assert bool(regex.compiled(expression).fullmatch(name)) is matches


@pytest.mark.parametrize("expression", ["(", "a**", r"(?=x)", r"(a)\1", "[z-a]", "x{1001}", "\ud800"])
def test_expressions_that_are_refused(expression: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        regex.compiled(expression)
