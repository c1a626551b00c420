"""Power cuts and disk errors at every operation of appends, rewrites and drops: no key loses its last value."""

from __future__ import annotations

import random
from functools import partial
from itertools import pairwise

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.contracts import DropBefore, LogFacts, Rewrite
from logkernel.errors import KafkaStorageError, RewriteStopped
from logkernel.plugins.cleanup.compact import Compact, LastWins
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.storage import recovery
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.names import CLEANED, SEGMENT_SUFFIXES, SWAP, TXN_INDEX, offset_name
from logkernel.storage.rewriting import COPY, Rewriting
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

NAME = TopicPartition("t", 0)
SETTINGS = TopicSettings(
    cleanup_policy=("compact",), segment_bytes=1500, index_interval_bytes=300, segment_index_bytes=4096,
    file_delete_delay_ms=0, delete_retention_ms=30, min_cleanable_dirty_ratio=0.2,
)  # fmt: skip


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


def no_codec(codec_id: int):
    raise AssertionError("nothing is compressed here")


class World:
    """A compacted log under a seed's workload, and what must be true of it whatever happens."""

    def __init__(self, seed: int, new_ledger, store_type) -> None:
        self.random = random.Random(seed)
        self.new_ledger = new_ledger
        self.store_type = store_type
        self.written: dict[int, tuple[bytes, bytes | None, int]] = {}
        """Key, value and producer by data offset, as last written there."""
        self.markers: dict[int, bool] = {}
        """Offset of a marker → whether it committed."""
        self.sequences: dict[int, int] = {}
        self.durable = 0
        self.start = 0
        self.cleaned = 0
        """Log end at the last rewrite: what was committed then is never truncated."""
        self.wall_ms = 1000
        self.trail: list[str] = []
        self.swapped = 0

    def boot(self, disk: SimulatedDisk) -> None:
        self.dirs = LogDirectories.open(disk, ["/data"], node_id=1)
        self.ledger = self.new_ledger()
        self.dirs.load(Needs(lambda topic: SETTINGS, lambda name: self.ledger), self.wall_ms)
        if NAME not in self.dirs.logs:
            self.ledger.reset()
            self.dirs.create(NAME, None, self.wall_ms)
        self.log = self.dirs.logs[NAME]
        if self.log.clean_offset is None:
            self.log.clean_offset = 0
            self.dirs.write_clean_offsets(NAME)  # a gap behind it is then a loss, not Kafka's cleaner

    def step(self) -> None:
        action = self.random.choices(
            [self.append, self.mark, self.flush, self.checkpoint, self.rewrite, self.drop, self.truncate, self.restart],
            [30, 4, 6, 3, 6, 1, 1, 1],
        )[0]
        self.trail.append(action.__name__)
        self.wall_ms += self.random.randint(0, 12)
        action()

    def forget_from(self, offset: int) -> None:
        for kept in (self.written, self.markers):
            for at in [at for at in kept if at >= offset]:
                del kept[at]

    def append(self) -> None:
        log, chance = self.log, self.random
        base, count = log.end_offset, chance.randint(1, 4)
        producer = chance.randint(1, 3)
        records = [
            Record(
                b"k%d" % chance.randint(0, 9),
                None if chance.random() < 0.2 else chance.randbytes(chance.choice((10, 200))),
                timestamp_ms=self.wall_ms,
            )
            for _ in range(count)
        ]
        data = encode_batch(
            records, base_offset=base, leader_epoch=0, producer_id=producer, producer_epoch=0, base_sequence=base,
            transactional=producer == 3,
        )  # fmt: skip
        self.forget_from(base)
        self.written.update({base + i: (r.key, r.value, producer) for i, r in enumerate(records)})
        self.put(data)

    def mark(self) -> None:
        base, committed = self.log.end_offset, self.random.random() < 0.5
        self.forget_from(base)
        self.markers[base] = committed
        self.put(encode_marker(3, 0, committed, 1, self.wall_ms, base_offset=base, leader_epoch=0))

    def put(self, data: bytes) -> None:
        (facts,) = batches(data)
        self.log.append(data, [facts], self.wall_ms)
        row = self.ledger.replay(facts, data if facts.is_control else None)
        if row is not None:
            self.log.note_aborted(row)

    def flush(self) -> None:
        self.log.flush()
        self.durable = self.log.end_offset

    def checkpoint(self) -> None:
        self.dirs.directories[0].write_recovery_points()

    def plan(self, table_bytes: int | None = None) -> list[DropBefore | Rewrite]:
        log = self.log
        opened = [e.current_txn_first_offset for e in self.ledger.entries() if e.current_txn_first_offset >= 0]
        return Compact().plan(
            LogFacts(
                topic="t", partition=0, segments=log.facts(), log_start_offset=log.start_offset,
                high_watermark=log.end_offset, wall_ms=self.wall_ms, settings=SETTINGS,
                last_stable_offset=min(opened, default=log.end_offset), clean_offset=log.clean_offset,
                table_bytes=table_bytes or self.random.choice((24 * 6, 1 << 14)), asked=True, seed=bytes(16),
            )
        )  # fmt: skip

    def rewrite(self) -> None:
        """A whole rewrite, or one that something interrupts."""
        for step in self.plan():
            if isinstance(step, DropBefore):
                self.log.drop_before(step.offset, 0)
                continue
            rewriting = self.log.begin_rewrite(step, no_codec, self.wall_ms, buffer_bytes=1)
            self.cleaned = self.log.end_offset
            turns = self.random.choice((1, 2, 3, 99))
            while not rewriting.done and turns:
                rewriting.work()
                if self.random.random() < 0.1:
                    self.append()
                if self.random.random() < 0.05:
                    self.drop()
                rewriting.settle()
                turns -= 1
            self.swapped += rewriting.swapped
            if rewriting.done and not rewriting.stopped:
                self.log.end_rewrite(rewriting)
                self.dirs.write_clean_offsets(NAME)
            else:
                rewriting.stop()
        self.log.purge(self.wall_ms)
        self.dirs.sweeper.sweep(100)

    def drop(self) -> None:
        offset = self.random.randint(self.log.start_offset, self.log.end_offset)
        self.start = max(self.start, offset)
        self.log.advance_log_start(offset)
        self.dirs.directories[0].write_log_starts()
        self.log.drop_before(offset, 0)

    def truncate(self) -> None:
        end = self.log.end_offset
        target = max(self.log.start_offset + 1, end - self.random.randint(1, 12), self.cleaned)
        if target < end:
            self.durable = min(self.durable, target - 4)
            self.dirs.truncate(NAME, target)

    def restart(self) -> None:
        self.dirs.close()
        if self.dirs.online():  # else the close failed, and promised nothing
            self.durable = self.log.end_offset
        self.boot(self.dirs._disk)

    # ------------------------------------------------------------ what must hold

    def aborted(self, end: int) -> set[int]:
        found: set[int] = set()
        pending: list[int] = []
        for offset in range(end):
            if offset in self.markers:
                if not self.markers[offset]:
                    found.update(pending)
                pending = []
            elif offset in self.written and self.written[offset][2] == 3:
                pending.append(offset)
        return found

    def check(self) -> None:
        log = self.log
        end = log.end_offset
        assert end >= self.durable, (end, self.durable)
        assert log.start_offset <= self.start or self.durable <= self.start, "flushed records are gone"
        self.start = max(self.start, log.start_offset)
        leftovers = [name for name in log.disk.listdir(log.folder) if name.endswith((CLEANED, SWAP))]
        assert not leftovers
        found = {}
        last = -1
        for segment in log._segments:
            for facts in segment.scan():
                assert facts.base_offset > last, "out of order"
                last = facts.last_offset
                if not facts.is_control and facts.count:
                    data = segment.file.read(facts.position, facts.size)
                    facts.position = 0
                    for record in decode_batch(data, facts, no_codec, verify_crc=True):
                        found[record.offset] = (record.key, record.value, facts.producer_id)
        for offset, what in found.items():
            assert self.written.get(offset, what) == what, offset
        self.forget_from(end)
        aborted = self.aborted(end)
        for key in {key for key, _, _ in self.written.values()}:
            wanted = self.last_of(key, self.written, aborted)
            left = self.last_of(key, found, aborted)
            assert left == wanted, (key, left, wanted)
        self.store_type(None, "").check_indexes(log)
        self.check_producers()
        self.durable = end

    def last_of(self, key: bytes, records, aborted: set[int]):
        """The value that a reader ends with; None for no record or a tombstone."""
        for offset in sorted(records, reverse=True):
            if offset >= self.start and records[offset][0] == key and offset not in aborted:
                return records[offset][1]
        return None

    def check_producers(self) -> None:
        """Each producer's newest batch is known by its last offset, as if nothing had been compacted."""
        if self.start:
            return
        for entry in self.ledger.entries():
            mine = [at for at, (_, _, producer) in self.written.items() if producer == entry.producer_id]
            if mine:
                assert entry.batches[-1][1] == max(mine), entry


