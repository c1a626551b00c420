"""Consumers in groups, embedded and over TCP, by threads and by asyncio: what they share and commit."""

from __future__ import annotations

import time
from typing import Any

import pytest
from consuming import Heard, take, together
from doors import Bench

from logkernel.client.vocabulary import RebalanceListener
from logkernel.errors import (
    LogkernelError,
)
from logkernel.vocabulary import TopicPartition


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


@pytest.mark.parametrize("how", ["assign", "subscribe", "unsubscribe"])
def test_what_iteration_did_not_hand_out_comes_again_when_more_is_read(bench: Bench, how: str) -> None:
    topic, other = bench.topic(1, 20), bench.topic(1, 1)
    with bench.consumer(group="g", auto_offset_reset="earliest") as consumer:
        if how == "assign":
            consumer.assign([(topic, 0)])
        else:
            consumer.subscribe([topic])
        for row in consumer:
            if row.offset == 6:
                break
        if how == "assign":
            consumer.assign([(topic, 0), (other, 0)])
        elif how == "subscribe":
            consumer.subscribe([topic, other])
        else:
            consumer.unsubscribe()
            consumer.poll(0)
            consumer.subscribe([topic, other])
        rows = [row.offset for row in take(consumer, 14) if row.topic == topic]
        assert rows[:1] == [7]
    with bench.consumer(group="g") as consumer:
        assert consumer.committed([(topic, 0)])[(topic, 0)].offset == 7 + len(rows)


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
    first_revoked = next(count for what, count in heard.calls if what == "revoked")
    assert first_revoked == (2 if strategy in ("cooperative-sticky", "kip-848") else 4)
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
    end_s = time.monotonic() + 180
    while not consumer.assignment():
        assert time.monotonic() < end_s
        consumer.poll(0.05)
    assert set(lost) == {(topic, 0)}  # a slow machine may be too late again
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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_who_unsubscribes_leaves_his_partitions_to_others(bench: Bench, protocol: str) -> None:
    topic = bench.topic(2, 5)
    first = bench.consumer(topic, group="g", group_protocol=protocol)
    take(first, 10)
    first.unsubscribe()
    end_s = time.monotonic() + 180
    while first.assignment():
        assert time.monotonic() < end_s
        assert first.poll(0.1) == []
    with bench.consumer(topic, group="g", group_protocol=protocol) as second:
        while len(second.assignment()) < 2:
            assert time.monotonic() < end_s, "the first one is still a member"
            second.poll(0.05)
            first.poll(0.05)
    first.subscribe(topic)
    bench.put(topic, 0, 1)
    assert len(take(first, 1)) == 1
    first.close()
