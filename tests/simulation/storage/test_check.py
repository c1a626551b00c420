"""The checker on the simulated disk: it finds every lie that is planted, and none where a crash or a clean end left
what they may leave."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from logkernel.config.topic import TopicSettings
from logkernel.contracts import LogFacts, Rewrite
from logkernel.errors import DataDirectoryLocked
from logkernel.inspect.findings import ERROR, Report
from logkernel.inspect.folder import check_directory, held
from logkernel.kernel import Kernel
from logkernel.partition.producers import ProducerStates
from logkernel.plugins.cleanup.compact import Compact
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.encode import encode_batch
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record, TopicPartition

NAME = TopicPartition("t", 0)
SETTINGS = TopicSettings(segment_bytes=3000, index_interval_bytes=300, segment_index_bytes=4096, file_delete_delay_ms=0)
FOLDER = "/data/t-0"


@pytest.fixture(scope="module")
def codec_for():
    return Kernel().codec_for


class World:
    """A log with producers, transactions, epochs and several segments, on a disk that may lose power."""

    def __init__(self, seed: int = 0) -> None:
        self.disk = SimulatedDisk(seed)
        self.random = random.Random(seed)

    def boot(self) -> None:
        self.dirs = LogDirectories.open(self.disk, ["/data"], node_id=1)
        self.ledger = ProducerStates()
        self.dirs.load(Needs(lambda topic: SETTINGS, lambda name: self.ledger), 1000)
        if NAME not in self.dirs.logs:
            self.dirs.create(NAME, UUID(int=7), 1000)
        self.log = self.dirs.logs[NAME]

    def append(self, data: bytes) -> None:
        (facts,) = batches(data)
        self.log.append(data, [facts], 1000)
        row = self.ledger.replay(facts, data if facts.is_control else None)
        if row is not None:
            self.log.note_aborted(row)

    def work(self, steps: int) -> None:
        for _ in range(steps):
            base, chance = self.log.end_offset, self.random
            producer = chance.randint(1, 3)
            if chance.random() < 0.1:
                self.append(
                    encode_marker(3, 0, chance.random() < 0.5, 1, 99, base_offset=base, leader_epoch=base // 40)
                )
            else:
                values = [chance.randbytes(chance.choice((10, 200, 900))) for _ in range(chance.randint(1, 3))]
                records = [Record(b"k", value, timestamp_ms=chance.randint(1, 5000)) for value in values]
                self.append(
                    encode_batch(
                        records, base_offset=base, leader_epoch=base // 40, producer_id=producer, producer_epoch=0,
                        base_sequence=base, transactional=producer == 3,
                    )
                )  # fmt: skip
            if chance.random() < 0.1:
                self.log.flush()
            if chance.random() < 0.05:
                self.dirs.write_recovery_points()
            if chance.random() < 0.02:
                offset = chance.randint(self.log.start_offset, self.log.end_offset)
                self.log.advance_log_start(offset)
                self.dirs.write_log_starts()
                self.log.drop_before(offset, 0)
                self.log.purge(10)
                self.dirs.file_deleter.remove(100)

    def compact(self, codec_for, wall_ms: int) -> None:
        """As a broker does; transactions that are open keep what lies behind them."""
        started = [each.current_txn_first_offset for each in self.ledger.entries()]
        stable = min((offset for offset in started if offset >= 0), default=self.log.end_offset)
        facts = LogFacts(
            topic="t", partition=0, segments=self.log.facts(), log_start_offset=self.log.start_offset,
            high_watermark=self.log.end_offset, wall_ms=wall_ms, settings=SETTINGS, last_stable_offset=stable,
            clean_offset=self.log.clean_offset, table_bytes=1 << 20, asked=True,
        )  # fmt: skip
        for plan in Compact().plan(facts):
            if isinstance(plan, Rewrite):
                rewriting = self.log.begin_rewrite(plan, codec_for, wall_ms)
                rewriting.run()
                self.log.end_rewrite(rewriting)

    def check(self, codec_for) -> Report:
        report = Report()
        check_directory(self.disk, "/data", codec_for, report)
        return report


def closed(seed: int = 3, steps: int = 60) -> World:
    world = World(seed)
    world.boot()
    while world.log.first_base_offset or world.log.end_offset < steps:
        world.work(5)
        assert world.log.end_offset < 1000
    world.dirs.close()
    return world


@pytest.mark.parametrize("seed", range(8))
def test_what_a_clean_end_leaves_is_faultless(seed, codec_for):
    world = World(seed)
    for _ in range(3):
        world.boot()
        world.work(40)
        world.dirs.close()
        assert world.check(codec_for).findings == []


def compacted(codec_for, seed: int, rounds: int) -> World:
    """Written, compacted and closed, again and again; between some rounds delete.retention.ms goes by."""
    world = World(seed)
    for number in range(rounds):
        world.boot()
        world.work(60)
        world.compact(codec_for, 1000 + number // 2 * 2 * SETTINGS.delete_retention_ms)
        world.dirs.close()
    return world


@pytest.mark.parametrize("seed", range(8))
def test_what_compaction_leaves_is_faultless(seed, codec_for):
    """Markers and index rows outlive the data of aborted transactions, snapshots tell of batches that are gone."""
    for rounds in (1, 2, 5):
        world = compacted(codec_for, seed, rounds)
        assert world.check(codec_for).findings == []
    assert world.check(codec_for).records < world.log.end_offset, "nothing was compacted"


def test_lies_about_aborted_transactions_are_found_in_a_compacted_log(codec_for):
    found = 0
    for seed in range(8):
        world = compacted(codec_for, seed, 1)
        for name in names(world, ".txnindex"):
            data = world.disk.content(f"{FOLDER}/{name}")
            for at in range(len(data)):
                if at % 34 in (9, 10, 24, 25):  # producer, a first offset far behind the last, the last offset
                    data[at] ^= 0x41
                    assert errors(world, codec_for), (seed, name, at)
                    data[at] ^= 0x41
                    found += 1
    assert found > 20


@pytest.mark.parametrize("block", range(5))
def test_what_a_crash_leaves_is_no_error_and_recovery_leaves_nothing(block, codec_for):
    warned = 0
    for seed in range(block * 8, block * 8 + 8):
        world = World(seed)
        for _ in range(3):
            try:
                world.disk.fail_at(world.disk.operations + world.random.randint(20, 250), None)
                world.boot()
                world.work(120)
            except PowerCut:
                pass
            world.disk = world.disk.crash()
            found = world.check(codec_for) if world.disk.exists("/data") else Report()
            assert [finding for finding in found.findings if finding.severity == ERROR] == [], seed
            warned += len(found.findings)
            world.boot()
            world.dirs.close()
            left = {finding.path.rpartition(".")[2] for finding in world.check(codec_for).findings}
            assert left <= {"snapshot", "metadata"}, seed  # torn ones are passed over; the topic's id was never synced
    assert warned > 20


@pytest.mark.parametrize("seed", [9, 27, 37, 56])
def test_what_a_crash_leaves_of_a_compacted_log_is_no_error(seed, codec_for):
    """In the midst of a swap, of a removal, with a cleaner's checkpoint that is behind."""
    world = World(seed)
    for number in range(4):
        try:
            world.disk.fail_at(world.disk.operations + world.random.randint(20, 400), None)
            world.boot()
            for step in range(6):
                world.work(20)
                world.compact(codec_for, 1000 + (number + step) * SETTINGS.delete_retention_ms // 3)
                world.dirs.write_clean_offsets(NAME)
        except PowerCut:
            pass
        world.disk = world.disk.crash()
        assert [finding for finding in world.check(codec_for).findings if finding.severity == ERROR] == []
        world.boot()
        world.dirs.close()
        left = {finding.path.rpartition(".")[2] for finding in world.check(codec_for).findings}
        assert left <= {"snapshot", "metadata"}


def names(world: World, suffix: str) -> list[str]:
    return sorted(name for name in world.disk.listdir(FOLDER) if name.endswith(suffix))


def rot(world: World, name: str, at: int, flip: int = 0xFF) -> None:
    world.disk.content(f"{FOLDER}/{name}")[at] ^= flip


def errors(world: World, codec_for) -> list[tuple[str, int | None]]:
    found = world.check(codec_for).findings
    return [(finding.path.removeprefix("/data/"), finding.position) for finding in found if finding.severity == ERROR]


def test_a_flipped_bit_of_a_record_is_placed(codec_for):
    world = closed()
    first = names(world, ".log")[0]
    rot(world, first, 61 + 20)
    assert errors(world, codec_for) == [(f"t-0/{first}", 0)]


def test_every_bit_of_a_segment_matters(codec_for):
    """But for the leader epoch of a batch, which no checksum covers: the epochs' checkpoint tells."""
    world = closed()
    name = names(world, ".log")[0]
    data = world.disk.content(f"{FOLDER}/{name}")
    for at in random.Random(1).sample(range(len(data)), 60):
        data[at] ^= 1
        assert errors(world, codec_for), at
        data[at] ^= 1
    assert errors(world, codec_for) == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_every_bit_of_what_is_derived_matters(suffix, codec_for):
    world = closed(steps=100)
    for name in names(world, suffix):
        data = world.disk.content(f"{FOLDER}/{name}")
        for at in random.Random(2).sample(range(len(data)), min(len(data), 25)):
            if suffix == ".txnindex" and at % 34 in (0, 1, *range(26, 34)):
                continue  # the version, and a last stable offset, which nothing else knows
            data[at] ^= 0x41
            assert world.check(codec_for).findings, (name, at)
            data[at] ^= 0x41
    assert errors(world, codec_for) == []


def test_a_batch_that_is_not_there_is_missed(codec_for):
    """A hole between segments is what compaction leaves; within the epochs, the indexes tell."""
    world = closed()
    name = names(world, ".log")[0]
    data = world.disk.content(f"{FOLDER}/{name}")
    first = next(batches(bytes(data)))
    del data[: first.size]
    assert {path.rpartition(".")[2] for path, _ in errors(world, codec_for)} >= {"index"}


@pytest.mark.parametrize("clean_offset", [None, 0])
def test_a_segment_that_is_not_there_is_missed(clean_offset, codec_for):
    """By the index that it left, or as compaction never came so far."""
    world = closed()
    name = names(world, ".log")[2]
    doomed = [each for each in world.disk.listdir(FOLDER) if each.startswith(name[:20])]
    for each in doomed if clean_offset is not None else [name]:
        world.disk.remove(f"{FOLDER}/{each}")
    if clean_offset is not None:
        world.disk.write("/data/cleaner-offset-checkpoint", b"0\n1\nt 0 %d\n" % clean_offset)
    behind = names(world, ".log")[2]
    (found,) = [finding for finding in world.check(codec_for).findings if finding.severity == ERROR]
    assert found.path == f"{FOLDER}/{behind}"
    assert found.what == f"offsets {int(name[:20])} to {int(behind[:20]) - 1} before it are missing"


def test_a_truncated_segment_of_a_clean_directory_is_an_error(codec_for):
    world = closed()
    name = names(world, ".log")[0]
    size = world.disk.size(f"{FOLDER}/{name}")
    del world.disk.content(f"{FOLDER}/{name}")[-10:]
    (found, *_) = errors(world, codec_for)
    assert found[0] == f"t-0/{name}"
    assert 0 < found[1] < size


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("recovery-point-offset-checkpoint", b"0\n1\nt 0 99999\n", "past the log end"),
        ("replication-offset-checkpoint", b"0\n1\nt 0 99999\n", "past the log end"),
        ("log-start-offset-checkpoint", b"0\n5\nt 0 1\n", "entries announced"),
        ("meta.properties", b"version=9\n", "version '9'"),
        ("t-0/leader-epoch-checkpoint", b"0\n1\n7 0\n", "its batch says 0"),
        ("t-0/leader-epoch-checkpoint", b"nonsense", "line 1"),
        ("t-0/partition.metadata", b"version: 0\ntopic_id: x\n", "topic_id"),
    ],
)
def test_small_files_that_lie(name, content, said, codec_for):
    world = closed()
    world.disk.write(f"/data/{name}", content)
    (found,) = [finding for finding in world.check(codec_for).findings if finding.severity == ERROR]
    assert found.path == f"/data/{name}"
    assert said in found.what
    assert found.remedy


