"""Questions about groups of Kafka Streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logkernel.requests.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    Topology,
)

from .asking import Asking

Tasks = dict[str, Sequence[int]]
"""Subtopology → partitions."""


def said(message: str | None) -> str:
    """The first sentence: what follows may be a remedy."""
    return (message or "").split(". ")[0].rstrip(".")


def told(rows: list[TaskIds] | None) -> list[tuple[str, list[int]]] | None:
    return None if rows is None else sorted((row.subtopology_id, sorted(row.partitions)) for row in rows)


class AskingStreams(Asking):
    def streams_join(
        self, name: str, group: str, member: str, *topics: str, process: str = "p1", epoch: int = 0, **more: Any
    ) -> None:
        """With a subtopology for each topic."""
        topology = Topology(epoch, [Subtopology(str(number), [topic]) for number, topic in enumerate(topics)])
        first = {"topology": topology, "process_id": process, "rebalance_timeout_ms": 60_000, "active": {}}
        self.streams_beat(name, group, member, 0, **{**first, **more})

    def streams_beat(
        self,
        name: str,
        group: str,
        member: str,
        epoch: int,
        active: Tasks | None = None,
        standby: Tasks | None = None,
        warmup: Tasks | None = None,
        **more: Any,
    ) -> None:
        """A member that names `active` tasks says all that it holds."""
        if active is not None:
            for role, held in (("active", active), ("standby", standby), ("warmup", warmup)):
                more.setdefault(f"{role}_tasks", [TaskIds(one, list(numbers)) for one, numbers in (held or {}).items()])
        request = StreamsGroupHeartbeatRequest(group, member, epoch, **more)
        answer = self.ask(0, request, lambda a: [a.error_code])
        if answer.error_code:
            self.note(name, answer.error_code, said(answer.error_message))
            return
        statuses = sorted((row.status_code, row.status_detail) for row in answer.status or ())
        tasks = map(told, (answer.active_tasks, answer.standby_tasks, answer.warmup_tasks))
        self.note(name, 0, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms, *tasks, statuses)

    def streams_described(self, name: str, group: str) -> None:
        (row,) = self.ask(
            0, StreamsGroupDescribeRequest([group], True), lambda a: [g.error_code for g in a.groups]
        ).groups
        members = sorted(
            (one.member_id, one.member_epoch, told(one.assignment.active_tasks), told(target.active_tasks))
            for one in row.members
            for target in [one.target_assignment]
        )
        topology = None if row.topology is None else [one.source_topics for one in row.topology.subtopologies]
        epochs = (row.group_epoch, row.assignment_epoch)
        self.note(name, row.error_code, row.group_state, *epochs, topology, members, said(row.error_message))
