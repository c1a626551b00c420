"""Topics that a consumer meets: by pattern, internal ones, those that come later."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from consuming import take
from doors import Bench


def test_a_topic_that_comes_later_and_grows(bench: Bench) -> None:
    with bench.consumer("later", metadata_max_age_ms=100, allow_auto_create_topics=False) as consumer:
        assert consumer.poll(0.1) == []
        bench.log.create_topic("later", 1)
        bench.put("later", 0, 3)
        assert len(take(consumer, 3)) == 3


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
        end_s = time.monotonic() + 180
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
            end_s = time.monotonic() + 180
            while consumer.subscription() != {"shop-b", "shop-c"}:
                assert time.monotonic() < end_s
                consumer.poll(0.05)


def test_internal_topics_match_where_they_are_not_left_out(bench: Bench) -> None:
    with bench.consumer(group="g") as consumer:
        consumer.commit({(bench.topic(), 0): 0})
    with bench.consumer(exclude_internal_topics=False) as consumer:
        consumer.subscribe(pattern="__consumer_.*")
        assert take(consumer, 1)[0].topic == "__consumer_offsets"
