"""Power cuts and disk errors at every operation of appends, rewrites and drops: no key loses its last value."""

from __future__ import annotations

import pytest
from compacted_world import World, guarded, no_codec

from logkernel.errors import KafkaStorageError, RewriteStopped
from logkernel.storage.compaction.rewriting import COPY
from logkernel.storage.names import SWAP
from logkernel.storage.simdisk import PowerCut, SimulatedDisk


def live(seed: int, new_ledger, store_type, lives: int = 4) -> int:
    world = World(seed, new_ledger, store_type)
    disk = SimulatedDisk(seed)
    for _ in range(lives):
        disk.fail_at(disk.operations + world.random.randint(1, 250), None)

        def work(disk=disk):
            try:
                world.boot(disk)
                for _ in range(150):
                    world.step()
            except PowerCut:
                pass

        guarded(world, seed, work)
        world.trail.append("crash")
        disk = disk.crash()

        def judge(disk=disk):
            world.boot(disk)
            world.check()
            world.dirs.abandon()

        guarded(world, seed, judge)
    return world.swapped


@pytest.mark.parametrize("seed", [1461, 1800, 2130])
def test_an_index_swap_without_its_log(seed, new_ledger, store_type):
    """The name of `.log.cleaned` was lost, that of `.index.swap` was not: it became the index of the old log."""
    live(seed, new_ledger, store_type)


@pytest.mark.parametrize("block", range(8))
def test_no_key_loses_its_last_value_in_crashes(block, new_ledger, store_type):
    swapped = sum(live(seed, new_ledger, store_type) for seed in range(block * 15, block * 15 + 15))
    assert swapped > 30


def test_a_power_cut_at_every_operation_of_one_workload(new_ledger, store_type):
    point = 1
    while True:
        world = World(3, new_ledger, store_type)
        disk = SimulatedDisk(3)
        disk.fail_at(point, None)
        try:
            world.boot(disk)
            for _ in range(70):
                world.step()
            break  # the workload ended before the cut: every point was tried
        except PowerCut:
            point += 1

        def judge(world=world, disk=disk, point=point):
            again = disk.crash()
            again.fail_at(point % 31 + 1, None)  # and once more while it recovers
            try:
                world.boot(again)
            except PowerCut:
                again = again.crash()
                world.boot(again)
            else:
                world.dirs.abandon()
                world.boot(again.crash())
            world.check()

        guarded(world, point, judge)
    assert point > 500


def test_an_error_at_any_operation_is_no_lie(new_ledger, store_type):
    """EIO once, anywhere: whoever asked learns of it, and after a restart every key has its last flushed value."""
    for point in range(1, 600, 5):
        world = World(point, new_ledger, store_type)
        disk = SimulatedDisk(point)
        disk.fail_at(point)
        try:
            world.boot(disk)
            for _ in range(70):
                world.step()
        except (OSError, KafkaStorageError, RewriteStopped):
            pass
        if not hasattr(world, "log"):
            continue
        guarded(world, point, lambda world=world, disk=disk: (world.dirs.abandon(), world.boot(disk.crash())))
        guarded(world, point, world.check)


def test_an_error_while_copying_leaves_the_log_as_it_was(new_ledger, store_type):
    """Whatever operation of the copying fails, the log lives on at once, and the next rewrite succeeds."""
    world = World(11, new_ledger, store_type)
    world.boot(SimulatedDisk(11))
    for _ in range(60):
        world.append()
    for producer_open in [e for e in world.ledger.entries() if e.current_txn_first_offset >= 0]:
        assert producer_open.producer_id == 3
        world.mark()
    disk = world.disk
    failures = 0
    while True:
        (plan,) = world.plan()
        rewriting = world.log.begin_rewrite(plan, no_codec, world.wall_ms, buffer_bytes=1)
        disk.fail_at(disk.operations + failures + 1)
        try:
            rewriting.work()
        except OSError:
            failures += 1
            copying = rewriting.phase == COPY
            world.log.abandon_rewrite(rewriting)
            if not copying:
                assert rewriting.swap_failed
                break
            names = disk.listdir(world.log.folder)
            assert not [name for name in names if name.endswith(SWAP)]
            world.append()
            world.check()
            continue
        break
    assert failures > 5
