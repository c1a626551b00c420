"""Kafka Streams with exactly_once_v2: killed and restarted, and its broker too, every word is counted exactly once."""

from __future__ import annotations

import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
WORDS = ("offset", "segment", "index", "epoch", "leader", "marker", "batch")
PARTITIONS = 3
WAIT_S = 240.0


def lines(first: int, count: int) -> list[str]:
    """Sentences of three words, each of which is known."""
    numbers = range(first, first + count)
    return [" ".join(WORDS[number * step % len(WORDS)] for step in (1, 2, 3)) for number in numbers]


class Application:
    """One life of the word count."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        self._stderr = log.open("ab")
        self.process = subprocess.Popen(command, stdout=self._stderr, stderr=self._stderr)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._stderr.close()


class Counts:
    """What a reader of committed records sees of the target."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "counts", "reconnect.backoff.max.ms": 200}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        self.seen: dict[str, list[int]] = defaultdict(list)

    @property
    def total(self) -> int:
        return sum(map(len, self.seen.values()))

    def read_until(self, total: int, app: Application) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.total < total:
            assert time.monotonic() < deadline, f"{self.total} of {total}\n{app.log.read_text()[-6000:]}"
            for message in self._consumer.consume(500, 0.5):
                if message.error() is None:
                    self.seen[message.key().decode()].append(int(message.value()))

    def close(self) -> None:
        self._consumer.close()


def test_word_count_is_exact(
    streams_classpath: str, apache_kafka: Any, start_broker: Any, topic: str, make_topic: Any, tmp_path: Path
) -> None:
    broker = start_broker()
    bootstrap, target = broker.bootstrap, f"{topic}-counts"
    make_topic(bootstrap, topic, PARTITIONS)
    make_topic(bootstrap, target, PARTITIONS)
    source = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 200})
    expected: Counter[str] = Counter()
    sent = 0

    def write(count: int) -> None:
        nonlocal sent
        for number, line in enumerate(lines(sent, count), sent):
            source.produce(topic, line, partition=number % PARTITIONS)
            expected.update(line.split())
        sent += count
        assert source.flush(WAIT_S) == 0

    def launch() -> Application:
        arguments = (bootstrap, topic, topic, target, str(tmp_path / "state"))
        command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", streams_classpath, "WordCount", *arguments]
        return Application(command, tmp_path / "word-count.log")

    counts = Counts(bootstrap, target)
    app = launch()
    try:
        write(300)
        counts.read_until(300, app)
        write(600)  # much of it is under way when the application dies
        counts.read_until(1_200, app)
        app.kill()
        app = launch()
        write(300)
        counts.read_until(2_400, app)
        broker.kill()
        broker.restart()
        write(300)
        counts.read_until(4_500, app)
    finally:
        app.kill()
        counts.close()
    assert {word: rows[-1] for word, rows in counts.seen.items()} == dict(expected)
    for word, rows in counts.seen.items():
        assert rows == list(range(1, expected[word] + 1)), f"{word} is counted twice, or not at all"
