"""Real Spark writes to a served log: batches, and a stream that copies lines exactly once while everything is killed.

`LOGKERNEL_SPARK_KILLS` says how often, and four times as often without Spark. The judge is confluent-kafka, which reads
what is committed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
import logkernel
from logkernel.plugins.spark.exactly_once import TOPIC

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench")]
from killing import TASKS, Aim, Driver, Strikes  # noqa: E402
from ours import LogkernelServer  # noqa: E402
from server import Server  # noqa: E402

KILLS = int(os.environ.get("LOGKERNEL_SPARK_KILLS", "3"))
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800 + 60 * KILLS)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[LogkernelServer]:
    server = LogkernelServer(tmp_path / "broker")
    server.prepare()
    server.start()
    yield server
    with contextlib.suppress(Exception):
        server.stop()


@pytest.fixture(params=["ours", "Apache Kafka"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    if request.param == "ours":
        yield request.getfixturevalue("served")
        return
    settings = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
    server: Server = request.getfixturevalue("apache_kafka").KafkaServer(tmp_path / "kafka", settings)
    server.prepare()
    server.start()
    yield server
    server.stop()


def committed(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Any]:
    """All that a reader of committed records gets, or of all."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    count = len(consumer.list_topics(topic, 180).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(count)])
    found: list[Any] = []
    ended: set[int] = set()
    deadline = time.monotonic() + 240
    while len(ended) < count:
        assert time.monotonic() < deadline, "a transaction that nobody ends holds readers up"
        for message in consumer.consume(500, 1.0):
            if message.error() is None:
                found.append(message)
            else:
                ended.add(message.partition())
    consumer.close()
    return found


def plain(binary: Any) -> bytes | None:
    """Spark 4.0 gives bytearrays, which cannot be counted."""
    return None if binary is None else bytes(binary)


