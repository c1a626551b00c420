"""A log moves to another directory while it is written: nothing is lost, whatever step the power fails at."""

from __future__ import annotations

import contextlib
import errno
from typing import Any

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.errors import InvalidTopicException, KafkaStorageError
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.encode import encode_batch
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.disk import RealDisk
from logkernel.storage.names import FUTURE_DIR, MOVED_DIR, copy_of, future_name
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

NAME = TopicPartition("t", 0)
SETTINGS = TopicSettings(segment_bytes=1500, index_interval_bytes=300, segment_index_bytes=4096)


class Broker:
    """Two directories and a log that starts in the first of them."""

    def __init__(self, disk: Any, new_ledger: Any, root: str = "") -> None:
        self.disk = disk
        self.new_ledger = new_ledger
        self.root = root
        self.written: dict[int, bytes] = {}
        self.durable = 0
        self.boot()

    def boot(self) -> None:
        self.dirs = LogDirectories.open(self.disk, [f"{self.root}/a", f"{self.root}/b"], node_id=1)
        self.ledger = self.new_ledger()
        self.dirs.load(Needs(lambda topic: SETTINGS, lambda name: self.ledger), 1000)
        if NAME not in self.dirs.logs:
            self.ledger.reset()
            self.dirs.create(NAME, None, 1000)
        self.log = self.dirs.logs[NAME]

    def append(self, producer: int = 1, epoch: int = 0) -> None:
        base = self.log.end_offset
        value = b"%d " % base * 20
        data = encode_batch(
            [Record(None, value, timestamp_ms=1000 + base)], base_offset=base, leader_epoch=epoch,
            producer_id=producer, producer_epoch=0, base_sequence=base, transactional=producer == 3,
        )  # fmt: skip
        self.written[base] = value
        self._put(data)

    def abort(self) -> None:
        self._put(encode_marker(3, 0, False, 1, 99, base_offset=self.log.end_offset, leader_epoch=0))

    def _put(self, data: bytes) -> None:
        (facts,) = batches(data)
        self.log.append(data, [facts], 1000)
        row = self.ledger.replay(facts, data if facts.is_control else None)
        if row is not None:
            self.log.note_aborted(row)

    def flush(self) -> None:
        self.log.flush()
        self.durable = self.log.end_offset

    def fill(self) -> None:
        for number in range(24):
            self.append(producer=3 if number in (5, 6) else 1 + number % 2)
            if number == 9:
                self.abort()
            if number == 17:
                self.flush()
        self.dirs.write_recovery_points()

    def begin(self) -> Any:
        (target,) = (each for each in self.dirs.directories if NAME not in each.logs)
        return self.dirs.begin_move(NAME, target, self.new_ledger(), 1000)

    def copied(self) -> Any:
        """A move that has copied what there is."""
        future = self.begin()
        while future.step(5000, 1000):
            pass
        return future

    def decide_move(self) -> None:
        """Copy, and make the rename that decides; nothing that comes after it happens."""
        future = self.copied()
        future._finish(1000)
        future._decide()

    def move(self, *, busy: bool = True) -> None:
        future = self.begin()
        for _ in range(100):
            if not future.step(700, 1000):
                break
            if busy:
                self.append()
        future.log.flush()
        if busy:
            self.append(producer=2)
            self.flush()
        while future.step(700, 1000):
            pass
        self.log = self.dirs.finish_move(future, self.ledger, 1000)
        self.durable = self.log.end_offset


def values(log: Any) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    offset = log.start_offset
    while offset < log.end_offset and (piece := log.read(offset, 600)) is not None:
        data = piece.read()
        for facts in batches(data):
            if not facts.is_control:
                found[facts.base_offset] = data[facts.position : facts.position + facts.size]
            offset = facts.last_offset + 1
    return found


def check(broker: Broker) -> None:
    """All that was durable is there, nothing else than what was written, one folder, no leftovers."""
    found = values(broker.log)
    for offset, value in broker.written.items():
        if broker.log.start_offset <= offset < broker.durable:
            assert value in found[offset], offset
    for offset, data in found.items():
        assert broker.written[offset] in data
    broker.dirs.file_deleter.remove(10_000)
    names = [name for path in ("a", "b") for name in broker.disk.listdir(f"{broker.root}/{path}")]
    assert [name for name in names if name.startswith("t-")] == ["t-0"]


