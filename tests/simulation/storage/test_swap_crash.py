"""Power cuts while a rewrite's segments take the place of the old ones: a start finds whole ones with their indexes."""

from __future__ import annotations

from functools import partial

import pytest
from compacted_world import World, guarded, no_codec, segment_files

from logkernel.storage import recovery
from logkernel.storage.compaction.rewriting import Rewriting
from logkernel.storage.names import SEGMENT_SUFFIXES, SWAP, TXN_INDEX, offset_name
from logkernel.storage.simdisk import PowerCut, SimulatedDisk


@pytest.fixture
def checked(monkeypatch) -> list[int]:
    """Base offsets of the segments that recovery read anew."""
    found: list[int] = []
    plain = recovery.recover_segment

    def recover_segment(segment, *rest):
        found.append(segment.base)
        return plain(segment, *rest)

    monkeypatch.setattr(recovery, "recover_segment", recover_segment)
    return found


def committed(seed: int, new_ledger, store_type) -> tuple[World, SimulatedDisk]:
    """A disk that lost power when several segments had just been replaced by one, not yet in place."""
    world = World(seed, new_ledger, store_type)
    disk = SimulatedDisk(seed)
    world.boot(disk)
    for _ in range(12):
        world.append()
        world.log.roll(world.wall_ms)
    while [entry for entry in world.ledger.entries() if entry.current_txn_first_offset >= 0]:
        world.mark()
    world.log.roll(world.wall_ms)
    world.flush()
    world.checkpoint()
    (plan,) = world.plan()
    rewriting = world.log.begin_rewrite(plan, no_codec, world.wall_ms)
    rewriting.work()
    assert any(name.endswith(".log" + SWAP) for name in disk.listdir(world.log.folder))
    return world, disk


def test_finishing_a_swap_survives_power_cuts(new_ledger, store_type, checked):
    """Opening finishes a swap; cut off at any of its operations, names lost in any order, it finishes it again, and the
    segment keeps the indexes that came with it."""
    cuts = 0

    def judge(world, crashed, swapped):
        checked.clear()
        world.boot(crashed)
        assert checked == [world.log.segments.closed[-1].next_offset], "read again"
        assert segment_files(world.disk, world.log)[0] == swapped
        world.check()

    for seed in range(18):
        point = 1 + seed % 3
        while True:
            world, disk = committed(seed, new_ledger, store_type)
            swapped = {
                suffix: disk.read(path)
                for suffix in SEGMENT_SUFFIXES
                if disk.exists(path := f"{world.log.folder}/{offset_name(0, suffix)}{SWAP}")
            }
            again = disk.crash()
            again.fail_at(point, None)
            try:
                world.boot(again)
                break
            except PowerCut:
                cuts += 1
                point += 3
            for _ in range(6):  # names are lost in another order each time
                guarded(world, seed, partial(judge, world, again.crash(), swapped))
    assert cuts > 100


def compacting(seed: int, new_ledger, store_type) -> tuple[World, SimulatedDisk, Rewriting]:
    """A log of many small segments, all of it durable and known to be so, at the begin of a rewrite in several groups
    that drops records of every kind."""
    world = World(seed, new_ledger, store_type)
    disk = SimulatedDisk(seed)
    world.boot(disk)
    for turn in range(24):
        world.append()
        if turn % 3 == 2:
            world.mark()
        if turn % 2:
            world.log.roll(world.wall_ms)
    world.mark()
    world.log.roll(world.wall_ms)
    world.flush()
    world.checkpoint()
    (plan,) = world.plan(1 << 14)
    return world, disk, world.log.begin_rewrite(plan, no_codec, world.wall_ms, buffer_bytes=1)


def test_a_cut_at_every_operation_of_a_compaction_leaves_the_old_or_the_new_with_its_indexes(
    new_ledger, store_type, checked
):
    """Whole segments, old or new, each with the indexes that were written with it: the log takes its new name last, so
    no start has to make an index anew. What lies below the recovery point is not read again."""
    world, disk, rewriting = compacting(7, new_ledger, store_type)
    before, begun = segment_files(world.disk, world.log), disk.operations
    rewriting.run()
    after, operations = segment_files(world.disk, world.log), disk.operations - begun
    assert rewriting.swapped > 3
    assert len(after) < len(before) - 4
    assert any(TXN_INDEX in files for files in after.values())
    mixed = 0
    for point in range(1, operations + 1):
        world, disk, rewriting = compacting(7, new_ledger, store_type)
        disk.fail_at(begun + point, None)
        with pytest.raises(PowerCut):
            rewriting.run()

        def judge(world=world, disk=disk):
            nonlocal mixed
            checked.clear()
            world.boot(disk.crash())
            found = segment_files(world.disk, world.log)
            for base, files in found.items():
                assert files in (before.get(base), after.get(base)), base
            assert checked == [world.log.segments.closed[-1].next_offset], "read again"
            mixed += found not in (before, after)
            world.check()
            world.dirs.abandon()

        for _ in range(3):  # names are lost in another order each time
            guarded(world, point, judge)
    assert mixed > operations
