"""Heartbeats of Streams groups that make no sense."""

from __future__ import annotations

from typing import Any

import pytest
from streams_members import (
    ALL,
    INVALID_REQUEST,
    NO_TASKS,
    UNSUPPORTED_VERSION,
    beat,
    plain,
)

from logkernel.requests.streams_groups import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    Topology,
)

WRONG: dict[str, tuple[int, dict[str, Any]]] = {
    "an instance id": (0, {"instance_id": "i"}),
    "task offsets": (0, {"task_offsets": [TaskOffset("0", 0, 1)]}),
    "task end offsets": (0, {"task_end_offsets": []}),
    "warm-ups": (2, {"active_tasks": [], "standby_tasks": [], "warmup_tasks": [TaskIds("0", [0])]}),
    "an expression": (0, {"topology": Topology(0, [Subtopology("0", [], ["x.*"])])}),
    "no timeout": (0, {"rebalance_timeout_ms": -1}),
    "no topology": (0, {"topology": None}),
    "a topology later": (2, {"topology": plain()}),
    "tasks at first": (0, {"active": ALL}),
    "no word of tasks at first": (0, {"active_tasks": None}),
    "one kind of tasks": (2, {"active_tasks": []}),
    "an empty rack": (2, {"rack_id": " "}),
    "an epoch below": (-3, {}),
    "static leave": (-2, {}),
    "an unknown subtopology": (2, {"active": [("9", 0)]}),
    "an unknown subtopology without tasks": (2, {**NO_TASKS, "standby_tasks": [TaskIds("9", [])]}),
    "an unknown task": (2, {"active": [("0", 4)]}),
    "a task below 0": (2, {"active": [("0", -1)]}),
    "more tasks than there can be": (2, {**NO_TASKS, "active_tasks": [TaskIds("0", [0] * 100_001)]}),
    "more rows of tasks than there can be": (2, {**NO_TASKS, "standby_tasks": [TaskIds("0")] * 100_001}),
    "a client tag twice": (2, {"client_tags": [KeyValue("zone", "a"), KeyValue("zone", "b")]}),
    "client tags of more than a MiB": (2, {"client_tags": [KeyValue(str(n), "v" * 30_000) for n in range(40)]}),
    "a process id of 40,000 bytes": (2, {"process_id": "p" * 40_000}),
    "a host of 40,000 bytes": (2, {"user_endpoint": Endpoint("h" * 40_000, 1)}),
    "a tag of 40,000 bytes": (2, {"client_tags": [KeyValue("k", "v" * 40_000)]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_requests_that_make_no_sense_are_refused(world: Any, name: str) -> None:
    beat(world, "m1", 0)
    size = len(world.log)
    epoch, more = WRONG[name]
    answer = beat(world, "m1", epoch, **more)
    assert (answer.error_code, bool(answer.error_message)) == (INVALID_REQUEST, True)
    assert len(world.log) == size


def test_the_first_task_that_does_not_exist_is_named(world: Any) -> None:
    beat(world, "m1", 0)
    answer = beat(world, "m1", 2, active=[("0", number) for number in (0, 900, 4, 5)])
    assert answer.error_message == "Task 900 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"


def test_names_that_are_empty_or_too_long(world: Any) -> None:
    first = {**NO_TASKS, "topology": plain(), "rebalance_timeout_ms": 1, "process_id": "p"}
    assert world.ask(StreamsGroupHeartbeatRequest("g", "", 0, **first)).error_code == INVALID_REQUEST
    assert world.ask(StreamsGroupHeartbeatRequest(" ", "m", 0, **first)).error_code == INVALID_REQUEST
    assert world.ask(StreamsGroupHeartbeatRequest("g", "\0\t", 0, **first)).error_code == INVALID_REQUEST
    assert world.ask(StreamsGroupHeartbeatRequest("g", "m" * 40_000, 0, **first)).error_code == INVALID_REQUEST


def test_the_protocol_can_be_off(world: Any) -> None:
    world.topics.streams_version = 0
    assert beat(world, "m1", 0).error_code == UNSUPPORTED_VERSION