@pytest.fixture(params=["real", "simulated"])
def broker(request: Any, tmp_path: Any, new_ledger: Any) -> Broker:
    made = Broker(RealDisk() if request.param == "real" else SimulatedDisk(), new_ledger, str(tmp_path))
    made.fill()
    return made


def test_it_moves_while_it_is_written_and_back(broker: Broker) -> None:
    held = broker.log.read(0, 500)
    before = broker.dirs.directory_of(NAME).path
    broker.move()
    assert held is not None
    assert held.read(), "a reader keeps what it was given"
    assert broker.dirs.directory_of(NAME).path != before
    check(broker)
    assert set(values(broker.log)) == set(broker.written)
    (row,) = broker.log.aborted_in(0, broker.log.end_offset)
    assert (row.producer_id, row.first_offset, row.last_offset) == (3, 5, 10)
    broker.append()
    broker.move(busy=False)
    assert broker.dirs.directory_of(NAME).path == before
    check(broker)
    entries = sorted(broker.ledger.entries(), key=lambda entry: entry.producer_id)
    broker.dirs.close()
    broker.boot()
    assert broker.dirs.directory_of(NAME).path == before
    assert set(values(broker.log)) == set(broker.written)
    known = sorted(broker.ledger.entries(), key=lambda entry: entry.producer_id)
    assert [(one.producer_id, one.batches[-1][:3]) for one in known] == [
        (one.producer_id, one.batches[-1][:3]) for one in entries
    ]


def test_deletions_meanwhile(broker: Broker) -> None:
    future = broker.begin()
    future.step(300, 1000)
    broker.log.advance_log_start(12)
    broker.dirs.write_log_starts()
    while future.step(300, 1000):
        pass
    broker.log.advance_log_start(13)
    broker.log = broker.dirs.finish_move(future, broker.ledger, 1000)
    assert broker.log.start_offset == 13
    assert min(values(broker.log)) == 13
    broker.dirs.abandon()
    broker.boot()
    assert broker.log.start_offset == 13
    assert set(values(broker.log)) == {offset for offset in broker.written if offset >= 13}


def test_an_empty_log_and_one_that_deleted_all(broker: Broker) -> None:
    broker.log.drop_before(broker.log.end_offset, 1000)
    end = broker.log.end_offset
    broker.written.clear()
    broker.move(busy=False)
    assert (broker.log.start_offset, broker.log.end_offset) == (end, end)
    broker.append()
    assert list(values(broker.log)) == [end]


def test_offsets_that_compaction_took_from_the_end_stay_taken(broker: Broker) -> None:
    future = broker.copied()
    broker.log.roll(1000, broker.log.end_offset + 5)
    broker.log.end_offset += 5
    end = broker.log.end_offset
    broker.log = broker.dirs.finish_move(future, broker.ledger, 1000)
    assert broker.log.end_offset == end


def test_a_move_that_is_given_up_leaves_nothing(broker: Broker) -> None:
    future = broker.begin()
    future.step(700, 1000)
    future.abandon()
    broker.durable = broker.log.end_offset
    check(broker)


def test_a_copy_on_its_way_is_dropped_at_the_next_start_and_told_of(broker: Broker) -> None:
    future = broker.begin()
    future.step(700, 1000)
    path = future.target.path
    broker.dirs.close()
    broker.boot()
    check(broker)
    assert broker.dirs.interrupted == [(NAME, path)]


def operations(new_ledger: Any) -> tuple[int, int]:
    disk = SimulatedDisk(1)
    broker = Broker(disk, new_ledger)
    broker.fill()
    before = disk.operations
    broker.move()
    return before, disk.operations


@pytest.mark.parametrize("seed", range(4))
def test_all_is_durable_when_a_move_is_done(seed: int, new_ledger: Any) -> None:
    broker = Broker(SimulatedDisk(seed), new_ledger)
    broker.fill()
    broker.move()
    assert broker.durable == broker.log.end_offset
    broker.disk = broker.disk.crash()
    broker.boot()
    check(broker)
    assert broker.dirs.directory_of(NAME).path == "/b"


def test_producers_that_were_forgotten_stay_so(broker: Broker) -> None:
    future = broker.copied()
    del broker.ledger.producers[2]
    broker.log = broker.dirs.finish_move(future, broker.ledger, 1000)
    assert 2 not in broker.ledger.producers
    broker.dirs.close()
    broker.boot()
    assert sorted(broker.ledger.producers) == [1, 3]


