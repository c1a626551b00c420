"""Replication under many seeds: no history breaks a promise, and each rule that is broken on purpose is noticed.

A failure prints its seed. What a seed found becomes a test with a name.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from mutants import MUTANTS

from logkernel.contracts import ElectionStrategy
from logkernel.kernel import Kernel
from logkernel.testing.simulation.protocol import Protocol
from logkernel.testing.simulation.protocol.rare import ENOUGH, RARE
from logkernel.testing.simulation.protocol.schedule import World

MOST_SEEDS = 400
NOT_NOTICED = {
    "a_leader_notes_no_epoch_until_it_writes", "answers_of_an_older_epoch_are_taken",
    "the_epoch_of_a_fetch_is_not_checked", "an_expansion_counts_only_when_it_is_confirmed",
    "who_is_behind_the_epochs_start_joins", "a_refusal_of_an_older_attempt_counts", "the_dead_may_join",
    "a_reborn_followers_old_fetch_counts", "a_stale_leader_writes_the_isr", "an_older_partition_epoch_is_written",
    "a_controller_writes_without_its_term", "a_write_without_an_answer_is_taken_for_failed",
    "an_order_for_an_earlier_life_is_obeyed", "of_two_that_are_gone_one_is_elected_for_the_other",
    "a_controller_behind_the_leader_fences_it",
}  # fmt: skip
"""The workload is too mild for these still."""


@cache
def election(name: str) -> ElectionStrategy:
    return Kernel().election(name)


def history(seed: int) -> Protocol:
    world = World.draw(seed)
    return Protocol(seed, election("unclean" if world.unclean else "clean"), world=world)


def test_no_seed_breaks_a_promise_and_every_rare_state_is_seen() -> None:
    rare: Counter[str] = Counter()
    for seed in range(ENOUGH):
        rare.update(history(seed).run().rare)
    assert [name for name in RARE if not rare[name]] == []


def test_a_seed_gives_the_same_history_twice() -> None:
    one, other = history(11).run(), history(11).run()
    assert one.trace == other.trace
    assert history(12).run().timeline.trace_hash() != one.timeline.trace_hash()


@pytest.mark.parametrize("name", sorted(MUTANTS.keys() - NOT_NOTICED))
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    for seed in range(MOST_SEEDS):
        try:
            history(seed).run()
        except (AssertionError, RuntimeError):
            return
    pytest.fail(f"{MOST_SEEDS} seeds do not notice that {name.replace('_', ' ')}")