def judged(spark: Any, bootstrap: str, topic: str) -> list[Any]:
    """As Spark's own connector reads it."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    reader = reader.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true")
    rows: list[Any] = reader.load().collect()
    return rows


def writer(frame: Any, server: Server, topic: str | None, **options: str) -> Any:
    made = frame.write.format("logkernel").option("kafka.bootstrap.servers", server.bootstrap).mode("append")
    for name, value in {**options, **({} if topic is None else {"topic": topic})}.items():
        made = made.option(name.replace("_", "."), value)
    return made


def test_columns_of_a_batch(spark: Any, either: Server) -> None:
    with logkernel.connect(either.bootstrap) as log:
        log.create_topic("one", partitions=3)
        log.create_topic("two", partitions=3)
    frame = spark.sql(
        """SELECT cast(id AS string) AS key, IF(id % 7 = 0, NULL, cast(concat('v', id) AS binary)) AS value,
                  IF(id % 2 = 0, 'one', 'two') AS topic, IF(id % 5 = 0, 2, NULL) AS partition,
                  IF(id % 3 = 0, array(named_struct('key', 'h', 'value', cast(id AS string))), NULL) AS h
           FROM range(1000)"""
    ).selectExpr(
        "key", "value", "topic", "cast(partition AS int) partition",
        "transform(h, x -> named_struct('key', x.key, 'value', cast(x.value AS binary))) AS headers",
    )  # fmt: skip
    writer(frame, either, None).save()
    rows = [*committed(either.bootstrap, "one"), *committed(either.bootstrap, "two")]
    assert Counter(row.key() for row in rows) == Counter(str(i).encode() for i in range(1000))
    for row in rows:
        number = int(row.key())
        assert row.topic() == ("one" if number % 2 == 0 else "two")
        assert row.value() == (None if number % 7 == 0 else b"v%d" % number)
        assert row.headers() == ([("h", b"%d" % number)] if number % 3 == 0 else None)
        if number % 5 == 0:
            assert row.partition() == 2
    by_judge = [*judged(spark, either.bootstrap, "one"), *judged(spark, either.bootstrap, "two")]
    assert Counter((plain(row.key), plain(row.value), row.partition) for row in by_judge) == Counter(
        (row.key(), row.value(), row.partition()) for row in rows
    )
    by_hand = [row for row in rows if int(row.key()) % 5]
    assert {row.partition() for row in by_hand} == {0, 1, 2}


def test_a_job_with_a_name_is_written_once(spark: Any, either: Server) -> None:
    with logkernel.connect(either.bootstrap) as log:
        log.create_topic("jobs", partitions=2)
    frame = spark.range(500).selectExpr("cast(id AS string) AS value").repartition(3)
    for _ in range(2):
        writer(frame, either, "jobs", jobId="nightly").save()
    writer(frame.repartition(2), either, "jobs", jobId="nightly").save()
    assert Counter(row.value() for row in committed(either.bootstrap, "jobs")) == Counter(b"%d" % i for i in range(500))
    writer(frame, either, "jobs", jobId="the next").save()
    assert len(committed(either.bootstrap, "jobs")) == 1000
    few = frame.limit(10)
    for batch in ("0", "1", "1", "0", "2"):
        writer(few, either, "jobs", jobId="of/many", batchId=batch).save()
    assert len(committed(either.bootstrap, "jobs")) == 1030


def test_a_task_that_fails_leaves_nothing_of_a_named_job(spark: Any, either: Server) -> None:
    with logkernel.connect(either.bootstrap) as log:
        log.create_topic("failing", partitions=2)
    bad = spark.range(400).selectExpr("cast(IF(id = 399, raise_error('bad'), id) AS string) AS value").repartition(1)
    frame = spark.range(400).selectExpr("cast(id AS string) AS value")
    with pytest.raises(Exception, match="bad"):
        writer(bad, either, "failing", jobId="j").save()
    assert committed(either.bootstrap, "failing") == []
    writer(frame, either, "failing", jobId="j").save()
    assert len(committed(either.bootstrap, "failing")) == 400


@pytest.mark.parametrize("name", ["keyed", "round_robin"])
def test_partitioners_are_plugins(spark: Any, served: LogkernelServer, name: str) -> None:
    topic = f"by-{name}"
    with logkernel.connect(served.bootstrap) as log:
        log.create_topic(topic, partitions=4)
    frame = spark.range(400).selectExpr("cast(id % 40 AS string) AS key", "cast(id AS string) AS value").coalesce(1)
    writer(frame, served, topic, partitioner=name).save()
    rows = committed(served.bootstrap, topic)
    assert len(rows) == 400
    if name == "round_robin":
        assert set(Counter(row.partition() for row in rows).values()) == {100}
    else:
        assert len({(row.key(), row.partition()) for row in rows}) == 40


def test_a_folder_without_a_broker(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "data"
    with logkernel.open(path) as log:
        log.create_topic("t", partitions=2)
    frame = spark.range(300).selectExpr("cast(id AS string) AS value").repartition(3)
    frame.write.format("logkernel").option("path", str(path)).option("topic", "t").mode("append").save()
    with logkernel.open(path) as log:
        values = [record.value for part in range(2) for record in log.read("t", partition=part)]
    assert Counter(values) == Counter(b"%d" % i for i in range(300))


def test_a_folder_with_a_broker_is_refused(spark: Any, served: LogkernelServer) -> None:
    frame = spark.range(3).selectExpr("cast(id AS string) AS value")
    with pytest.raises(Exception, match=r"kafka\.bootstrap\.servers"):
        frame.write.format("logkernel").option("path", str(served.data)).option("topic", "t").mode("append").save()


def test_the_pages_examples(spark: Any, served: LogkernelServer, tmp_path: Path) -> None:
    """docs/spark-writing.md, block by block, in one namespace."""
    page = (HERE.parents[1] / "docs" / "spark-writing.md").read_text()
    with logkernel.connect(served.bootstrap) as log:
        for topic in ("orders", "copy", "nightly"):
            log.create_topic(topic, partitions=2)
    names = {"spark": spark, "bootstrap": served.bootstrap, "checkpoint": str(tmp_path / "checkpoint")}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "docs/spark-writing.md", "exec"), names)
    for topic in ("orders", "copy", "nightly"):
        assert len(committed(served.bootstrap, topic)) == 1000, topic


# ---------------------------------------------------------------- kills


class Copy(Driver):
    """Spark copies."""

    script = "spark_copy.py"
    pause_s = 0.8
    """From a batch's first token to a kill, at most: about as long as tasks write and the driver decides."""

    def __init__(self, words: Sequence[str], tasks: int, log: Path) -> None:
        super().__init__([sys.executable, str(HERE / self.script), *words, "--tasks", str(tasks)], log)


class Bare(Copy):
    """The sink's tasks and driver without Spark around them: the same kills in a tenth of the time."""

    script = "once_copy.py"
    pause_s = 0.3

    def kill(self, chance: random.Random | None = None) -> None:
        if chance is not None and chance.random() < 0.5:  # tasks, commit or abort go on
            self.process.kill()
            self.process.wait()
        else:
            super().kill()

    def workers(self, what: str = TASKS) -> list[int]:
        return [pid for pid in self.session() if pid != self.process.pid]


