"""An assignor from outside serves groups by the door of the built-in ones, after a restart too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from logkernel.broker.build import build
from logkernel.contracts import Assignor, GroupFacts, RequestContext
from logkernel.errors import ConfigError, UnknownServerError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest


class AllToTheFirst:
    """One member reads all, the others stand by."""

    name = "standby"

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        first = min(group.members)
        return {first: [(topic, number) for topic, count in group.partitions.items() for number in range(count)]}


class Broken:
    """Fails whenever it is asked."""

    name = "broken"

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        raise ZeroDivisionError("a bug of its author")


class Plugin:
    @hookimpl
    def logkernel_assignor(self, name: str) -> Assignor | None:
        if name == "missing":
            raise RuntimeError("its model is not there")
        return {"standby": AllToTheFirst(), "broken": Broken()}.get(name)

    @hookimpl
    def logkernel_names(self) -> Iterable[tuple[str, str]]:
        return [("assignor", "standby"), ("assignor", "missing"), ("assignor", "broken")]


def ask(broker: Any, request: Any) -> Any:
    answers: list[Any] = []
    broker.submit(request, RequestContext("c", "127.0.0.1"), answers.append)
    return answers[0]


def started(folder: Path, assignors: str = "uniform,standby") -> Any:
    settings = (f"log.dirs={folder}", f"group.consumer.assignors={assignors}")
    broker = build(None, settings, kernel=Kernel(plugins=[Plugin()]))
    broker.start()
    return broker


def heartbeat(broker: Any, member: str, assignor: str | None, group: str = "g") -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group,
        member,
        0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        server_assignor=assignor,
    )
    return ask(broker, request)


def beat(broker: Any, member: str) -> list[int]:
    answer = heartbeat(broker, member, "standby")
    assert answer.error_code == 0, answer.error_message
    return [number for row in answer.assignment.topic_partitions for number in row.partitions]


def test_members_ask_for_it_by_name(tmp_path: Path) -> None:
    broker = started(tmp_path)
    assert broker.features()["group.version"] == (0, 1, 1)
    ask(broker, CreateTopicsRequest([CreatableTopic("t", 4, 1)], timeout_ms=1_000))
    assert beat(broker, "m1") == [0, 1, 2, 3]
    assert beat(broker, "m2") == []
    broker.close()
    again = started(tmp_path)
    row = ask(again, ConsumerGroupDescribeRequest(["g"])).groups[0]
    assert (row.error_code, row.assignor_name, len(row.members)) == (0, "standby", 2)
    assert beat(again, "m1") == [0, 1, 2, 3]
    again.close()


def test_one_that_nobody_provides_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"group\.consumer\.assignors"):
        started(tmp_path, "standbye")


def test_assignors_that_fail_are_named_and_take_no_other_group_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = started(tmp_path, "missing,standby,broken")
    ask(broker, CreateTopicsRequest([CreatableTopic("t", 4, 1)], timeout_ms=1_000))
    assert beat(broker, "m1") == [0, 1, 2, 3]
    assert "assignor not available: assignor=missing" in caplog.text
    assert "its model is not there" in caplog.text
    refused = heartbeat(broker, "m2", "broken", group="other")
    assert refused.error_code == UnknownServerError.code
    assert "ZeroDivisionError" in refused.error_message
    assert "in=assignor broken" in caplog.text
    places = {fault.place for fault in broker.runtime.kernel.faults}
    assert places == {"logkernel_assignor", "assignor broken"}
    assert beat(broker, "m1") == [0, 1, 2, 3]
    broker.close()
