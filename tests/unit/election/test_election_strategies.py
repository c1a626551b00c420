"""The tables of both strategies' docstrings."""

from __future__ import annotations

import pytest

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.plugins.election import clean, unclean

CLEAN = [
    ("123", "123", "123", Elected(1, (1, 2, 3))),
    ("123", "123", "23", Elected(2, (2, 3))),
    ("123", "32", "23", Elected(2, (3, 2))),
    ("123", "3", "123", Elected(3, (3,))),
    ("123", "1", "23", None),
    ("123", "123", "", None),
]
UNCLEAN = [
    *CLEAN[:4],
    ("123", "1", "23", Elected(2, (2,), clean=False)),
    ("321", "1", "23", Elected(3, (3,), clean=False)),
    ("123", "1", "3", Elected(3, (3,), clean=False)),
    ("123", "123", "", None),
    ("123", "1", "9", None),
]
CASES = [(clean.Clean(), *case) for case in CLEAN] + [(unclean.Unclean(), *case) for case in UNCLEAN]


@pytest.mark.parametrize(("strategy", "assignment", "isr", "alive", "expected"), CASES)
def test_a_strategy_elects_by_assignment_isr_and_life(
    strategy: ElectionStrategy, assignment: str, isr: str, alive: str, expected: Elected | None
) -> None:
    candidates = Candidates(tuple(map(int, assignment)), tuple(map(int, isr)), frozenset(map(int, alive)))
    assert isinstance(strategy, ElectionStrategy)
    assert strategy.elect(candidates) == expected


def test_clean_stays_clean_even_where_unclean_is_allowed() -> None:
    assert clean.Clean().elect(Candidates((1, 2), (1,), frozenset({2}), unclean_allowed=True)) is None


def test_each_plugin_answers_to_its_own_name_only() -> None:
    assert isinstance(clean.logkernel_election("clean"), clean.Clean)
    assert isinstance(unclean.logkernel_election("unclean"), unclean.Unclean)
    assert clean.logkernel_election("unclean") is unclean.logkernel_election("clean") is None
    assert [*clean.logkernel_names(), *unclean.logkernel_names()] == [("election", "clean"), ("election", "unclean")]
