"""One suite over every way to consume: embedded and over TCP, by threads and by asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from doors import Bench, way_into

import logkernel
from logkernel import aio
from logkernel.client.positions import NoOffset
from logkernel.client.steps import OffsetAndTime, RebalanceListener, WakeupError
from logkernel.errors import (
    ConfigError,
    CorruptMessage,
    InvalidRegularExpression,
    InvalidTopicException,
    LogkernelError,
    OffsetOutOfRange,
    RequestTimedOut,
)
from logkernel.vocabulary import Record, TopicPartition

QUICK = {
    "group_initial_rebalance_delay_ms": 0,
    "group_consumer_heartbeat_interval_ms": 50,
    "group_consumer_min_heartbeat_interval_ms": 50,
}


@pytest.fixture
def bench(way: str) -> Iterator[Bench]:
    with logkernel.open(**QUICK) as log, way_into(log, way) as far:
        yield Bench(log, far)


def take(consumer: Any, count: int, timeout_s: float = 30.0) -> list[Any]:
    """At least `count` records."""
    found: list[Any] = []
    end_s = time.monotonic() + timeout_s
    while len(found) < count:
        assert time.monotonic() < end_s, f"{len(found)} of {count} records"
        found += consumer.poll(1)
    return found


def together(first: Any, second: Any, ready: Callable[[], bool], timeout_s: float = 30.0) -> list[Any]:
    """Poll two members until something holds; what they read meanwhile."""
    found: list[Any] = []
    end_s = time.monotonic() + timeout_s
    while not ready():
        assert time.monotonic() < end_s
        found += first.poll(0.05)
        found += second.poll(0.05)
    return found


class Heard(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assigned", len(partitions)))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("revoked", len(partitions)))


# ---------------------------------------------------------------- records


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
def test_deserializers(bench: Bench) -> None:
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
def test_interceptors(bench: Bench) -> None:
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


# ---------------------------------------------------------------- groups and commits


@pytest.mark.setting("enable.auto.commit")
def test_a_group_goes_on_where_it_was(bench: Bench) -> None:
    topic = bench.topic(2, 20)
    with bench.consumer(topic, group="g", max_poll_records=15) as consumer:
        first = consumer.poll(20)
        assert len(first) == 15
    with bench.consumer(topic, group="g") as consumer:
        second = take(consumer, 25)
    assert {(row.partition, row.offset) for row in first + second} == {(p, o) for p in (0, 1) for o in range(20)}
    assert len(second) == 25
    with bench.consumer(topic, group="h", enable_auto_commit=False) as consumer:
        take(consumer, 40)
    with bench.consumer(topic, group="h", enable_auto_commit=False) as consumer:
        assert len(take(consumer, 40)) == 40


def test_what_iteration_did_not_hand_out_is_not_committed(bench: Bench) -> None:
    topic = bench.topic(1, 20)
    with bench.consumer(topic, group="g") as consumer:
        for row in consumer:
            if row.offset == 6:
                break
        consumer.commit()
        assert consumer.committed([(topic, 0)])[(topic, 0)].offset == 7
    with bench.consumer(topic, group="g") as consumer:
        assert next(iter(consumer)).offset == 7


@pytest.mark.setting("auto.commit.interval.ms")
def test_polls_commit_what_earlier_polls_returned(bench: Bench) -> None:
    topic = bench.topic(1, 20)
    with (
        bench.consumer(topic, group="g", auto_commit_interval_ms=0, max_poll_records=5) as consumer,
        bench.consumer(group="g") as other,
    ):
        take(consumer, 5)
        assert other.committed([(topic, 0)]).get((topic, 0), (0,))[0] == 0
        take(consumer, 5)
        assert consumer.committed([(topic, 0)])[(topic, 0)].offset == 5


def test_commits_of_one_s_own(bench: Bench) -> None:
    topic = bench.topic(2, 10)
    told: list[Any] = []
    with bench.consumer(topic, group="g", enable_auto_commit=False) as consumer:
        take(consumer, 20)
        consumer.commit({(topic, 0): 3, (topic, 1): (4, 0, "half")})
        found = consumer.committed([(topic, 0), (topic, 1)])
        assert found == {(topic, 0): (3, -1, ""), (topic, 1): (4, 0, "half")}
        consumer.commit_async({(topic, 0): 5}, lambda offsets, error: told.append((offsets, error)))
        consumer.commit_async({(topic, 0): 6}, lambda offsets, error: told.append((offsets, error)))
        consumer.commit({(topic, 1): 7})
        assert [offsets[(topic, 0)][0] for offsets, error in told if error is None] == [5, 6]
        assert consumer.committed([(topic, 0)])[(topic, 0)].offset == 6
        assert consumer.group_metadata().generation_id == 1
    with bench.consumer(topic) as alone, pytest.raises(LogkernelError, match=r"group\.id"):
        alone.commit()


@pytest.mark.setting("partition.assignment.strategy", "group.protocol")
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky", "kip-848"])
def test_two_members_share_and_nothing_is_lost_or_doubled(bench: Bench, strategy: str) -> None:
    topic = bench.topic(4, 50)
    details: dict[str, Any] = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": 50}
    details = {"group": "g", **({"group_protocol": "consumer"} if strategy == "kip-848" else details)}
    heard = Heard()
    first = bench.consumer(**details)
    first.subscribe([topic], heard)
    found = take(first, 200)
    second = bench.consumer(topic, **details)
    found += together(first, second, lambda: len(first.assignment()) == len(second.assignment()) == 2)
    assert not first.assignment() & second.assignment()
    for index in range(4):
        bench.put(topic, index, 30)
    while len(found) < 320:
        found += first.poll(0.05) + second.poll(0.05)
    second.close()
    found += together(first, first, lambda: len(first.assignment()) == 4)
    first.close()
    assert sorted((row.partition, row.offset) for row in found) == [(p, o) for p in range(4) for o in range(80)]
    assert heard.calls[0] == ("assigned", 4)
    assert ("revoked", 2 if strategy in ("cooperative-sticky", "kip-848") else 4) in heard.calls
    assert heard.calls[-1][0] == "revoked"


@pytest.mark.setting("max.poll.interval.ms")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_does_not_poll_loses_what_he_has(bench: Bench, protocol: str) -> None:
    topic = bench.topic(1, 5)
    lost: list[Any] = []

    class Losing(RebalanceListener):
        def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
            lost.extend(partitions)

    consumer = bench.consumer(group="g", max_poll_interval_ms=300, group_protocol=protocol)
    consumer.subscribe([topic], Losing())
    take(consumer, 5)
    time.sleep(0.6)
    consumer.poll(0.1)
    end_s = time.monotonic() + 20
    while not consumer.assignment():
        assert time.monotonic() < end_s
        consumer.poll(0.05)
    assert lost == [(topic, 0)]
    consumer.close()


@pytest.mark.setting("group.instance.id")
def test_a_static_member_comes_back_without_a_round(bench: Bench) -> None:
    topic = bench.topic(2, 5)
    details = {"group": "g", "group_instance_id": "one"}
    with bench.consumer(topic, **details) as consumer:
        take(consumer, 10)
        before = consumer.group_metadata()
    with bench.consumer(topic, **details) as consumer:
        bench.put(topic, 0, 1)
        take(consumer, 1)
        after = consumer.group_metadata()
    assert (before.generation_id, after.generation_id) == (1, 1)
    assert before.member_id != after.member_id


def test_a_listener_s_error_is_the_poll_s(bench: Bench) -> None:
    class Bad(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            raise ZeroDivisionError

    topic = bench.topic(1, 5)
    with bench.consumer(group="g") as consumer:
        consumer.subscribe([topic], Bad())
        with pytest.raises(ZeroDivisionError):
            take(consumer, 1)
        assert len(take(consumer, 5)) == 5


def test_a_topic_that_comes_later_and_grows(bench: Bench) -> None:
    with bench.consumer("later", metadata_max_age_ms=100, allow_auto_create_topics=False) as consumer:
        assert consumer.poll(0.1) == []
        bench.log.create_topic("later", 1)
        bench.put("later", 0, 3)
        assert len(take(consumer, 3)) == 3


@pytest.mark.parametrize("new_one", ["classic", "consumer"])
def test_a_group_goes_from_one_protocol_to_the_other_while_it_reads(bench: Bench, new_one: str) -> None:
    topic = bench.topic(4, 50)
    details: dict[str, Any] = {
        "classic": {"group": "g", "partition_assignment_strategy": "range", "heartbeat_interval_ms": 50},
        "consumer": {"group": "g", "group_protocol": "consumer"},
    }
    before = bench.consumer(topic, **details["consumer" if new_one == "classic" else "classic"])
    found = take(before, 200)
    after = bench.consumer(topic, **details[new_one])
    found += together(before, after, lambda: len(before.assignment()) == len(after.assignment()) == 2)
    assert not before.assignment() & after.assignment()
    before.commit()
    after.commit()
    for index in range(4):
        bench.put(topic, index, 30)
    while len(found) < 320:
        found += before.poll(0.05) + after.poll(0.05)
    before.close()
    found += together(after, after, lambda: len(after.assignment()) == 4)
    bench.put(topic, 0, 1)
    found += take(after, 1)
    after.close()
    expected = [(p, o) for p in range(4) for o in range(80)] + [(0, 80)]
    assert sorted((row.partition, row.offset) for row in found) == sorted(expected)
    with bench.consumer(group="g") as looking:
        committed = looking.committed([(topic, index) for index in range(4)])
    assert [committed[(topic, index)].offset for index in range(4)] == [81, 80, 80, 80]


@pytest.mark.setting("exclude.internal.topics")
@pytest.mark.parametrize("hidden", [True, False])
def test_a_pattern_meets_internal_topics_where_they_are_not_excluded(bench: Bench, hidden: bool) -> None:
    topic = bench.topic(1, 1)
    with bench.consumer(topic, group="g") as member:
        take(member, 1)
    with bench.consumer(exclude_internal_topics=hidden) as consumer:
        consumer.subscribe(pattern=re.compile(".*"))
        take(consumer, 1)
        assert consumer.subscription() == ({topic} if hidden else {topic, "__consumer_offsets"})


@pytest.mark.parametrize("how", ["alone", "classic", "consumer", "consumer-here"])
def test_topics_by_pattern_also_those_that_come_later(bench: Bench, how: str) -> None:
    details: dict[str, Any] = {"metadata_max_age_ms": 100}
    if how != "alone":
        details |= {"group": "g", "group_protocol": how.removesuffix("-here")}
    for name in ("shop-a", "shop-b", "workshop-a"):
        bench.log.create_topic(name, 2)
        bench.put(name, 0, 5)
    text = r"shop-[a-z]+|__.*"
    with bench.consumer(**details) as consumer:
        consumer.subscribe(pattern=re.compile(text) if how == "consumer-here" else text)
        found = [row for row in take(consumer, 10) if not row.topic.startswith("__")]
        while len(found) < 10:
            found += take(consumer, 1)
        bench.log.create_topic("shop-c", 1)
        bench.put("shop-c", 0, 3)
        end_s = time.monotonic() + 30
        while len(found) < 13 and time.monotonic() < end_s:
            if how == "consumer":
                bench.log.create_topic(
                    f"other-{time.monotonic_ns()}", 1
                )  # the coordinator looks when something changes
            found += consumer.poll(0.5)
        assert {row.topic for row in found if not row.topic.startswith("__")} >= {"shop-a", "shop-b", "shop-c"}
        if how != "consumer":
            assert consumer.subscription() == {"shop-a", "shop-b", "shop-c"}
            bench.log.delete_topic("shop-a")
            end_s = time.monotonic() + 30
            while consumer.subscription() != {"shop-b", "shop-c"}:
                assert time.monotonic() < end_s
                consumer.poll(0.05)


def test_internal_topics_match_where_they_are_not_left_out(bench: Bench) -> None:
    with bench.consumer(group="g") as consumer:
        consumer.commit({(bench.topic(), 0): 0})
    with bench.consumer(exclude_internal_topics=False) as consumer:
        consumer.subscribe(pattern="__consumer_.*")
        assert take(consumer, 1)[0].topic == "__consumer_offsets"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_unsubscribes_leaves_his_partitions_to_others(bench: Bench, protocol: str) -> None:
    topic = bench.topic(2, 5)
    first = bench.consumer(topic, group="g", group_protocol=protocol)
    take(first, 10)
    first.unsubscribe()
    assert first.poll(0.1) == []
    assert first.assignment() == set()
    with bench.consumer(topic, group="g", group_protocol=protocol) as second:
        end_s = time.monotonic() + 10
        while len(second.assignment()) < 2:
            assert time.monotonic() < end_s, "the first one is still a member"
            second.poll(0.05)
            first.poll(0.05)
    first.subscribe(topic)
    bench.put(topic, 0, 1)
    assert len(take(first, 1)) == 1
    first.close()


# ---------------------------------------------------------------- errors and the end


def test_wrong_use_is_told(bench: Bench) -> None:
    with pytest.raises(ConfigError, match="did you mean fetch"):
        bench.consumer("t", fetch_min_byte=1)
    with pytest.raises(InvalidTopicException):
        bench.consumer("")
    topic = bench.topic()
    consumer = bench.consumer(topic)
    consumer.close()
    consumer.close()
    with pytest.raises(LogkernelError, match="closed"):
        consumer.poll(0)
    with bench.consumer() as other:
        with pytest.raises(ValueError, match="no regular expression"):
            other.subscribe(pattern="(")
        with pytest.raises(ValueError, match="not both"):
            other.subscribe("t", pattern="t")
    with bench.consumer(group="g", group_protocol="consumer") as other:
        other.subscribe(pattern="(")
        with pytest.raises(InvalidRegularExpression):
            take(other, 1)


# ---------------------------------------------------------------- waking up


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_wakeup_ends_a_poll_from_another_thread(kind: str) -> None:
    with logkernel.open() as log:
        log.create_topic("t", 1)
        remote = logkernel.connect(log.listen()) if kind == "tcp" else log
        with remote.consumer("t", auto_offset_reset="earliest") as consumer:
            consumer.poll(0.1)
            timer = threading.Timer(0.2, consumer.wakeup)
            timer.start()
            with pytest.raises(WakeupError):
                consumer.poll(None)
            timer.join()
            log.append("t", b"v")
            assert len(take(consumer, 1)) == 1, "once is once"
            consumer.wakeup()
            log.append("t", b"w")
            time.sleep(0.1)
            with pytest.raises(WakeupError):
                next(iter(consumer))
            assert [row.value for row in take(consumer, 1)] == [b"w"], "nothing was taken"
        if kind == "tcp":
            remote.close()


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_a_signal_handler_may_wake(kind: str) -> None:
    with logkernel.open() as log:
        log.create_topic("t", 1)
        remote = logkernel.connect(log.listen()) if kind == "tcp" else log
        with remote.consumer("t") as consumer:
            before = signal.signal(signal.SIGALRM, lambda *_: consumer.wakeup())
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                with pytest.raises(WakeupError):
                    consumer.poll(30)
            finally:
                signal.signal(signal.SIGALRM, before)
        if kind == "tcp":
            remote.close()


@pytest.mark.parametrize("kind", ["embedded", "tcp"])
def test_a_task_s_poll_is_cancelled_and_loses_nothing(kind: str) -> None:
    async def work(log: logkernel.EmbeddedLog) -> None:
        far: Any = aio.AsyncLog(log) if kind == "embedded" else aio.connect(log.listen())
        consumer = far.consumer("t", group="g", auto_offset_reset="earliest")
        poll = asyncio.ensure_future(consumer.poll(None))
        await asyncio.sleep(0.5)
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll
        found: list[Any] = []
        for number in range(40):
            await asyncio.to_thread(log.append, "t", b"%d" % number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(number % 5 / 1000):
                    found += await consumer.poll(None)
        while len(found) < 40:
            found += await consumer.poll(20)
        assert [row.offset for row in found] == list(range(40))
        await consumer.close()
        if kind == "tcp":
            await far.close()

    with logkernel.open(**QUICK) as log:
        log.create_topic("t", 1)
        asyncio.run(work(log))
