"""Compaction beside Apache Kafka's own cleaner, over copies of one folder: the same must be left, batch by batch."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from attrs import define, field

from logkernel.config.topic import TopicSettings
from logkernel.contracts import LogFacts, Rewrite
from logkernel.kernel import Kernel
from logkernel.partition.producers import ProducerStates
from logkernel.record.batch import batches
from logkernel.record.control import encode_marker
from logkernel.record.decode import decode_batch
from logkernel.record.encode import encode_batch
from logkernel.storage.disk import RealDisk
from logkernel.storage.log import Log
from logkernel.storage.txnindex import parse_rows
from logkernel.vocabulary import AbortedTxn, Record

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
SEGMENT_BYTES = 6000
RETENTION_MS = 1000
NOW_MS = 1_700_000_900_000
MAP_BYTES = 1 << 20
CODECS = (None, None, "lz4", "zstd", "gzip", "snappy")
SETTINGS = TopicSettings(
    cleanup_policy=("compact",), segment_bytes=SEGMENT_BYTES, index_interval_bytes=500, delete_retention_ms=RETENTION_MS
)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel()


@define
class Writer:
    """A log of plain, idempotent and transactional producers, by a seed."""

    log: Log
    ledger: ProducerStates
    kernel: Kernel
    chance: random.Random
    sequences: dict[int, int] = field(factory=dict)
    open: set[int] = field(factory=set)
    clock_ms: int = 1_700_000_000_000

    def write(self, batches_wanted: int) -> None:
        for _ in range(batches_wanted):
            producer = self.chance.choice((-1, -1, 1, 2, 3, 4))
            if producer >= 2 and producer in self.open and self.chance.random() < 0.4:
                self.end(producer)
            else:
                self.data(producer)
        for producer in sorted(self.open):
            self.end(producer)
        self.log.roll(self.clock_ms)

    def data(self, producer: int) -> None:
        count = self.chance.randint(1, 8)
        records = []
        for _ in range(count):
            self.clock_ms += self.chance.randint(-3, 10)
            key = b"key-%d" % self.chance.randint(0, 40)
            value = None if self.chance.random() < 0.15 else self.chance.randbytes(self.chance.randint(0, 90))
            headers = (("h", b"1"),) if self.chance.random() < 0.2 else ()
            records.append(Record(key, value, headers, self.clock_ms))
        sequence = self.sequences.get(producer, 0)
        codec = self.chance.choice(CODECS)
        self.put(
            encode_batch(
                records,
                base_offset=self.log.end_offset,
                leader_epoch=0,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=sequence if producer >= 0 else -1,
                transactional=producer >= 2,
                timestamp_type_log_append=self.chance.random() < 0.1,
                codec=None if codec is None else self.kernel.codec(codec),
            )
        )
        self.sequences[producer] = sequence + count
        if producer >= 2:
            self.open.add(producer)

    def end(self, producer: int) -> None:
        committed = self.chance.random() < 0.5
        self.put(
            encode_marker(producer, 0, committed, 0, self.clock_ms, base_offset=self.log.end_offset, leader_epoch=0)
        )
        self.open.discard(producer)

    def put(self, data: bytes) -> None:
        (facts,) = batches(data)
        self.log.append(data, [facts], self.clock_ms)
        aborted = self.ledger.replay(facts, data if facts.is_control else None)
        if aborted is not None:
            self.log.note_aborted(aborted)


def open_log(folder: Path) -> tuple[Log, ProducerStates]:
    ledger = ProducerStates()
    return Log.open(RealDisk(), str(folder.parent), "t", 0, SETTINGS, producers=ledger), ledger


def compact(log: Log, kernel: Kernel, end: int, wall_ms: int) -> None:
    facts = LogFacts(
        topic="t", partition=0, segments=log.facts(), log_start_offset=log.start_offset, high_watermark=end,
        wall_ms=wall_ms, settings=SETTINGS, last_stable_offset=end, clean_offset=log.clean_offset,
        table_bytes=MAP_BYTES, asked=True,
    )  # fmt: skip
    (plan,) = (step for step in kernel.cleanup("compact", {}).plan(facts) if isinstance(step, Rewrite))
    rewriting = log.begin_rewrite(plan, kernel.codec_for, wall_ms, buffer_bytes=1 << 16)
    rewriting.run()
    log.end_rewrite(rewriting)


def told(folder: Path, kernel: Kernel) -> Iterator[tuple[Any, ...]]:
    """Every batch that holds records, by header and content."""
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for facts in batches(data):
            records = decode_batch(data, facts, kernel.codec_for, verify_crc=True)
            if not records:
                continue
            horizon = facts.base_timestamp_ms if facts.attributes & 0x40 else None
            yield (
                facts.base_offset, facts.last_offset, facts.attributes, facts.producer_id, facts.producer_epoch,
                facts.base_sequence, facts.leader_epoch, facts.max_timestamp_ms, horizon,
                [(each.offset, each.key, each.value, each.headers, each.timestamp_ms) for each in records],
            )  # fmt: skip


def index_rows(folder: Path) -> list[AbortedTxn]:
    """The aborted transactions that the indexes name, in log order."""
    paths = sorted(folder.glob("*.txnindex"))
    return [row for path in paths for row in parse_rows(path.read_bytes(), str(path))]


@pytest.fixture(scope="session")
def judge(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[int]]:
    """Runs Kafka's cleaner over a folder; gives the offsets that it reached."""
    classes = tmp_path_factory.mktemp("judge")
    compile_command = ["javac", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes), str(HERE / "JudgeCleaner.java")]
    subprocess.run(compile_command, check=True, capture_output=True)

    def run(*arguments: object) -> list[int]:
        command = apache_kafka.java("JudgeCleaner", *map(str, arguments), classpath=str(classes))
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("reached ")]

    return run