def test_names_that_nobody_knows_are_warnings(codec_for):
    world = closed()
    for path in ("/data/notes.txt", "/data/t-0/core.1234", "/data/t-0/00000000000000000777.index"):
        world.disk.write(path, b"x")
    world.disk.mkdir("/data/lost+found")
    world.disk.mkdir("/data/gone-0.0123-delete")
    found = world.check(codec_for).findings
    assert sorted(finding.path for finding in found) == [
        "/data/gone-0.0123-delete",
        "/data/lost+found",
        "/data/notes.txt",
        "/data/t-0/00000000000000000777.index",
        "/data/t-0/core.1234",
    ]
    assert {finding.severity for finding in found} == {"warning"}


def test_what_a_removal_left_is_one_warning_a_folder(codec_for):
    """Retention that a kill interrupted may leave tens of thousands of files."""
    world = closed()
    for number in range(40):
        world.disk.write(f"{FOLDER}/{number:020d}.log.deleted", b"x")
    (finding,) = world.check(codec_for).findings
    assert (finding.severity, finding.path) == ("warning", f"{FOLDER}/{0:020d}.log.deleted")
    assert "39 others" in finding.what


def test_a_disk_that_cannot_be_read_is_a_finding_and_the_rest_is_checked(codec_for):
    world = closed()
    bad = f"{FOLDER}/{names(world, '.log')[0]}"
    world.disk.unreadable.add(bad)
    found = world.check(codec_for)
    assert (bad, "error") in [(finding.path, finding.severity) for finding in found.findings]
    assert found.batches > 0


def test_a_broker_keeps_the_checker_out(codec_for):
    world = World()
    world.boot()
    with pytest.raises(DataDirectoryLocked, match="in use"), held(world.disk, "/data"):
        pass


def test_nothing_is_written(codec_for):
    world = closed()
    before = world.disk.operations
    with held(world.disk, "/data"):
        world.check(codec_for)
    assert world.disk.operations == before
