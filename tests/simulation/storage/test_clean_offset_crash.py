"""A log that is cut below its clean offset, by a truncation or by recovery, power cuts included: what is written behind
the cut counts as dirty."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from compacted_world import NAME, SETTINGS, World, guarded, no_codec

from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.storage.directories import LogDirectories
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record


def put(world: World, *pairs: tuple[bytes, bytes | None]) -> None:
    """Append one batch, of nobody."""
    records = [Record(key, value, timestamp_ms=world.wall_ms) for key, value in pairs]
    world.put(encode_batch(records, base_offset=world.log.end_offset, leader_epoch=0))


def compact(world: World) -> None:
    world.log.roll(world.wall_ms)
    for step in world.plan(1 << 14):
        rewriting = world.log.begin_rewrite(step, no_codec, world.wall_ms)
        rewriting.run()
        world.log.end_rewrite(rewriting)
        world.dirs.write_clean_offsets(NAME)


def state(world: World) -> dict[bytes, bytes]:
    """What a reader of everything ends with."""
    found: dict[bytes, bytes | None] = {}
    for segment in world.log.segments:
        for facts in segment.scan():
            data = segment.file.read(facts.position, facts.size)
            found.update((record.key, record.value) for record in decode_batch(data, next(batches(data)), no_codec))
    return {key: value for key, value in found.items() if value is not None}


def compacted_to_its_end(seed: int, new_ledger, store_type) -> tuple[World, SimulatedDisk]:
    """Batches of two records in several segments, `old` of key `k` the first of all; all of it durable and clean."""
    world = World(seed, new_ledger, store_type)
    disk = SimulatedDisk(seed)
    world.boot(disk)
    put(world, (b"k", b"old"), (b"a", b"1"))
    for number in range(6):
        put(world, (b"b%d" % number, bytes(400)), (b"c%d" % number, bytes(400)))
    compact(world)
    world.flush()
    world.checkpoint()
    assert world.log.clean_offset == world.log.end_offset == 14
    assert world.log.segment_count > 3
    return world, disk


def check_nothing_behind_the_cut_counts_as_clean(world: World) -> None:
    """A tombstone behind the cut takes with it what it deletes. Taken for clean it would take nothing, go in its time,
    and what it deleted would be back."""
    log = world.log
    assert log.end_offset < 14
    assert all(before.next_offset == after.base for before, after in pairwise(log.segments)), "a hole"
    put(world, (b"k", None), (b"z", b"z"))
    while log.end_offset < 14:
        put(world, (b"y%d" % log.end_offset, b"y"))
    world.flush()
    world.dirs.abandon()
    world.boot(world.disk.crash())  # what counts is what the checkpoints say
    compact(world)
    for number in range(2):
        world.wall_ms += SETTINGS.delete_retention_ms + 1
        put(world, (b"x%d" % number, b"x"))
        compact(world)
    assert b"k" not in state(world)


@pytest.mark.parametrize("target", [10, 9, 1, 0], ids=["between batches", "in a batch", "in the first", "everything"])
def test_a_cut_below_the_clean_offset_takes_that_back(target, new_ledger, store_type):
    """Whole, or cut off itself by a power cut at each of its operations."""
    point = cuts = 0
    while True:
        point += 1
        world, disk = compacted_to_its_end(point, new_ledger, store_type)
        disk.fail_at(disk.operations + point, None)
        try:
            world.dirs.truncate(NAME, target)
        except PowerCut:
            world.boot(disk.crash())
            if world.log.end_offset < 14:  # else it had no effect yet
                cuts += 1
                guarded(world, point, partial(check_nothing_behind_the_cut_counts_as_clean, world))
            continue
        disk.heal()
        check_nothing_behind_the_cut_counts_as_clean(world)
        assert cuts > 5
        return


def test_emptying_a_log_takes_its_clean_offset_back(new_ledger, store_type):
    world, disk = compacted_to_its_end(1, new_ledger, store_type)
    world.dirs.truncate_fully_and_start_at(NAME, 5, world.wall_ms)
    assert world.log.clean_offset is None
    world.dirs.abandon()
    world.dirs = LogDirectories.open(disk.crash(), ["/data"], node_id=1)
    assert NAME not in world.dirs.directories[0].clean_offsets


def test_a_cut_by_recovery_below_the_clean_offset_takes_that_back(new_ledger, store_type):
    """Rot in what is clean already; and a power cut at each operation of the start that finds it, so that the next one
    finds a log without a fault, and only its end says that something went."""
    point = cuts = 0
    while True:
        point += 1
        world, disk = compacted_to_its_end(point, new_ledger, store_type)
        world.dirs.abandon()
        rotten = f"/data/t-0/{world.log.segments[-2].base:020d}.log"
        disk.content(rotten)[-3] ^= 1
        disk.sync(rotten)
        disk.write_atomic("/data/recovery-point-offset-checkpoint", b"0\n0\n")
        disk = disk.crash()
        disk.fail_at(point, None)
        try:
            world.boot(disk)
        except PowerCut:
            world.boot(disk.crash())
            if world.log.end_offset < 14:  # else the empty segment at 14 came back, and all goes on behind it
                cuts += 1
                guarded(world, point, partial(check_nothing_behind_the_cut_counts_as_clean, world))
            continue
        disk.heal()
        check_nothing_behind_the_cut_counts_as_clean(world)
        assert cuts > 5
        return