@pytest.mark.parametrize("seed", range(4))
def test_the_power_fails_at_every_step(seed: int, new_ledger: Any) -> None:
    first, last = operations(new_ledger)
    for step in range(first + 1 + seed % 4, last + 1, 4):
        disk = SimulatedDisk(seed * 1000 + step)
        broker = Broker(disk, new_ledger)
        broker.fill()
        disk.fail_at(step, None)
        with contextlib.suppress(PowerCut):
            broker.move()
        broker.disk = disk.crash()
        broker.boot()
        check(broker)
        broker.append(epoch=1)
        broker.flush()
        if step % 8 == 0:
            broker.move(busy=False)
            check(broker)


@pytest.mark.parametrize("seed", range(2))
def test_the_disk_refuses_at_every_step(seed: int, new_ledger: Any) -> None:
    """A failure gives the move up or takes a directory offline; the records are there when all is well again."""
    first, last = operations(new_ledger)
    for step in range(first + 1 + seed, last + 1, 4):
        disk = SimulatedDisk(seed * 1000 + step)
        broker = Broker(disk, new_ledger)
        broker.fill()
        disk.fail_at(step, errno.EIO)
        with contextlib.suppress(OSError, KafkaStorageError):
            broker.move()
        with contextlib.suppress(OSError, KafkaStorageError):
            if broker.log.failure is None and broker.dirs.directory_of(NAME).failure is None:
                broker.append(epoch=0)
                broker.flush()
        broker.dirs.abandon()
        broker.disk = disk.crash()
        broker.boot()
        check(broker)


def test_a_log_that_went_on_after_an_undecided_end_is_kept(new_ledger: Any) -> None:
    """The deciding rename could not be made durable, and is there after all: the log was written since."""
    disk = SimulatedDisk(3)
    broker = Broker(disk, new_ledger)
    broker.fill()
    broker.flush()
    broker.decide_move()
    broker.append()
    broker.flush()
    broker.disk = disk.crash()
    broker.boot()
    assert broker.dirs.directory_of(NAME).path == "/a"
    check(broker)


def test_a_decided_copy_waits_for_a_directory_that_is_offline(new_ledger: Any) -> None:
    disk = SimulatedDisk(3)
    broker = Broker(disk, new_ledger)
    broker.fill()
    broker.flush()
    broker.decide_move()
    broker.dirs.abandon()
    disk.rename("/a", "/hidden")
    disk.create("/a")
    found = LogDirectories.open(disk, ["/a", "/b"], node_id=1)
    found.load(Needs(lambda topic: SETTINGS, lambda name: new_ledger()), 1000)
    assert [each.path for each in found.offline()] == ["/a"]
    assert NAME not in found.logs
    found.abandon()
    disk.remove("/a")
    disk.rename("/hidden", "/a")
    broker.boot()
    assert broker.dirs.directory_of(NAME).path == "/b"
    check(broker)


def test_names_of_copies_under_way_round_trip() -> None:
    from uuid import UUID

    assert future_name("t", 0, UUID(int=1)) == "t-0.00000000000000000000000000000001-future"
    assert future_name("x" * 249, 0, UUID(int=1)) is None
    assert copy_of("a.b-12.00000000000000000000000000000001-future", FUTURE_DIR) == TopicPartition("a.b", 12)
    assert copy_of("a.b-12.00000000000000000000000000000001-moved", MOVED_DIR) == TopicPartition("a.b", 12)
    for folder in ("a-1", "a-1-future", "a-1.1-future", "a.00000000000000000000000000000001-future"):
        assert copy_of(folder, FUTURE_DIR) is None


def test_a_name_that_leaves_no_room_is_refused(new_ledger: Any) -> None:
    disk = SimulatedDisk(0)
    dirs = LogDirectories.open(disk, ["/a", "/b"], node_id=1)
    dirs.load(Needs(lambda topic: SETTINGS, lambda name: new_ledger()), 1000)
    name = TopicPartition("x" * 240, 0)
    dirs.create(name, None, 1000)
    (target,) = (each for each in dirs.directories if name not in each.logs)
    with pytest.raises(InvalidTopicException, match="the name is too long to move its log"):
        dirs.begin_move(name, target, new_ledger(), 1000)
