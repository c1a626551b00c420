"""What becomes of more partitions than a request may add: the same requests to Apache Kafka (`record_large.py`) and to
ours (`test_large_creations.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from streams_members import NO_TASKS

from logkernel.errors import error_for
from logkernel.requests import cluster, groups, streams_groups, topics

LIMIT: Final = 10_000
GROUP: Final = "app"
Ask = Callable[[Any], Any]
Retried = Callable[[Callable[[], bool]], None]
"""Takes a step until it is true."""
CREATIONS: Final[dict[str, list[tuple[str, int]]]] = {
    "one too many": [("a", LIMIT + 1)],
    "two that are too many together": [("a", LIMIT - 1), ("b", 2)],
    "the second too many by itself": [("a", 1), ("b", LIMIT + 1)],
    "one with a bad number": [("a", LIMIT + 1), ("b", 0)],
    "one with a bad name": [("a", LIMIT + 1), ("b/", 1)],
    "one that is there": [("a", LIMIT + 1), ("there", 1)],
    "one that is there and large": [("a", 1), ("there", LIMIT + 1)],
    "one that is named twice": [("a", LIMIT + 1), ("b", 1), ("b", 1)],
    "the default is one": [("a", LIMIT), ("b", -1)],
}
"""Case → (topic, partitions) of a request."""
REPARTITION: Final = ("app-r1", "app-r2")


def table(ask: Ask, retried: Retried) -> Iterator[str]:
    """Lines: a case, and indented what was answered."""
    made = ask(topics.CreateTopicsRequest([topics.CreatableTopic("there", 1, 1)]))
    assert made.topics[0].error_code == 0, made.topics[0].error_message
    for case, rows in CREATIONS.items():
        yield f"create {case}"
        request = topics.CreateTopicsRequest([topics.CreatableTopic(name, count, 1) for name, count in rows])
        for row in sorted(ask(request).topics, key=lambda row: row.name):
            yield f" {row.name}: {type(error_for(row.error_code)).__name__ if row.error_code else 'ok'}"
    yield "a topology whose internal topics are too many together"
    yield from (f" {line}" for line in _streams(ask, retried, LIMIT // 2 + 1))


def _topology(partitions: int) -> streams_groups.Topology:
    first, second = REPARTITION
    return streams_groups.Topology(
        0,
        [
            streams_groups.Subtopology("0", ["there"], repartition_sink_topics=[first, second]),
            streams_groups.Subtopology("1", repartition_source_topics=[streams_groups.TopicInfo(first, partitions)]),
            streams_groups.Subtopology("2", repartition_source_topics=[streams_groups.TopicInfo(second, partitions)]),
        ],
    )


def _streams(ask: Ask, retried: Retried, partitions: int) -> Iterator[str]:
    ask(groups.FindCoordinatorRequest(coordinator_keys=[GROUP]))
    first: dict[str, Any] = {
        **NO_TASKS,
        "topology": _topology(partitions),
        "process_id": "p",
        "rebalance_timeout_ms": 60_000,
    }
    answer: Any = None

    def beat() -> bool:
        nonlocal answer
        more = first if answer is None or answer.error_code else {}
        epoch = 0 if more else answer.member_epoch
        answer = ask(streams_groups.StreamsGroupHeartbeatRequest(GROUP, "m", epoch, **more))
        return not answer.error_code

    def is_told() -> bool:
        return beat() and any("failed" in row.status_detail for row in answer.status or ())

    retried(beat)
    yield from _status(answer)
    retried(is_told)
    yield from _status(answer)
    known = [cluster.MetadataRequestTopic(name) for name in REPARTITION]
    for row in sorted(ask(cluster.MetadataRequest(known, False)).topics, key=lambda row: row.name):
        yield f"{row.name}: {len(row.partitions)} partitions"


def _status(answer: Any) -> Iterator[str]:
    for row in answer.status or ():
        yield f"status {row.status_code} {row.status_detail}"
