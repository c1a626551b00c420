"""What members of a Streams group send in scenarios, and what they are told. All times in ms."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from logkernel.requests.streams_groups import (
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from logkernel.requests.topics import CreatableTopicResult, CreateTopicsResponse

INVALID_REQUEST, UNSUPPORTED_VERSION, UNKNOWN_MEMBER, NOT_FOUND, MAX_SIZE, NON_EMPTY = 42, 35, 25, 69, 81, 68
UNKNOWN_TOPIC = 3
LOADING, FENCED_EPOCH, STALE_EPOCH, INVALID_TOPOLOGY, INCONSISTENT, SUBSCRIBED = 14, 110, 113, 130, 23, 86
STALE_TOPOLOGY, MISSING_SOURCES, WRONG_PARTITIONS, MISSING_INTERNAL, SHUTDOWN, DELAYED = range(6)
ALL = [("0", number) for number in range(4)]
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
"""What a member says that it holds when it comes."""


def plain(epoch: int = 0) -> Topology:
    """One subtopology that reads `orders`, of four partitions, without state."""
    return Topology(epoch, [Subtopology("0", ["orders"])])


def stateful() -> Topology:
    """`orders` goes by a repartition topic to a second subtopology, with state."""
    return Topology(
        0,
        [
            Subtopology("0", ["orders"], repartition_sink_topics=["app-repartition"]),
            Subtopology(
                "1",
                repartition_source_topics=[TopicInfo("app-repartition", 0, 0, [KeyValue("segment.bytes", "1000")])],
                state_changelog_topics=[TopicInfo("app-changelog", 0, 1, [KeyValue("cleanup.policy", "compact")])],
            ),
        ],
    )


def tasks(*places: tuple[str, int]) -> list[TaskIds]:
    return [TaskIds(name, [number for other, number in places if other == name]) for name in dict(places)]


def beat(world: Any, member: str, epoch: int, **more: Any) -> Any:
    """What a heartbeat is told; `active` and `standby` are what the member says that it holds."""
    active, standby = more.pop("active", None), more.pop("standby", None)
    if active is not None or standby is not None:
        more.update(active_tasks=tasks(*active or ()), standby_tasks=tasks(*standby or ()), warmup_tasks=[])
    if epoch == 0:
        first = {"topology": plain(), "process_id": f"process of {member}", "rebalance_timeout_ms": 60_000}
        more = {**NO_TASKS, **first, **more}
    return world.ask(StreamsGroupHeartbeatRequest("g", member, epoch, **more))


def told(rows: list[TaskIds] | None) -> list[tuple[str, int]] | None:
    return None if rows is None else [(row.subtopology_id, number) for row in rows for number in row.partitions]


def status(answer: Any) -> list[int]:
    return [row.status_code for row in answer.status]


def settle(world: Any, *members: str, **more: Any) -> dict[str, tuple[list[tuple[str, int]], list[tuple[str, int]]]]:
    """Let members beat, and give up what they are told to, until all is Stable: member → (active, standby)."""
    known: dict[str, tuple[int, list[tuple[str, int]], list[tuple[str, int]]]] = {}
    group = world.group.streams if world.group else None
    for name in members:
        before = group.members.get(name) if group is not None else None
        known[name] = (before.epoch if before is not None else 0, [], [])
    for _ in range(12):
        for name, (epoch, active, standby) in known.items():
            answer = beat(world, name, epoch, active=active, standby=standby, **(more if epoch == 0 else {}))
            assert answer.error_code == 0, answer.error_message
            if answer.active_tasks is not None:
                active, standby = told(answer.active_tasks) or [], told(answer.standby_tasks) or []
            known[name] = answer.member_epoch, active, standby
        world.after(1_000)
    assert world.state == "Stable"
    return {name: (active, standby) for name, (_, active, standby) in known.items()}


def make_topics(world: Any, code: int = 0) -> Any:
    """The broker makes the topics that it was asked for; gives the request."""
    token, request = world.sent.pop(0)
    rows = [CreatableTopicResult(topic.name, code, "no room" if code else None) for topic in request.topics]
    for topic in request.topics if not code else ():
        world.topics.partitions[topic.name] = topic.num_partitions
        world.topics.ids[topic.name] = UUID(int=1000 + len(world.topics.ids))
    world.run(world.machine.on_response(token, CreateTopicsResponse(topics=rows), world.wall_ms, world.mono_ms))
    if not code:
        names = [topic.name for topic in request.topics]
        world.run(world.machine.on_topics_changed(names, world.wall_ms, world.mono_ms))
    return request


def describe(world: Any) -> Any:
    return world.ask(StreamsGroupDescribeRequest(["g"], True)).groups[0]
