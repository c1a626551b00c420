"""A log on either disk, with batches, a simple producer ledger and a checker of everything that must hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.record.batch import HEADER_BYTES, batches, computed_crc, stored_crc
from logkernel.record.control import encode_marker, parse_marker
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.storage.disk import RealDisk
from logkernel.storage.log import Log
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import REMEMBERED_BATCHES, AbortedTxn, BatchFacts, ProducerEntry, Record


def no_codec(codec_id: int):
    raise AssertionError("nothing is compressed here")


class Ledger:
    """Producer state as Kafka keeps it, in its plainest form."""

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.replayed = 0

    def reset(self) -> None:
        self.producers.clear()

    def load(self, entries: list[ProducerEntry]) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}

    def entries(self) -> list[ProducerEntry]:
        return list(self.producers.values())

    def replay(self, facts: BatchFacts, control: bytes | None) -> AbortedTxn | None:
        self.replayed += 1
        if control is not None and facts.count == 0:
            return None  # emptied by a cleaner
        entry = self.producers.setdefault(facts.producer_id, ProducerEntry(facts.producer_id, facts.producer_epoch))
        entry.producer_epoch = facts.producer_epoch
        entry.last_timestamp_ms = facts.max_timestamp_ms
        if control is None:
            delta = facts.last_offset - facts.base_offset
            entry.batches.append((facts.last_sequence, facts.last_offset, delta, facts.max_timestamp_ms))
            del entry.batches[:-REMEMBERED_BATCHES]
            if facts.is_transactional and entry.current_txn_first_offset < 0:
                entry.current_txn_first_offset = facts.base_offset
            return None
        (inner,) = batches(control)
        marker = parse_marker(decode_batch(control, inner, no_codec)[0])
        first, entry.current_txn_first_offset = entry.current_txn_first_offset, -1
        entry.coordinator_epoch = marker.coordinator_epoch
        if marker.committed or first < 0:
            return None
        open_ = [each.current_txn_first_offset for each in self.entries() if each.current_txn_first_offset >= 0]
        return AbortedTxn(facts.producer_id, first, facts.last_offset, min(open_, default=facts.last_offset + 1))


class Store:
    """Makes, feeds and checks one log."""

    def __init__(self, disk, root: str) -> None:
        self.disk = disk
        self.root = root
        self.ledger = Ledger()
        self.rolled: list[tuple[int, int]] = []

    def open(self, **options) -> Log:
        options.setdefault("settings", self.settings())
        options.setdefault("producers", Ledger())
        self.ledger = options["producers"]
        settings = options.pop("settings")
        return Log.open(
            self.disk, self.root, "t", 0, settings, on_roll=lambda *what: self.rolled.append(what), **options
        )

    @staticmethod
    def settings(**changes) -> TopicSettings:
        return TopicSettings(
            **{"segment_bytes": 4096, "index_interval_bytes": 300, "segment_index_bytes": 4096} | changes
        )

    def batch(self, log: Log, count: int = 1, size: int = 50, timestamp: int = 1000, epoch: int = 0, **fields):
        base = fields.pop("base_offset", log.end_offset)
        records = [Record(None, bytes([65 + (base + i) % 26]) * size, timestamp_ms=timestamp + i) for i in range(count)]
        return encode_batch(records, base_offset=base, leader_epoch=epoch, **fields)

    def append(self, log: Log, *args, wall_ms: int = 1000, **fields) -> bytes:
        data = self.batch(log, *args, **fields)
        self.put(log, data, wall_ms)
        return data

    def put(self, log: Log, data: bytes, wall_ms: int = 1000) -> None:
        found = list(batches(data))
        log.append(data, found, wall_ms)
        for facts in found:
            if facts.producer_id >= 0:
                row = self.ledger.replay(facts, data[facts.position : facts.position + facts.size]
                                         if facts.is_control else None)  # fmt: skip
                if row is not None:
                    log.note_aborted(row)

    def mark(self, log: Log, producer_id: int, *, commit: bool, coordinator_epoch: int = 3) -> None:
        self.put(log, encode_marker(producer_id, 0, commit, coordinator_epoch, 1500, base_offset=log.end_offset,
                                    leader_epoch=0))  # fmt: skip

    def names(self) -> list[str]:
        return sorted(self.disk.listdir(f"{self.root}/t-0"))

    def bytes(self, name: str) -> bytes:
        return self.disk.read(f"{self.root}/t-0/{name}")

    @staticmethod
    def records(log: Log, start: int | None = None, step: int = 700) -> list[tuple[int, bytes]]:
        """(offset, value) of all records, by `read` alone."""
        found: list[tuple[int, bytes]] = []
        offset = log.start_offset if start is None else start
        while offset < log.end_offset:
            piece = log.read(offset, step)
            if piece is None:
                break
            data = piece.read()
            got = 0
            for facts in batches(data):
                assert stored_crc(data, facts.position) == computed_crc(data, facts.position, facts.size)
                if not facts.is_control:
                    found += [(r.offset, r.value) for r in decode_batch(data, facts, no_codec) if r.offset >= offset]
                got = facts.last_offset + 1
            assert got > offset, "no progress"
            offset = got
        return found

    def check_indexes(self, log: Log) -> None:
        """Every index entry names a batch of its log, and a time entry the largest timestamp up to it."""
        for segment in log.segments:
            every = list(segment.scan())
            starts = {facts.position: facts.last_offset for facts in every}
            entries = [segment.index.entry(at) for at in range(segment.index.count)]
            assert entries == sorted(set(entries))
            for relative, position in entries:
                assert starts[position] == segment.base + relative
            for at in range(segment.times.count):
                timestamp, relative = segment.times.entry(at)
                below = [facts for facts in every if facts.last_offset <= segment.base + relative]
                assert max(facts.max_timestamp_ms for facts in below) == timestamp
            assert sum(facts.size for facts in every) == segment.size == segment.file.size
            for facts in every:
                assert segment.find(facts.last_offset) == (facts.position, facts.size)
                assert facts.size >= HEADER_BYTES


@pytest.fixture(params=["real", "simulated"])
def store(request, tmp_path) -> Store:
    return make_store(request.param, str(tmp_path))


@pytest.fixture
def simulated() -> Callable[..., Store]:
    """Stores on simulated disks: `simulated(seed)`, or `simulated(disk)` for a disk that exists."""

    def make(seed_or_disk=0) -> Store:
        disk = seed_or_disk if isinstance(seed_or_disk, SimulatedDisk) else SimulatedDisk(seed_or_disk)
        disk.mkdir("/data")
        return Store(disk, "/data")

    return make


def make_store(kind: str, root: str) -> Store:
    disk = RealDisk() if kind == "real" else SimulatedDisk()
    disk.mkdir(root)
    return Store(disk, root)


@pytest.fixture
def new_ledger() -> type[Ledger]:
    return Ledger


@pytest.fixture
def store_type() -> type[Store]:
    return Store