@pytest.mark.parametrize("seed", range(4))
def test_the_same_is_left_as_by_kafkas_cleaner(
    seed: int, judge: Callable[..., list[int]], kernel: Kernel, tmp_path: Path, apache_kafka: ModuleType
) -> None:
    ours, theirs = tmp_path / "ours" / "t-0", tmp_path / "theirs" / "t-0"
    ours.parent.mkdir()
    log, ledger = open_log(ours)
    writer = Writer(log, ledger, kernel, random.Random(seed))
    ends = []
    for batches_wanted in (150, 150, 30, 30, 30):
        writer.write(batches_wanted)
        ends.append(log.end_offset)
    log.close()
    shutil.copytree(ours, theirs)
    later_ms = (0, 10, 500, 5000, 9000)  # the horizons that the first round sets are over in the fourth
    rounds = [(-1, end, NOW_MS + later) for end, later in zip(ends, later_ms, strict=True)]
    arguments = [part for round_ in rounds for part in round_]
    reached = judge(theirs, tmp_path / "out", SEGMENT_BYTES, RETENTION_MS, MAP_BYTES, *arguments)
    log, _ = open_log(ours)
    horizons: list[int] = []
    for number, (_, end, now_ms) in enumerate(rounds):
        compact(log, kernel, end, now_ms)
        assert log.clean_offset == reached[number] == end
        found, wanted = list(told(ours, kernel)), list(told(tmp_path / "out" / str(number), kernel))
        assert found == wanted, f"round {number}"
        horizons += [batch[8] for batch in found if batch[8] is not None]
        assert index_rows(ours) == index_rows(tmp_path / "out" / str(number)), f"round {number}"
    assert len(set(horizons)) > 2, "no tombstones were met"
    log.close()
    log, again = open_log(ours)  # the producers' state is that of the log before
    summary = [{e.producer_id: (e.producer_epoch, e.batches[-1][:2]) for e in each.entries() if e.batches}
               for each in (ledger, again)]  # fmt: skip
    assert summary[0] == summary[1]
    log.abandon()
    files = ",".join(map(str, sorted(ours.glob("*.log")) + sorted(ours.glob("*index"))))
    dump = apache_kafka.java("org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", files)
    done = subprocess.run(dump, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    # the tool sees no timestamp in an empty batch, though its header has one; Kafka's own folders have such batches
    text = re.sub(r"Found timestamp mismatch in :\S+\n(  Index timestamp: \d+, log timestamp: -1\n)+", "", done.stdout)
    for complaint in ("isvalid: false", "Mismatches", "timestamp mismatch", "out of order"):
        assert complaint not in text