def guarded(world: World, seed: int, act) -> None:
    try:
        act()
    except Exception as error:
        error.add_note(f"seed {seed}: {' '.join(world.trail)}")
        raise


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
    disk = world.dirs._disk
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
        assert checked == [world.log.closed_segments()[-1].next_offset], "read again"
        assert segment_files(world.log)[0] == swapped
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


def segment_files(log) -> dict[int, dict[str, bytes]]:
    """Base offset of each closed segment → what its files hold."""
    names = log.disk.listdir(log.folder)
    return {
        segment.base: {
            suffix: log.disk.read(f"{log.folder}/{name}")
            for suffix in SEGMENT_SUFFIXES
            if (name := offset_name(segment.base, suffix)) in names
        }
        for segment in log.closed_segments()
    }


def test_a_cut_at_every_operation_of_a_compaction_leaves_the_old_or_the_new_with_its_indexes(
    new_ledger, store_type, checked
):
    """Whole segments, old or new, each with the indexes that were written with it: the log takes its new name last, so
    no start has to make an index anew. What lies below the recovery point is not read again."""
    world, disk, rewriting = compacting(7, new_ledger, store_type)
    before, begun = segment_files(world.log), disk.operations
    rewriting.run()
    after, operations = segment_files(world.log), disk.operations - begun
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
            found = segment_files(world.log)
            for base, files in found.items():
                assert files in (before.get(base), after.get(base)), base
            assert checked == [world.log.closed_segments()[-1].next_offset], "read again"
            mixed += found not in (before, after)
            world.check()
            world.dirs.abandon()

        for _ in range(3):  # names are lost in another order each time
            guarded(world, point, judge)
    assert mixed > operations


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
    for segment in world.log._segments:
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
    assert all(before.next_offset == after.base for before, after in pairwise(log._segments)), "a hole"
    put(world, (b"k", None), (b"z", b"z"))
    while log.end_offset < 14:
        put(world, (b"y%d" % log.end_offset, b"y"))
    world.flush()
    world.dirs.abandon()
    world.boot(world.dirs._disk.crash())  # what counts is what the checkpoints say
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
        disk._faults.clear()
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
        rotten = f"/data/t-0/{world.log._bases[-2]:020d}.log"
        disk._inode(rotten).data[-3] ^= 1
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
        disk._faults.clear()
        check_nothing_behind_the_cut_counts_as_clean(world)
        assert cuts > 5
        return


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
        return segment_files(world.log), rewriting.records, rewriting.end

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
