"""Seeded histories of a producer against a cluster that fails in every way that a network can."""

from __future__ import annotations

from random import Random

import pytest
from modelled import Faults, World

ROUGH = Faults(0.08, 0.08, 0.05, 0.08, 0.1, 0.1, 40)
GENTLE = Faults(longest_ms=5)


def history(seed: int, faults: Faults, **settings: object) -> World:
    """Two virtual seconds of sending while leaders move; then fair weather until all is settled."""
    world = World(seed, faults, partitions=3, **settings)
    random = Random(seed)
    for number in range(300):
        world.send(random.randrange(3), b"%06d" % number + bytes(random.randrange(60)))
        if random.random() < 0.2:
            world.run(random.randrange(1, 40))
        if random.random() < 0.02:
            world.cluster.move()
    world.cluster.faults = world.faults = GENTLE
    world.settle()
    return world


@pytest.mark.parametrize("seed", range(60))
def test_everything_is_written_once_and_in_order(seed: int) -> None:
    world = history(seed, ROUGH, batch_size=200, linger_ms=3, request_timeout_ms=500)
    assert world.check(all_acknowledged=True) == len(world.sent) == 300


@pytest.mark.parametrize("seed", range(60))
def test_what_expires_leaves_no_double_and_no_disorder(seed: int) -> None:
    world = history(
        seed, ROUGH, batch_size=120, linger_ms=3, request_timeout_ms=100, delivery_timeout_ms=400, retry_backoff_ms=10
    )
    acknowledged = world.check(all_acknowledged=False)
    assert 0 < acknowledged <= 300


SLOW = Faults(0.05, 0.1, 0.03, 0.03, 0.0, 0.0, 150)
"""Requests that were given up arrive all the same, after those that took their place."""


@pytest.mark.parametrize("seed", range(40))
def test_what_arrives_after_it_was_given_up_is_no_double(seed: int) -> None:
    world = history(
        seed,
        SLOW,
        batch_size=120,
        linger_ms=3,
        request_timeout_ms=200,
        delivery_timeout_ms=450,
        retry_backoff_ms=10,
        reconnect_backoff_ms=5,
    )
    world.check(all_acknowledged=False)


@pytest.mark.parametrize("seed", range(20))
def test_batches_that_are_too_large_are_split_in_order(seed: int) -> None:
    world = World(
        seed, Faults(0.05, 0.05, 0.02, 0.0, 0.0, 0.0, 20), partitions=2, batch_size=1000, request_timeout_ms=500
    )
    world.cluster.largest_batch = 250
    for number in range(200):
        world.send(number % 2, b"%05d" % number + bytes(20))
        if number % 20 == 0:
            world.run(10)
    world.cluster.faults = world.faults = GENTLE
    world.settle()
    assert world.check(all_acknowledged=True) == 200
    assert any(batch.children for _, _, batch, _ in world.sent)


@pytest.mark.parametrize("seed", range(20))
def test_one_record_that_is_refused_does_not_stop_the_others(seed: int) -> None:
    world = World(seed, Faults(refuse=0.1, longest_ms=20), partitions=1, batch_size=0, request_timeout_ms=500)
    world.cluster.largest_batch = 300
    for number in range(60):
        world.send(0, b"%05d" % number + bytes(400 if number % 17 == 5 else 10))
        if number % 7 == 0:
            world.run(5)
    world.cluster.faults = world.faults = GENTLE
    world.settle()
    acknowledged = world.check(all_acknowledged=False)
    refused = [value for _, value, batch, index in world.sent if batch.place(index)[0].error is not None]
    assert {len(value) for value in refused} == {405}
    assert acknowledged == 60 - len(refused)


@pytest.mark.parametrize("seed", range(20))
def test_one_in_flight_keeps_the_order_without_sequences(seed: int) -> None:
    faults = Faults(refuse=0.15, connect_fails=0.05, longest_ms=20)  # no answer is lost: no doubles to expect
    world = history(
        seed,
        faults,
        batch_size=150,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=1,
        request_timeout_ms=500,
    )
    assert world.check(all_acknowledged=True) == 300


def test_without_sequences_a_lost_answer_doubles() -> None:
    """The model is no gentler than a broker: without idempotence the same history shows doubles."""
    doubles = 0
    for seed in range(10):
        world = World(seed, Faults(lose_answer=0.3, longest_ms=10), 1, enable_idempotence=False, batch_size=100)
        for number in range(50):
            world.send(0, b"%d" % number)
            world.run(3)
        world.cluster.faults = world.faults = GENTLE
        world.settle()
        values = world.cluster.partitions[0].values
        doubles += len(values) - len(set(values))
    assert doubles > 0


def test_the_same_seed_gives_the_same_history() -> None:
    one, two = (history(7, ROUGH, batch_size=200) for _ in range(2))
    assert one.now == two.now
    assert [part.values for part in one.cluster.partitions] == [part.values for part in two.cluster.partitions]
