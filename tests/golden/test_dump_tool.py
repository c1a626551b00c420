"""Kafka's own eyes on our folder: its dump tool checks every batch and index, a fresh Kafka adopts it."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
COUNT = 3000
SEGMENT_BYTES = 1 << 20  # the least that Kafka 4 allows
WAIT_S = 180.0


def write(bootstrap: str, topic: str, codec: str) -> None:
    """`COUNT` records over several segments, some with headers and null parts."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "batch.num.messages": 100}
    producer = Producer({**settings, "compression.type": codec})
    chance = random.Random(codec)
    for number in range(COUNT):
        key = None if number % 5 == 0 else b"key-%d" % number
        headers = [("n", b"%d" % number)] if number % 7 == 0 else []
        value = b"%d %s" % (number, chance.randbytes(300).hex().encode())
        producer.produce(topic, value, key, headers=headers)
    assert producer.flush(WAIT_S) == 0


@pytest.fixture
def dump(apache_kafka: ModuleType) -> Any:
    """Runs DumpLogSegments over files; returns what it printed and what it complained of."""

    def run(*arguments: str) -> str:
        command = apache_kafka.java("org.apache.kafka.tools.DumpLogSegments", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout + done.stderr

    return run


@pytest.fixture
def folder(broker: Any, topic: str) -> Path:
    """A partition's folder after a clean stop, written in four codecs."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    config = {"segment.bytes": str(SEGMENT_BYTES), "index.interval.bytes": "1000"}
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(WAIT_S)
    for codec in ("none", "lz4", "zstd", "gzip"):
        write(broker.bootstrap, topic, codec)
    assert broker.terminate() == 0
    found: Path = broker.data / f"{topic}-0"
    return found


@pytest.fixture
def topic() -> str:
    return "dumped"


def test_the_dump_tool_reads_every_record(folder: Path, dump: Any) -> None:
    logs = sorted(folder.glob("*.log"))
    assert len(logs) > 3
    text = dump("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, logs)))
    assert "isvalid: false" not in text
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", text, re.MULTILINE)]
    assert offsets == list(range(4 * COUNT))
    assert set(re.findall(r"compresscodec: (\w+)", text)) == {"none", "lz4", "zstd", "gzip"}
    assert text.count("headerKeys: [n]") == 4 * len(range(0, COUNT, 7))


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_the_dump_tool_finds_the_indexes_right(kind: str, folder: Path, dump: Any) -> None:
    """It compares each entry with the log, and speaks up at the first that lies."""
    indexes = sorted(folder.glob(f"*.{kind}"))
    assert indexes
    text = dump("--files", ",".join(map(str, indexes)))
    assert "Mismatches" not in text
    assert "Found timestamp mismatch" not in text
    assert "out of order" not in text
    assert len(re.findall(r"^(offset|timestamp): ", text, re.MULTILINE)) > len(indexes)


def test_the_dump_tool_reads_the_producer_state(folder: Path, dump: Any) -> None:
    snapshots = sorted(folder.glob("*.snapshot"))
    assert snapshots
    text = dump("--files", str(snapshots[-1]))
    assert text.count("producerId: ") == 4
    assert f"lastOffset: {4 * COUNT - 1}" in text


def test_our_own_dump_prints_the_same_lines(folder: Path, dump: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every kind of file, in every codec."""
    from logkernel.cli import main

    capsys.readouterr()
    paths = [sorted(folder.glob(f"*.{kind}"))[-1] for kind in ("index", "timeindex", "snapshot")]
    for path in (*sorted(folder.glob("*.log")), *paths):
        theirs = dump("--print-data-log", "--files", str(path))
        assert main(["dump", "--print-data-log", str(path)]) == 0
        ours = capsys.readouterr().out.splitlines()
        noise = ("Non-consecutive offsets", "  -1 is followed by")  # of a segment that does not begin at 0, on stderr
        assert ours == [line for line in theirs.splitlines() if not line.startswith(noise)], path


def test_the_checker_finds_nothing_wrong(folder: Path) -> None:
    from logkernel.cli import main

    assert main(["check", str(folder.parent)]) == 0


def test_a_fresh_kafka_adopts_the_partition(folder: Path, apache_kafka: ModuleType, tmp_path: Path, topic: str) -> None:
    """Create the topic in Kafka, stop it, lay our files in its folder, start: it serves them."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    kafka = apache_kafka.KafkaServer(tmp_path / "kafka")
    kafka.prepare()
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)
        kafka.stop()
        home = kafka.data / f"{topic}-0"
        own = (home / "partition.metadata").read_text()
        shutil.rmtree(home)
        shutil.copytree(folder, home)
        (home / "partition.metadata").write_text(own)  # the topic id is Kafka's own; all else is ours
        kafka.start()
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "adopt", "enable.partition.eof": True}
        consumer = Consumer({**settings, "check.crcs": True})
        consumer.assign([TopicPartition(topic, 0, 0)])
        offsets: list[int] = []
        while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
            assert int(message.value().split()[0]) == message.offset() % COUNT
            offsets.append(message.offset())
        consumer.close()
        assert offsets == list(range(4 * COUNT))
    finally:
        kafka.stop()


def test_a_folder_that_kafka_wrote_opens_here(
    apache_kafka: ModuleType, start_broker: Any, tmp_path: Path, topic: str
) -> None:
    """All of Kafka's log dir, given to us after a clean stop."""
    from confluent_kafka import Consumer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    kafka = apache_kafka.KafkaServer(tmp_path / "kafka")
    kafka.prepare()
    try:
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        config = {"segment.bytes": str(SEGMENT_BYTES)}
        admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(WAIT_S)
        for codec in ("none", "snappy", "zstd"):
            write(kafka.bootstrap, topic, codec)
    finally:
        kafka.stop()
    broker = start_broker(data=kafka.data)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "adopt", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    offsets: list[int] = []
    while (message := consumer.poll(WAIT_S)) is not None and message.error() is None:
        assert int(message.value().split()[0]) == message.offset() % COUNT
        offsets.append(message.offset())
    consumer.close()
    assert offsets == list(range(3 * COUNT))
    write(broker.bootstrap, topic, "lz4")
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "again"})
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=WAIT_S) == (0, 4 * COUNT)
    reader.close()
