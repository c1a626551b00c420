"""A compacted log under a seed's workload, on a disk that may lose power at any operation."""

from __future__ import annotations

import random

from logkernel.config.topic import TopicSettings
from logkernel.contracts import DropBefore, LogFacts, Rewrite
from logkernel.plugins.cleanup.compact import Compact
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.names import CLEANED, SEGMENT_SUFFIXES, SWAP, offset_name
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

NAME = TopicPartition("t", 0)
SETTINGS = TopicSettings(
    cleanup_policy=("compact",), segment_bytes=1500, index_interval_bytes=300, segment_index_bytes=4096,
    file_delete_delay_ms=0, delete_retention_ms=30, min_cleanable_dirty_ratio=0.2,
)  # fmt: skip


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
        self.disk = disk
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
                rewriting.step()
                turns -= 1
            self.swapped += rewriting.swapped
            if rewriting.done and not rewriting.stopped:
                self.log.end_rewrite(rewriting)
                self.dirs.write_clean_offsets(NAME)
            else:
                rewriting.stop()
        self.log.purge(self.wall_ms)
        self.dirs.file_deleter.remove(100)

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
        self.boot(self.disk)

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
        leftovers = [name for name in self.disk.listdir(log.folder) if name.endswith((CLEANED, SWAP))]
        assert not leftovers
        found = {}
        last = -1
        for segment in log.segments:
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


def segment_files(disk, log) -> dict[int, dict[str, bytes]]:
    """Base offset of each closed segment → what its files hold."""
    names = disk.listdir(log.folder)
    return {
        segment.base: {
            suffix: disk.read(f"{log.folder}/{name}")
            for suffix in SEGMENT_SUFFIXES
            if (name := offset_name(segment.base, suffix)) in names
        }
        for segment in log.segments.closed
    }
