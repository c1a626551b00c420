"""Real brokers and clients under many seeds: no history breaks a promise, and a seed tells the same story twice.

What a seed found became a named test, beside the tests of the part that it was found in.
"""

from __future__ import annotations

import asyncio

import pytest

from logkernel.testing.simulation.world import World

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_seed_breaks_a_promise(seed: int) -> None:
    world = World(seed).run()
    assert world.clients.history.operations


def test_a_seed_gives_the_same_history_twice() -> None:
    one, other = World(3).run(), World(3).run()
    assert one.stage.trace == other.stage.trace
    assert World(4).run().stage.trace_hash() != one.stage.trace_hash()


def test_a_world_without_faults_loses_no_time() -> None:
    world = World(0, schedule=()).run()
    assert world.stage.rare["session lost"] == 0
    assert world.stage.now_ms < 10_000


def test_a_world_runs_outside_of_a_loop_only() -> None:
    async def inside() -> None:
        World(0).run()

    with pytest.raises(RuntimeError, match="outside of an event loop"):
        asyncio.run(inside())
