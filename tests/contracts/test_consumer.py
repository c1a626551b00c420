"""Every way to consume, embedded and over TCP, by threads and by asyncio: the records, and where it reads."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from consuming import take
from doors import Bench

from logkernel.client.consumer.positions import NoOffset
from logkernel.client.vocabulary import OffsetAndTime
from logkernel.errors import (
    CorruptMessage,
    LogkernelError,
    OffsetOutOfRange,
    RequestTimedOut,
)
from logkernel.vocabulary import Record, TopicPartition


def test_a_record_comes_as_it_was_written(bench: Bench) -> None:
    topic = bench.topic()
    bench.log.append(topic, b"v", key=b"k", headers={"h": b"1", "n": None}, timestamp_ms=1_700_000_000_123)
    bench.log.append(topic, None)
    with bench.consumer(topic) as consumer:
        first, second = take(consumer, 2)
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == (topic, 0, 0, 1_700_000_000_123)
    assert (first.key, first.value, first.headers) == (b"k", b"v", (("h", b"1"), ("n", None)))
    assert (second.offset, second.key, second.value, second.headers) == (1, None, None, ())


@pytest.mark.setting("max.poll.records", "auto.offset.reset")
def test_all_records_come_once_and_in_order(bench: Bench) -> None:
    topic = bench.topic(3, 500)
    with bench.consumer(topic, max_poll_records=70) as consumer:
        found: list[Any] = []
        while len(found) < 1500:
            rows = consumer.poll(10)
            assert 0 < len(rows) <= 70
            found += rows
        assert consumer.poll(0.05) == []
        assert consumer.lag == {TopicPartition(topic, index): 0 for index in range(3)}
    for index in range(3):
        assert [row.offset for row in found if row.partition == index] == list(range(500))


@pytest.mark.setting("default.api.timeout.ms")
def test_a_question_that_nobody_answers_ends_in_time(bench: Bench) -> None:
    with bench.consumer(default_api_timeout_ms=300, allow_auto_create_topics=False) as consumer:
        begun_s = time.monotonic()
        with pytest.raises(RequestTimedOut, match=r"default\.api\.timeout\.ms"):
            consumer.partitions_for("nosuch")
        consumer.assign([("nosuch", 0)])
        with pytest.raises(RequestTimedOut):
            consumer.end_offsets([("nosuch", 0)])
        assert time.monotonic() - begun_s < 30


def test_iteration_waits_for_more(bench: Bench) -> None:
    topic = bench.topic(1, 5)
    with bench.consumer(topic) as consumer:
        rows = iter(consumer)
        assert [next(rows).offset for _ in range(5)] == [0, 1, 2, 3, 4]
        timer = threading.Timer(0.1, lambda: bench.log.append(topic, b"late"))
        timer.start()
        assert next(rows).value == b"late"
        timer.join()


def test_latest_begins_at_the_end_and_none_is_an_error(bench: Bench) -> None:
    topic = bench.topic(1, 5)
    with bench.consumer(topic, auto_offset_reset="latest") as consumer:
        while not consumer.assignment():
            assert consumer.poll(0.2) == []
        assert consumer.position((topic, 0)) == 5
        bench.log.append(topic, b"new")
        assert [row.offset for row in take(consumer, 1)] == [5]
    with bench.consumer(topic, auto_offset_reset="none") as consumer, pytest.raises(NoOffset):
        consumer.poll(20)


def test_by_duration_begins_so_long_ago(bench: Bench) -> None:
    topic = bench.topic()
    now_ms = time.time_ns() // 1_000_000
    for age_ms in (7_200_000, 1_800_000, 0):
        bench.log.append(topic, b"v", timestamp_ms=now_ms - age_ms)
    with bench.consumer(topic, auto_offset_reset="by_duration:PT1H") as consumer:
        assert [row.offset for row in take(consumer, 2)] == [1, 2]


@pytest.mark.setting("key.deserializer", "value.deserializer")
def test_deserializers_convert_and_a_failure_names_its_record(bench: Bench) -> None:
    topic = bench.topic()
    bench.log.append_many(topic, [Record(b"a", b"1"), Record(None, None), Record(b"c", b"x"), Record(b"d", b"4")])
    with bench.consumer(topic, key_deserializer="string", value_deserializer=int) as consumer:
        assert [(row.key, row.value) for row in take(consumer, 2)] == [("a", 1), (None, None)]
        for _ in range(2):
            with pytest.raises(ValueError, match="invalid literal"):
                consumer.poll(10)
        consumer.seek((topic, 0), 3)
        assert [(row.key, row.value) for row in take(consumer, 1)] == [("d", 4)]


@pytest.mark.setting("interceptor.classes")
def test_interceptors_see_records_and_commits(bench: Bench) -> None:
    seen: list[Any] = []

    class Loud:
        def on_consume(self, rows: list[Any]) -> list[Any]:
            return [row._replace(value=row.value + b"!") for row in rows if row.value != b"3"]

        def on_commit(self, offsets: Any) -> None:
            seen.append(dict(offsets))

        def close(self) -> None:
            seen.append("closed")

    topic = bench.topic(1, 5)
    with bench.consumer(topic, group="g", interceptor_classes=Loud) as consumer:
        assert [row.value for row in take(consumer, 4)] == [b"0!", b"1!", b"2!", b"4!"]
        consumer.commit()
    assert seen[0] == {(topic, 0): (5, 0, "")}
    assert seen[-1] == "closed"


@pytest.mark.setting("isolation.level")
def test_read_committed_leaves_out_what_is_open_or_aborted(bench: Bench) -> None:
    topic = bench.topic()
    with bench.log.producer(transactional_id="x") as producer:
        producer.init_transactions()
        for value, commits in ((b"yes", True), (b"no", False), (b"too", True)):
            producer.begin_transaction()
            producer.send(topic, value)
            producer.flush()
            producer.commit_transaction() if commits else producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"open")
        producer.flush()
        with bench.consumer(topic, isolation_level="read_committed") as consumer:
            assert [row.value for row in take(consumer, 2)] == [b"yes", b"too"]
            assert consumer.poll(0.1) == []
            assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): 6}
            assert consumer.lag == {(topic, 0): 0}
        with bench.consumer(topic) as consumer:
            assert [row.value for row in take(consumer, 4)] == [b"yes", b"no", b"too", b"open"]
        producer.abort_transaction()


# ---------------------------------------------------------------- where it reads


def test_assign_seek_pause(bench: Bench) -> None:
    topic = bench.topic(2, 50)
    with bench.consumer() as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        assert consumer.assignment() == {(topic, 0), (topic, 1)}
        take(consumer, 100)
        consumer.seek((topic, 0), 40)
        assert [row.offset for row in take(consumer, 10)] == list(range(40, 50))
        consumer.pause((topic, 0))
        assert consumer.paused() == {(topic, 0)}
        consumer.seek_to_beginning()
        assert {row.partition for row in take(consumer, 50)} == {1}
        assert consumer.poll(0.1) == []
        consumer.resume((topic, 0))
        assert [row.offset for row in take(consumer, 50)] == list(range(50))
        consumer.seek_to_end((topic, 1))
        assert consumer.position((topic, 1)) == 50
        consumer.assign([(topic, 1)])
        with pytest.raises(LogkernelError, match="not assigned"):
            consumer.seek((topic, 0), 1)
        consumer.seek((topic, 1), 1000)
        assert take(consumer, 50)[0].offset == 0, "out of range: auto.offset.reset=earliest"


def test_out_of_range_without_a_reset_is_an_error(bench: Bench) -> None:
    topic = bench.topic(1, 5)
    with bench.consumer(auto_offset_reset="none") as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 9)
        with pytest.raises(OffsetOutOfRange, match="no offset 9"):
            consumer.poll(20)
        consumer.seek((topic, 0), 4)
        assert [row.offset for row in take(consumer, 1)] == [4]


def test_questions_about_offsets(bench: Bench) -> None:
    topic = bench.topic(2)
    for at_ms in (1000, 2000, 3000):
        bench.log.append(topic, b"v", partition=0, timestamp_ms=at_ms)
    with bench.consumer() as consumer:
        both = [(topic, 0), (topic, 1)]
        assert consumer.beginning_offsets(both) == {(topic, 0): 0, (topic, 1): 0}
        assert consumer.end_offsets(both) == {(topic, 0): 3, (topic, 1): 0}
        found = consumer.offsets_for_times({(topic, 0): 1500, (topic, 1): 1500})
        assert found[(topic, 1)] is None
        assert found[(topic, 0)][:2] == OffsetAndTime(1, 2000, 0)[:2]
        assert consumer.offsets_for_times({(topic, 0): 9000}) == {(topic, 0): None}
        assert consumer.partitions_for(topic) == [0, 1]


@pytest.mark.setting("check.crcs")
def test_a_rotten_batch_is_told_and_can_be_passed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import logkernel.record.decode as decode

    topic = bench.topic(1, 30)
    real = decode.computed_crc
    with bench.consumer(topic) as consumer, bench.consumer(topic, check_crcs=False) as careless:
        monkeypatch.setattr(decode, "computed_crc", lambda buf, at, size: real(buf, at, size) + 1)
        for _ in range(2):
            with pytest.raises(CorruptMessage, match="CRC"):
                consumer.poll(10)
        assert len(take(careless, 30)) == 30
        monkeypatch.setattr(decode, "computed_crc", real)
        assert [row.offset for row in take(consumer, 30)] == list(range(30))
