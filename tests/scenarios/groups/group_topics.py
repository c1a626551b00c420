"""The cluster that a host of groups sees: topics, racks, features, groups' settings, and no brokers but one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from attrs import define, field

from logkernel.contracts import Assignor, RequestContext, TaskAssignor
from logkernel.errors import PluginError
from logkernel.plugins.assignors.range import RangeAssignor
from logkernel.plugins.assignors.uniform import UniformAssignor
from logkernel.plugins.task_assignors.sticky import StickyAssignor
from logkernel.vocabulary import AclOperation

GROUP_DEFAULTS = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "consumer.assignment.interval.ms": 1_000,
    "streams.session.timeout.ms": 45_000,
    "streams.heartbeat.interval.ms": 5_000,
    "streams.assignment.interval.ms": 1_000,
    "streams.initial.rebalance.delay.ms": 0,
    "streams.num.standby.replicas": 0,
    "streams.assignor.name": None,
}


@define
class Topics:
    """A `ClusterView` of topics alone."""

    partitions: dict[str, int]
    ids: dict[str, UUID] = field(factory=dict)
    group_version: int = 1
    streams_version: int = 1
    assignors: dict[str, Assignor] = field(factory=lambda: {"uniform": UniformAssignor(), "range": RangeAssignor()})
    task_assignors: dict[str, TaskAssignor] = field(factory=lambda: {"sticky": StickyAssignor()})
    untold: dict[str, int] = field(factory=dict)
    """Topics that the broker was not told of yet."""
    forbidden: set[str] = field(factory=set)
    """Topics that no client may create."""
    partition_racks: dict[str, list[frozenset[str]]] = field(factory=dict)
    group_settings: dict[tuple[str, str], Any] = field(factory=dict)
    """(group, name) → what it has of its own."""

    def group_setting(self, group_id: str, name: str) -> Any:
        return self.group_settings.get((group_id, name), GROUP_DEFAULTS[name])

    def topic_names(self) -> list[str]:
        return sorted(self.partitions)

    def assignor(self, name: str) -> Assignor:
        return self.assignors[name]

    def task_assignor(self, name: str) -> TaskAssignor:
        if name not in self.task_assignors:
            raise PluginError(f"no plugin provides the task assignor {name}")
        return self.task_assignors[name]

    def find_partition_count(self, topic: str) -> int | None:
        return self.partitions.get(topic, self.untold.get(topic))

    def allowed(self, sender: RequestContext, operation: AclOperation, topics: Sequence[str]) -> Sequence[str]:
        return [topic for topic in topics if topic not in self.forbidden]

    def racks(self, topic: str) -> list[frozenset[str]]:
        return self.partition_racks.get(topic, [frozenset()] * self.partitions[topic])

    def feature_level(self, name: str) -> int:
        return {"group.version": self.group_version, "streams.version": self.streams_version}.get(name, 0)

    def is_internal(self, topic: str) -> bool:
        return topic.startswith("__")

    def partition_count(self, topic: str) -> int | None:
        return self.partitions.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        return self.ids.get(topic)

    def topic_name(self, topic_id: UUID) -> str | None:
        return next((name for name, found in self.ids.items() if found == topic_id), None)

    def brokers(self, listener: str) -> list[tuple[int, str, int, str | None]]:
        return [(1, "localhost", 9092, None)]

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        return self.brokers(listener)[0]
