"""Seeded histories of producers and members of a group over a network that fails, to the end of what they wrote.

Whatever happens: nothing is skipped, order is kept, no record comes twice between an assignment and its end but
after a rewind, nothing is committed that was not handed out, and in the end all was read that was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from .conftest import FAIR, ROUGH, World

CLASSIC = {"session_timeout_ms": 2500, "heartbeat_interval_ms": 200}
PROTOCOLS: dict[str, list[dict[str, Any]]] = {
    "range": [{**CLASSIC, "partition_assignment_strategy": "range"}],
    "cooperative": [{**CLASSIC, "partition_assignment_strategy": "cooperative-sticky"}],
    "kip-848": [{"group_protocol": "consumer"}],
    "moving": [{**CLASSIC, "partition_assignment_strategy": "range"}, {"group_protocol": "consumer"}],
}


def history(world: World, seed: int, protocol: str, *, rewinds: bool = False, calm: bool = False) -> None:
    """Ten virtual seconds and more: users come, go, read, dawdle and commit."""
    random = Random(seed)
    world.faults = FAIR if calm else ROUGH

    def join() -> None:
        commits = random.choice([{"auto_commit_interval_ms": 50}, {"enable_auto_commit": False}])
        world.join(**random.choice(PROTOCOLS[protocol]), **commits)

    join()
    for number in range(400):
        world.send(number)
        dice = random.random()
        if dice < 0.03 and len(world.users) < 4:
            join()
        elif dice < 0.05 and len(world.users) > 1:
            random.choice(world.users).close()
        elif dice < 0.055 and not calm:
            world.move_coordinator()
        elif dice < 0.06 and not calm:
            random.choice(world.users).busy_until_ms = world.now_ms + random.randint(500, 5000)
        elif dice < 0.09:
            user = random.choice(world.users)
            if not user.consumer.settings["enable.auto.commit"]:
                user.commit()
        elif dice < 0.12 and rewinds:
            random.choice(world.users).rewind()
        elif dice < 0.13 and not calm:
            for driver in list(world.drivers):
                for link in list(driver.links):
                    driver.cut(link)
        for user in list(world.users):
            if world.now_ms >= user.busy_until_ms and random.random() < 0.7:
                user.poll()
        world.run(random.randint(1, 60))
    world.settle()
    assert world.check() == 400


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_skipped_or_out_of_order(make_world: Callable[..., World], seed: int, protocol: str) -> None:
    world = make_world(seed)
    history(world, seed, protocol)
    kind = "ConsumerGroupHeartbeatRequest" if protocol == "kip-848" else "JoinGroupRequest"
    assert world.seen_requests[kind] > 3, "the history has rebalances"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", range(100, 102))
def test_a_rewind_is_the_only_way_back(make_world: Callable[..., World], seed: int, protocol: str) -> None:
    history(make_world(seed), seed, protocol, rewinds=True)


@pytest.mark.parametrize("protocol", ["range", "cooperative", "kip-848"])
def test_in_fair_weather_every_record_comes_once(make_world: Callable[..., World], protocol: str) -> None:
    """Members that commit before they give up share the work without an overlap."""
    for seed in (7, 8, 9, 10):
        world = make_world(seed)
        history(world, seed, protocol, calm=True)
        assert world.deliveries == 400 or world.failed_commits, "what could not be committed comes again"


def test_the_same_seed_gives_the_same_history(make_world: Callable[..., World]) -> None:
    ends = []
    for _ in range(2):
        world = make_world(3)
        history(world, 3, "moving")
        ends.append((world.now_ms, world.seen_requests))
    assert ends[0] == ends[1]
