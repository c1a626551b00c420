"""What a compaction leaves: the same by runs as batch by batch, and the true state to whoever reads in time."""

from __future__ import annotations

import random

import pytest
from compacted_world import SETTINGS, World, no_codec, segment_files

from logkernel.contracts import Rewrite
from logkernel.plugins.cleanup.compact import LastWins
from logkernel.record.batch import batches
from logkernel.record.decode import decode_batch
from logkernel.storage.simdisk import SimulatedDisk


@pytest.mark.parametrize("seed", range(12))
def test_a_rule_that_takes_runs_leaves_what_it_leaves_batch_by_batch(seed, new_ledger, store_type, monkeypatch):
    """Byte for byte, in every file; tombstones, transactions and a map that is too small included."""

    def rewritten(table_bytes: int) -> tuple[dict[int, dict[str, bytes]], tuple[int, int], int]:
        world = World(seed, new_ledger, store_type)
        world.boot(SimulatedDisk(seed))
        for turn in range(40):
            world.append()
            if turn % 5 == 4:
                world.mark()
        world.mark()
        world.log.roll(world.wall_ms)
        for _ in range(3):  # later ones meet delete horizons, and drop tombstones
            plan = next((step for step in world.plan(table_bytes) if isinstance(step, Rewrite)), None)
            if plan is None:
                break
            rewriting = world.log.begin_rewrite(plan, no_codec, world.wall_ms, buffer_bytes=1)
            rewriting.run()
            world.log.end_rewrite(rewriting)
            world.wall_ms += 40
            world.append()
            world.mark()
            world.log.roll(world.wall_ms)
        world.check()
        return segment_files(world.disk, world.log), rewriting.records, rewriting.end

    for table_bytes in (24 * 9, 1 << 14):
        by_runs = rewritten(table_bytes)
        with monkeypatch.context() as patch:
            patch.delattr(LastWins, "learn_run")
            patch.delattr(LastWins, "keep_run")
            assert rewritten(table_bytes) == by_runs


def read_on(world: World, offset: int, most: int) -> tuple[int, list[tuple[int, bytes, bytes | None]]]:
    """(where to go on, (offset, key, value) of `most` batches from `offset` on), as a reader of committed data."""
    found, log = [], world.log
    aborted = world.aborted(log.end_offset)
    opened = [e.current_txn_first_offset for e in world.ledger.entries() if e.current_txn_first_offset >= 0]
    end = min(opened, default=log.end_offset)
    for _ in range(most):
        piece = log.read(offset, 1) if offset < end else None
        if piece is None:
            return max(offset, end), found
        data = piece.read()
        (facts,) = batches(data)
        if not facts.is_control and facts.count:
            rows = decode_batch(data, facts, no_codec)
            found += [(r.offset, r.key, r.value) for r in rows if r.offset >= offset and r.offset not in aborted]
        offset = facts.last_offset + 1
    return offset, found


@pytest.mark.parametrize("seed", range(15))
def test_a_reader_that_reaches_the_head_in_time_ends_with_the_true_state(seed, new_ledger, store_type):
    """It starts anywhere in the life of a compacted log and reads while that is written and compacted: as long as it
    takes no longer than `delete.retention.ms`, it sees every tombstone, or never saw what the tombstone deletes."""
    world = World(seed, new_ledger, store_type)
    world.boot(SimulatedDisk(seed))
    chance, readers, judged = random.Random(seed), [], 0
    for step in range(300):
        world.wall_ms += chance.randint(0, 3)
        chance.choices([world.append, world.mark, world.flush], [6, 1, 1])[0]()
        if step % 9 == 8:
            world.mark()
            world.log.roll(world.wall_ms)
        if chance.random() < 0.15:
            for plan in world.plan(1 << 14):
                rewriting = world.log.begin_rewrite(plan, no_codec, world.wall_ms, buffer_bytes=1)
                rewriting.run()
                world.log.end_rewrite(rewriting)
        if chance.random() < 0.3:
            readers.append([world.wall_ms, 0, {}, chance.choice((1, 2, 40))])
        for reader in readers:
            reader[1], rows = read_on(world, reader[1], chance.randint(0, reader[3]))
            reader[2].update({key: (offset, value) for offset, key, value in rows})
        readers = [each for each in readers if world.wall_ms - each[0] < SETTINGS.delete_retention_ms]
        ripe = [each for each in readers if world.wall_ms - each[0] > SETTINGS.delete_retention_ms / 2]
        if step % 9 == 8:  # nothing is undecided
            true: dict[bytes, bytes | None] = {}
            gone = world.aborted(world.log.end_offset)
            for offset, (key, value, _) in sorted(world.written.items()):
                if offset not in gone:
                    true[key] = value
            for reader in ripe:
                readers.remove(reader)
                judged += 1
                reader[1], rows = read_on(world, reader[1], 10_000)
                reader[2].update({key: (offset, value) for offset, key, value in rows})
                state = {key: value for key, (_, value) in reader[2].items() if value is not None}
                assert state == {key: value for key, value in true.items() if value is not None}, (step, reader[0])
    assert world.log.clean_offset > 100
    assert judged > 10
