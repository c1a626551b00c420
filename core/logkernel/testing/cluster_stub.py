"""A cluster described by a test: `contracts.ClusterView` over plain dicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from logkernel.contracts import Assignor, RequestContext, TaskAssignor
from logkernel.errors import PluginError
from logkernel.vocabulary import AclOperation, Principal


class ClusterStub:
    """`contracts.ClusterView`. Change its dicts between events; `ServiceHarness.create_topics` tells the machines.

    A topic's id is derived from its name, and stays the same until the topic is deleted.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        topic_settings: Mapping[tuple[str, str], Any] | None = None,
        group_settings: Mapping[tuple[str, str], Any] | None = None,
        features: Mapping[str, int] | None = None,
        assignors: Mapping[str, Assignor] | None = None,
        task_assignors: Mapping[str, TaskAssignor] | None = None,
    ) -> None:
        """`topics`: name → number of partitions. Settings: (topic or group, setting) → typed value."""
        self.topics = dict(topics or {})
        self.topic_settings = dict(topic_settings or {})
        self.group_settings = dict(group_settings or {})
        self.features = dict(features or {})
        self.assignors = dict(assignors or {})
        self.task_assignors = dict(task_assignors or {})
        self.partition_racks: dict[str, Sequence[Collection[str]]] = {}
        """Topic → the racks of each partition's replicas; none where nothing is written."""
        self.bounds: dict[tuple[str, int], tuple[int, int, int]] = {}
        """(topic, partition) → (log start, last stable offset, high watermark); (0, 0, 0) where nothing is written."""
        self.epochs: dict[tuple[str, int], int] = {}
        """(topic, partition) → leader epoch; 0 where nothing is written."""
        self.internal: set[str] = set()
        """Topics in which services keep their state."""
        self.hidden: dict[Principal, set[str]] = {}
        """Topics with which a client may do nothing."""
        self.untold: dict[str, int] = {}
        """Topics, like `topics`, that the broker was not told of yet."""
        self.live_brokers: list[tuple[int, str, int, str | None]] = [(1, "127.0.0.1", 9092, None)]
        self._topic_ids: dict[str, UUID] = {}
        self._numbers = count(1)
        self._producer_ids = count(1000)

    def topic_names(self) -> Sequence[str]:
        return sorted(self.topics)

    def allowed(self, sender: RequestContext, operation: AclOperation, topics: Sequence[str]) -> Sequence[str]:
        hidden = self.hidden.get(sender.principal, ())
        return [name for name in topics if name not in hidden]

    def is_internal(self, topic: str) -> bool:
        return topic in self.internal

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def feature_level(self, name: str) -> int:
        return self.features.get(name, 0)

    def assignor(self, name: str) -> Assignor:
        try:
            return self.assignors[name]
        except KeyError:
            raise PluginError(f"assignor {name}: this ClusterStub has none of that name") from None

    def task_assignor(self, name: str) -> TaskAssignor:
        try:
            return self.task_assignors[name]
        except KeyError:
            raise PluginError(f"task assignor {name}: this ClusterStub has none of that name") from None

    def racks(self, topic: str) -> Sequence[Collection[str]]:
        return self.partition_racks.get(topic, [()] * self.topics.get(topic, 0))

    def topic_setting(self, topic: str, name: str) -> Any:
        return self.topic_settings[topic, name]

    def group_setting(self, group_id: str, name: str) -> Any:
        return self.group_settings[group_id, name]

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int] | None:
        return self.bounds.get((topic, partition), (0, 0, 0)) if self._exists(topic, partition) else None

    def leader_epoch(self, topic: str, partition: int) -> int | None:
        return self.epochs.get((topic, partition), 0) if self._exists(topic, partition) else None

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def find_partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic, self.untold.get(topic))

    def topic_id(self, topic: str) -> UUID | None:
        if topic not in self.topics:
            return None
        if topic not in self._topic_ids:
            self._topic_ids[topic] = UUID(int=next(self._numbers))
        return self._topic_ids[topic]

    def topic_name(self, topic_id: Any) -> str | None:
        return next((name for name in self.topics if self.topic_id(name) == topic_id), None)

    def brokers(self, listener: str) -> Sequence[tuple[int, str, int, str | None]]:
        return list(self.live_brokers)

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        """Return the first live broker."""
        return self.live_brokers[0] if self.live_brokers else None

    def delete(self, topic: str) -> None:
        """Delete a topic: a new one of that name gets another id. `ServiceHarness.delete_topics` calls this."""
        self.topics.pop(topic, None)
        self._topic_ids.pop(topic, None)
        for key in [key for key in self.bounds if key[0] == topic]:
            del self.bounds[key]

    def _exists(self, topic: str, partition: int) -> bool:
        return partition < self.topics.get(topic, 0)