Records = Counter[tuple[int | None, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]
"""Partition (None: any), key, value, headers."""


def lines(folder: Path, server: LogkernelServer, triggers: int) -> tuple[str, Records]:
    """A folder of text, a file a trigger: what is read, and what the copy is to hold."""
    folder.mkdir()
    wanted: Records = Counter()
    for number in range(triggers):
        text = texts(number)
        wanted.update((None, line.split()[0].encode(), line.encode(), ()) for line in text)
        (folder / f"{number:05}.txt").write_text("\n".join(text) + "\n")
    return str(folder), wanted


def topic(folder: Path, server: LogkernelServer, triggers: int) -> tuple[str, Records]:
    """A topic with keys, nulls and headers: the same."""
    wanted: Records = Counter()
    with logkernel.connect(server.bootstrap) as log:
        log.create_topic("original", partitions=3)
        with log.producer() as producer:
            for number in range(triggers):
                for index, line in enumerate(texts(number)):
                    key = None if index % 11 == 0 else line.split()[0].encode()
                    value = None if index % 13 == 0 else line.encode()
                    headers = (("n", b"%d" % number), ("null", None)) if index % 3 == 0 else ()
                    producer.send("original", value, key=key, partition=index % 3, headers=headers)
                    wanted[index % 3, key, value, headers] += 1
    return "topic:original", wanted


def segments(folder: Path, server: LogkernelServer, triggers: int) -> tuple[str, Records]:
    """The same, read from the broker's files."""
    wanted = topic(folder, server, triggers)[1]
    return f"segments:original@{server.data}", wanted


def texts(number: int) -> list[str]:
    """The lines of one trigger, some of them twice."""
    found = [f"k{index % 50} file {number} line {index // 2 * 2} {'x' * (index % 7)}" for index in range(600)]
    return found + found[:20]


def copied(bootstrap: str, *, placed: bool) -> Records:
    return Counter(
        (row.partition() if placed else None, row.key(), row.value(), tuple(row.headers() or ()))
        for row in committed(bootstrap, "copy")
    )


def taken_back(bootstrap: str) -> int:
    """How many transactions of tasks were aborted: those whose tokens only a reader of all records sees."""
    every, kept = (
        {tuple(json.loads(row.value())[1:4]) for row in committed(bootstrap, TOPIC, level) if b"/" in row.key()}
        for level in ("read_uncommitted", "read_committed")
    )
    return len(every - kept)


OFTEN = ("task", "broker", "task", "broker")
KINDS = ("driver", *OFTEN, "commit", *OFTEN)
"""The commit is a process of its own, which decides for the driver."""


@pytest.mark.longest
@pytest.mark.parametrize(
    ("driver", "source", "kills", "triggers"),
    [(Copy, lines, KILLS, 2), (Copy, topic, KILLS, 2), (Copy, segments, KILLS, 2), (Bare, topic, 4 * KILLS, 1)],
)
def test_a_copy_is_exact_whatever_is_killed(
    served: LogkernelServer,
    tmp_path: Path,
    driver: type[Copy],
    source: Any,
    kills: int,
    triggers: int,
    request: pytest.FixtureRequest,
) -> None:
    """Task, driver, its commit and broker are killed while drivers copy, each with its tasks cut otherwise."""
    chance = random.Random(int(os.environ.get("LOGKERNEL_SPARK_SEED", "7")))
    checkpoint, log = tmp_path / "checkpoint", tmp_path / "driver.log"
    read, wanted = source(tmp_path / "source", served, 12 + triggers * kills)
    with logkernel.connect(served.bootstrap) as made:
        made.create_topic("copy", partitions=3)
    words = [served.bootstrap, "copy", read, str(checkpoint)]
    if driver is Copy:
        words += ["--java", request.getfixturevalue("spark_java")]

    def restart() -> None:
        served.kill()
        served.start()

    kinds = [KINDS[index % len(KINDS)] for index in range(kills)]
    strikes = Strikes(kinds, chance, Aim(checkpoint, served.data), restart, log)
    drivers, done = 0, False
    while not done:
        copy = driver(words, chance.choice((1, 2, 3, 5)), log)
        drivers += 1
        try:
            killed = strikes.at(copy, driver.pause_s)
        finally:
            copy.kill()
        done = not killed and copy.process.returncode == 0
    assert not strikes.left, f"{strikes.left} were not killed: more triggers are needed"
    found = copied(served.bootstrap, placed=source is not lines)
    assert found == wanted, (sum(found.values()), sum(wanted.values()), log.read_text()[-3000:])
    assert "failOnDataLoss=false" not in log.read_text(), "a broker that is away loses nothing"
    aborted = taken_back(served.bootstrap)
    by_kind = Counter(kind for kind, _ in strikes.struck.elements())
    batches = {batch for _, batch in strikes.struck}
    print(f"{kills} kills ({dict(by_kind)}) in {len(batches)} micro-batches; {drivers} drivers; {aborted} transactions")
    print(f"of tasks taken back; {sum(found.values())} records, each as often as in the original")
    assert aborted >= kills // 10, "the kills did not fall where tasks write"
