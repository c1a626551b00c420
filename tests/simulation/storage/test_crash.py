"""Power cuts at every operation of a workload: what was flushed is there, nothing is torn, and indexes agree."""

from __future__ import annotations

import random

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.errors import KafkaStorageError
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.encode import encode_batch
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.simdisk import PAGE, PowerCut, SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

NAME = TopicPartition("t", 0)
SETTINGS = TopicSettings(segment_bytes=3000, index_interval_bytes=300, segment_index_bytes=4096, file_delete_delay_ms=0)


class World:
    """A log under a seed's workload, and what must be true of it whatever happens."""

    def __init__(self, seed: int, new_ledger, store_type) -> None:
        self.random = random.Random(seed)
        self.new_ledger = new_ledger
        self.store_type = store_type
        self.written: dict[int, bytes] = {}
        """Value by data offset, as last written there."""
        self.durable = 0
        """All below was flushed."""
        self.start = 0
        """Below it records may be gone."""
        self.promised = 0
        """The log start that was noted durably: it never goes back."""
        self.gone: set[bytes] = set()
        """Values that were found missing, or were cut off durably: they never come back."""
        self.trail: list[str] = []

    def boot(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.dirs = LogDirectories.open(disk, ["/data"], node_id=1)
        self.ledger = self.new_ledger()
        self.dirs.load(Needs(lambda topic: SETTINGS, lambda name: self.ledger), 1000)
        if NAME not in self.dirs.logs:
            self.ledger.reset()
            self.dirs.create(NAME, None, 1000)
        self.log = self.dirs.logs[NAME]

    def step(self) -> None:
        action = self.random.choices(
            [self.append, self.mark, self.flush, self.checkpoint, self.drop, self.truncate, self.roll, self.restart],
            [40, 3, 8, 4, 2, 1, 2, 1],
        )[0]
        self.trail.append(action.__name__)
        action()

    def append(self) -> None:
        log, chance = self.log, self.random
        base, count = log.end_offset, chance.randint(1, 3)
        values = [chance.randbytes(chance.choice((10, 200, 900))) for _ in range(count)]
        producer = chance.randint(1, 3)
        data = encode_batch(
            [Record(None, value, timestamp_ms=chance.randint(1, 5000)) for value in values],
            base_offset=base, leader_epoch=base // 40, producer_id=producer, producer_epoch=0, base_sequence=base,
            transactional=producer == 3,
        )  # fmt: skip
        for offset in [offset for offset in self.written if offset >= base]:
            del self.written[offset]
        self.written.update(zip(range(base, base + count), values, strict=True))
        self.put(data)

    def mark(self) -> None:
        base = self.log.end_offset
        for offset in [offset for offset in self.written if offset >= base]:
            del self.written[offset]
        self.put(encode_marker(3, 0, self.random.random() < 0.5, 1, 99, base_offset=base, leader_epoch=base // 40))

    def put(self, data: bytes) -> None:
        (facts,) = batches(data)
        self.log.append(data, [facts], 1000)
        row = self.ledger.replay(facts, data if facts.is_control else None)
        if row is not None:
            self.log.note_aborted(row)

    def flush(self) -> None:
        end = self.random.choice((None, self.random.randint(self.log.start_offset, self.log.end_offset)))
        self.log.flush(end)
        self.durable = max(self.durable, self.log.end_offset if end is None else end)

    def checkpoint(self) -> None:
        self.dirs.directories[0].write_recovery_points()

    def drop(self) -> None:
        offset = self.random.randint(self.log.start_offset, self.log.end_offset)
        self.start = max(self.start, offset)
        self.log.advance_log_start(offset)
        self.dirs.directories[0].write_log_starts()
        self.promised = max(self.promised, offset)
        self.log.drop_before(offset, 0)
        self.log.rename_dropped(self.random.randint(0, 3))
        self.log.purge(10)
        self.dirs.file_deleter.remove(self.random.randint(0, 30))

    def truncate(self) -> None:
        end = self.log.end_offset
        target = max(self.log.start_offset + 1, end - self.random.randint(1, 30))
        if target < end:
            self.durable = min(self.durable, target - 3)  # a batch that holds the target goes whole
            self.dirs.truncate(NAME, target)
            self.gone.update(value for offset, value in self.written.items() if offset >= self.log.end_offset)

    def roll(self) -> None:
        self.log.roll(1000)

    def restart(self) -> None:
        self.dirs.close()
        if self.dirs.online():  # else the close failed, and promised nothing
            self.durable = self.log.end_offset
        self.boot(self.disk)

    def check(self) -> None:
        log = self.log
        assert log.end_offset >= self.durable, (log.end_offset, self.durable)
        assert log.start_offset <= self.start or self.durable <= self.start, "flushed records are gone"
        assert log.start_offset >= self.promised, "the log start went back"
        self.start = max(self.start, log.start_offset)
        found = dict(self.store_type.records(log))
        for offset, value in found.items():
            assert self.written.get(offset, value) == value, offset
            assert value not in self.gone, f"{offset} is back"
        self.gone.update(value for at, value in self.written.items() if at >= log.start_offset and at not in found)
        markers = {facts.base_offset for segment in log.segments for facts in segment.scan() if facts.is_control}
        everything = sorted(found.keys() | {offset for offset in markers if offset >= log.start_offset})
        assert everything == list(range(log.start_offset, log.end_offset)), "a hole"
        assert log.recovery_point <= log.end_offset
        self.store_type(None, "").check_indexes(log)
        self.check_producers()
        self.written = found

    def check_producers(self) -> None:
        """The state after recovery is that of a plain replay of the whole log, where the whole log is there."""
        log = self.log
        if log.first_base_offset:
            return
        wanted = self.new_ledger()
        rows = []
        for segment in log.segments:
            for facts in segment.scan():
                if facts.producer_id >= 0:
                    control = segment.file.read(facts.position, facts.size) if facts.is_control else None
                    row = wanted.replay(facts, control)
                    rows += [row] if row is not None else []
        summary = [
            {
                e.producer_id: (
                    [batch[:3] for batch in e.batches[-1:]],
                    e.current_txn_first_offset,
                    e.last_timestamp_ms,
                )
                for e in ledger.entries()
            }
            for ledger in (wanted, self.ledger)
        ]
        assert summary[0] == summary[1]
        assert [row for segment in log.segments for row in segment.txns.rows()] == rows


def live(seed: int, new_ledger, store_type, lives: int = 4) -> None:
    """Boot, work, lose power, check, go on; several times over the same data."""
    world = World(seed, new_ledger, store_type)
    disk = SimulatedDisk(seed)
    for _ in range(lives):
        disk.fail_at(disk.operations + world.random.randint(1, 150), None)
        try:
            world.boot(disk)
            for _ in range(150):
                world.step()
        except PowerCut:
            pass
        world.trail.append("crash")
        disk = disk.crash()
        try:
            world.boot(disk)
            world.check()
            world.dirs.abandon()
        except Exception as error:
            error.add_note(f"seed {seed}: {' '.join(world.trail)}")
            raise


@pytest.mark.parametrize("block", range(8))
def test_nothing_flushed_is_lost_in_crashes(block, new_ledger, store_type):
    for seed in range(block * 25, block * 25 + 25):
        live(seed, new_ledger, store_type)


def test_a_power_cut_at_every_operation_of_one_workload(new_ledger, store_type):
    point = 1
    while True:
        world = World(7, new_ledger, store_type)
        disk = SimulatedDisk(7)
        disk.fail_at(point, None)
        try:
            world.boot(disk)
            for _ in range(60):
                world.step()
            return  # the workload ended before the cut: every point was tried
        except PowerCut:
            point += 1
        world.boot(disk.crash())
        world.check()


def test_what_recovery_cut_off_does_not_come_back_behind_what_is_appended(simulated):
    """A page in the midst of the tail never reached the disk, those behind it did, and hold whole batches."""
    store = simulated(5)
    settings = store.settings(segment_bytes=1 << 20)
    log = store.open(settings=settings)
    size = next(size for size in range(PAGE) if len(store.batch(log, size=size)) == PAGE)
    for _ in range(4):
        store.append(log, size=size)
    path = f"{log.folder}/{0:020d}.log"
    whole = store.bytes(f"{0:020d}.log")
    log.flush()
    log.abandon()
    store.disk.sync_dir("/")
    store.disk.write(path, whole[:PAGE] + bytes(PAGE) + whole[2 * PAGE :])
    store.disk.sync(path)
    log = store.open(settings=settings)
    assert (log.end_offset, len(log.damages)) == (1, 1)
    store.append(log, size=size, timestamp=7777)
    ends = set()
    for _ in range(200):  # pages are lost in another way each time
        log = simulated(store.disk.crash()).open(settings=settings)
        assert [facts.max_timestamp_ms for facts in log.segments.active.scan()] == [1000, 7777][: log.end_offset]
        ends.add(log.end_offset)
    assert ends == {1, 2}


def test_an_error_at_any_operation_is_no_lie(new_ledger, store_type):
    """EIO once, anywhere: the caller learns of it, and after a restart all that was flushed is there."""
    for point in range(1, 400, 3):
        world = World(point, new_ledger, store_type)
        disk = SimulatedDisk(point)
        disk.fail_at(point)
        try:
            world.boot(disk)
            for _ in range(60):
                world.step()
        except (OSError, KafkaStorageError):
            pass
        if not hasattr(world, "log"):
            continue
        world.dirs.abandon()
        world.boot(disk.crash())
        world.check()
