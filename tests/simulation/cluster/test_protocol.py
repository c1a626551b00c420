"""Replication under many seeds: no history breaks a promise, and each rule that is broken on purpose is noticed.

A failure prints its seed. What a seed found becomes a test with a name.
"""

from __future__ import annotations

from functools import cache

import pytest
from mutants import MUTANTS, UNTOLD

from logkernel.testing import simulate
from logkernel.testing.simulation.protocol import Protocol
from logkernel.testing.simulation.protocol.rare import ENOUGH
from logkernel.testing.simulation.simulate import Simulation

MOST_SEEDS = 500
FIRST_SEED = 10_000
"""The plain command runs some from 0 on."""


@cache
def simulation() -> Simulation:
    return Simulation()


def history(seed: int) -> Protocol:
    return simulation().history(seed)


def test_no_seed_breaks_a_promise_and_every_rare_state_is_seen() -> None:
    assert simulate(ENOUGH, first=FIRST_SEED).unseen == []


def test_a_batch_in_which_a_log_began_anew_is_lost_as_a_whole() -> None:
    """A power cut took a batch whose second record was the first of a follower's new log; the judge asked for it."""
    history(60_534).run()


def test_a_log_that_began_anew_may_take_a_trimmed_write_again() -> None:
    """It knows nothing of the producers of what was deleted before it began, as with Kafka; the judge refused that."""
    history(71_175).run()


def test_a_seed_gives_the_same_history_twice() -> None:
    one, other = history(11).run(), history(11).run()
    assert one.trace == other.trace
    assert history(12).run().timeline.trace_hash() != one.timeline.trace_hash()


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - UNTOLD.keys()))
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    for seed in range(MOST_SEEDS):
        try:
            history(seed).run()
        except (AssertionError, RuntimeError):
            return
    pytest.fail(f"{MOST_SEEDS} seeds do not notice that {name.replace('_', ' ')}")
