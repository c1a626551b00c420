"""Exactly-once writes without Spark around them, over TCP: on our broker and on Apache Kafka, by both protocols."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
import logkernel  # noqa: E402
from logkernel.client.producer.transactions import Transactions  # noqa: E402
from logkernel.plugins.spark import exactly_once as once  # noqa: E402
from logkernel.plugins.spark import journal  # noqa: E402
from logkernel.plugins.spark.exactly_once import HEAL, SKIP, WRITE, Message, MustReplay, Row, Task  # noqa: E402
from logkernel.plugins.spark.journal import Journal  # noqa: E402
from logkernel.plugins.spark.sending import Rows, TaskProducer, plain_rows  # noqa: E402

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench"))
from ours import LogkernelServer  # noqa: E402
from server import Server  # noqa: E402

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
TIMEOUT = {"transaction.timeout.ms": "300000"}


@pytest.fixture(scope="module", params=["ours", "kafka", "kafka, transactions v1"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, apache_kafka: Any
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    made: Server = LogkernelServer(folder) if request.param == "ours" else apache_kafka.KafkaServer(folder)
    made.prepare()
    made.start()
    with pytest.MonkeyPatch.context() as patch:
        if request.param.endswith("v1"):
            patch.setattr(Transactions, "level", lambda self: 1)
        yield made
    made.stop()


class Columns:
    """A schema of key and value, for one topic."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.at = {"key": 0, "value": 1}


class Query:
    """What Spark does with the batches of one query."""

    def __init__(self, server: Server, topic: str) -> None:
        self.bootstrap = server.bootstrap
        self.name = str(uuid.uuid4())
        self.columns: Any = Columns(topic)

    @contextlib.contextmanager
    def journal(self, own: str) -> Iterator[tuple[TaskProducer, Journal]]:
        producer = TaskProducer(self.bootstrap, TIMEOUT, own)
        try:
            yield producer, Journal(producer, own)
        finally:
            producer.close()

    def task(self, batch: int, slot: int, values: list[str], *, prepare: bool = True) -> Message:
        with self.journal(once.participant_id(self.name, slot)) as (producer, journal):
            task = Task(journal, self.name, batch, slot)
            verdict = task.begin()
            arrow = pa.record_batch(
                {
                    "key": pa.array([value[:1] for value in values]),
                    "value": pa.array([value.encode() for value in values]),
                }
            )
            if verdict == HEAL:
                return task.message(plain_rows(arrow, self.columns))
            if verdict == WRITE:
                task.open()
                rows = Rows(producer, self.columns, None, slot)
                rows.send(arrow)
                if prepare:
                    task.prepare(rows.count, self.ranges(producer))
            return task.message()

    @staticmethod
    def ranges(producer: TaskProducer) -> list[tuple[str, int, int, int]]:
        found = sorted((batch.topic, batch.partition, batch.base_offset, batch.count) for batch in producer.flush())
        return [(topic, partition, first, first + count - 1) for topic, partition, first, count in found]

    def commit(self, messages: list[Message]) -> None:
        with self.journal(once.decider_id(self.name)) as (_, journal):
            once.commit(journal, messages)

    def end(self, message: Message, commit: bool) -> None:
        """What another process does to one participant."""
        assert message.participant is not None
        with self.journal(once.decider_id(self.name)) as (_, journal):
            journal.view(self.name)
            who = message.participant
            assert journal.end_all([(once.participant_id(self.name, who.slot), who.producer_id, who.epoch)], commit)

    def decide(self, messages: list[Message]) -> None:
        """The decision, and no more: the driver dies behind it."""
        with self.journal(once.decider_id(self.name)) as (_, journal):
            own = once.decider_id(self.name)
            journal.take(own)
            view = journal.view(self.name)
            who = tuple(message.participant for message in messages if message.participant is not None)
            decision = once.Decision(messages[0].batch, who)
            hint = min(view.open[one].offset for one in who)
            journal.decide(self.name, once.decision_key(self.name), once.decision_blob(decision), hint, ())


@pytest.fixture
def query(server: Server) -> Query:
    from clients import create_topic

    topic = f"t-{uuid.uuid4()}"
    create_topic(server.bootstrap, topic, 3)
    return Query(server, topic)


def values(query: Query) -> Counter[str]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"bootstrap.servers": query.bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "enable.auto.commit": False})
    topic = query.columns.topic
    consumer.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(3)])
    found: Counter[str] = Counter()
    ended: set[int] = set()
    while len(ended) < 3:
        for message in consumer.consume(100, 1.0):
            if message.error() is None:
                found[message.value().decode()] += 1
            else:
                ended.add(message.partition())
    consumer.close()
    return found


