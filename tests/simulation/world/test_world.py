"""Real brokers and clients under many seeds: no history breaks a promise, and each rule that is broken on purpose is
noticed.

What a seed found became a named test, beside the tests of the part that it was found in.
"""

from __future__ import annotations

import asyncio
import threading

import pytest
from world_mutants import MUTANTS

from logkernel.contracts import Candidates, Elected
from logkernel.hookspecs import hookimpl
from logkernel.testing import SimulationFailed, simulate
from logkernel.testing.simulation.world import World
from logkernel.testing.simulation.world.rare import ENOUGH

FIRST_SEED = 150
MOST_SEEDS = 20
"""Of which one has to notice a mutant; most are noticed by the first few."""


@pytest.mark.timeout(900)  # as many seeds as the rare states need, on a busy machine
def test_no_seed_breaks_a_promise_and_every_rare_state_is_seen() -> None:
    assert simulate(ENOUGH, first=FIRST_SEED, level="world").unseen == []


@pytest.mark.parametrize("seed", [40013, 40168, 40276, 40633, 70741])
def test_what_the_simulation_itself_did_wrong(seed: int) -> None:
    """The flush of a broker that was killed failed unheard; what was held back reached a disk that was to fail after
    the healing; a power cut struck a broker whose disk had failed as it started, and its logs were taken for
    whole; one struck a follower that the controller then took into the in-sync replicas, as it was proposed before;
    what an unclean election lost was held against a leader whose log begins behind it, and what the leader before had
    trimmed was not counted to it."""
    World(seed).run()


def test_a_seed_gives_the_same_history_twice() -> None:
    one, other = World(3).run(), World(3).run()
    assert one.stage.trace == other.stage.trace
    assert World(4).run().stage.trace_hash() != one.stage.trace_hash()


def test_a_world_begins_no_thread() -> None:
    before = set(threading.enumerate())
    World(3).run()
    assert set(threading.enumerate()) <= before


def test_a_world_runs_outside_of_a_loop_only() -> None:
    async def inside() -> None:
        World(0).run()

    with pytest.raises(RuntimeError, match="outside of an event loop"):
        asyncio.run(inside())


class Nobody:
    def elect(self, candidates: Candidates) -> Elected | None:
        return None


class Plugin:
    @hookimpl
    def logkernel_election(self, name: str) -> Nobody | None:
        return Nobody() if name == "nobody" else None


def test_a_failure_names_its_seed_few_faults_and_the_command_that_replays_it() -> None:
    with pytest.raises(SimulationFailed, match="Replay it: logkernel simulate --replay ") as failed:
        simulate(1, first=2, level="world", election="nobody", plugins=[Plugin()])
    assert len(failed.value.faults) <= 2
    assert f"--replay {failed.value.seed} --level world --election nobody" in str(failed.value)
    assert failed.value.trace[-1].endswith(failed.value.what)


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_broken_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name](monkeypatch)
    for seed in range(MOST_SEEDS):
        try:
            World(seed).run()
        except Exception:
            return
    pytest.fail(f"{MOST_SEEDS} seeds do not notice that {name.replace('_', ' ')}")