def test_a_batch_and_its_replays(query: Query) -> None:
    query.commit([query.task(1, 0, ["a", "b"]), query.task(1, 1, ["c", "c"])])
    assert values(query) == Counter("abcc")
    again = query.task(1, 0, ["a", "b", "c", "c"])
    assert again.verdict == SKIP
    query.commit([again])
    query.commit([query.task(2, 0, ["d"])])
    assert query.task(1, 0, ["a"]).verdict == SKIP
    assert values(query) == Counter("abccd")


def test_what_a_dead_driver_left_is_taken_back(query: Query) -> None:
    query.task(1, 0, ["a"])
    query.task(1, 1, ["b"], prepare=False)
    query.task(1, 2, ["c"])
    query.commit([query.task(1, 0, ["a", "b", "c"])])
    assert values(query) == Counter("abc"), "slots that the replay has not were aborted: nobody waits for them"


def test_what_was_decided_is_rolled_forward_by_the_next_task(query: Query) -> None:
    messages = [query.task(1, slot, [text]) for slot, text in enumerate("abc")]
    query.decide(messages)
    query.end(messages[1], commit=True)
    assert query.task(1, 0, ["c", "b", "a"]).verdict == SKIP
    assert values(query) == Counter("abc")


def test_a_batch_that_was_written_in_part_is_healed(query: Query) -> None:
    messages = [query.task(1, slot, texts) for slot, texts in enumerate((["a", "twin"], ["b"], ["twin", "c"]))]
    query.decide(messages)
    query.end(messages[0], commit=True)
    query.end(messages[1], commit=False)
    query.end(messages[2], commit=False)
    replay = [query.task(1, 0, ["c", "twin"]), query.task(1, 1, ["twin", "b", "a"])]
    assert [message.verdict for message in replay] == [HEAL, HEAL]
    query.commit(replay)
    assert values(query) == Counter({"a": 1, "b": 1, "c": 1, "twin": 2})
    assert query.task(1, 0, ["a"]).verdict == SKIP
    query.commit([query.task(2, 0, ["d"])])
    assert values(query)["d"] == 1


def test_a_task_that_is_taken_over_takes_its_batch_back(query: Query) -> None:
    first = query.task(1, 0, ["a"])
    second = query.task(1, 0, ["a"])
    with pytest.raises(MustReplay, match="was aborted"):
        query.commit([first])
    assert values(query) == Counter()
    query.commit([second])
    assert values(query) == Counter("a")


def test_abort_spares_who_was_decided_on(query: Query) -> None:
    messages = [query.task(1, slot, [text]) for slot, text in enumerate("ab")]
    query.decide(messages)
    with query.journal(once.decider_id(query.name)) as (_, journal):
        once.abort(journal, messages)
    assert query.task(1, 0, ["a", "b"]).verdict == SKIP
    assert values(query) == Counter("ab")
    late = query.task(2, 0, ["c"])
    with query.journal(once.decider_id(query.name)) as (_, journal):
        once.abort(journal, [late, None])
    assert values(query) == Counter("ab")


def test_the_journal_stays_small_over_many_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    """Of a query, a record a slot and a decision are left when the journal was compacted, however many it had."""
    quick = {"segment.ms": "300", "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "50"}
    monkeypatch.setattr(journal, "SETTINGS", {**journal.SETTINGS, **quick})
    server = LogkernelServer(tmp_path / "broker", {"log.cleaner.backoff.ms": "20"})
    server.prepare()
    server.start()
    try:
        with logkernel.connect(server.bootstrap) as log:
            log.create_topic("t", 3)
            query, batches = Query(server, "t"), count()

            def micro_batch() -> None:
                batch = next(batches)
                query.commit([query.task(batch, slot, [f"{batch}-{slot}"]) for slot in range(2)])

            def left(isolation: str) -> list[bytes]:
                rows = log.table(once.TOPIC, columns=["key"], isolation=isolation).read_all()
                return [key for key in rows["key"].to_pylist() if key is not None]

            for _ in range(30):
                micro_batch()
            assert set(left("read_committed")) == {query.name.encode() + end for end in (b"", b"/0", b"/1")}

            def small() -> bool:
                micro_batch()  # closes a segment
                return len(left("read_uncommitted")) <= 15

            eventually(small, 240, "three records, and a few that are not compacted yet")
            assert sum(values(query).values()) == 2 * next(batches)
    finally:
        server.stop()


def test_rows_of_long_keys_and_headers_are_read_back_as_they_are(query: Query) -> None:
    with query.journal(once.participant_id(query.name, 0)) as (producer, journal):
        journal.view(query.name)
        producer_id, epoch = journal.begin()
        rows = [
            Row(query.columns.topic, 1, b"k" * 300, None, (("h", None), ("ü", b"1"))),
            Row(query.columns.topic, 1, None, b""),
        ]
        for row in rows:
            producer.send_row(row, None)
        found = query.ranges(producer)
        token = once.Token(1, once.Participant(0, producer_id, epoch), 0, 0, True, 2, tuple(found))
        assert journal.read_back(token) == rows, "in the order of the log"
