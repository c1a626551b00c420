"""What a group of Kafka Streams has besides its members and offsets (KIP-1071): a topology, and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logkernel.attrs_lite import field, frozen
from logkernel.vocabulary import TopicPartition


@frozen
class StreamsTopic:
    """An internal topic. `partitions` is 0 while it is not known how many are needed."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    """0: the broker's default."""
    configs: Mapping[str, str] = field(factory=dict)


@frozen
class StreamsSubtopology:
    """It has a task for each partition of its largest source."""

    id: str
    source_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[StreamsTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    changelog_topics: tuple[StreamsTopic, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """All topics that its tasks read."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


@frozen
class StreamsTopology:
    epoch: int
    subtopologies: tuple[StreamsSubtopology, ...] = ()


@frozen
class StreamsTasks:
    """By role: (subtopology id, partition)s."""

    active: tuple[tuple[str, int], ...] = ()
    standby: tuple[tuple[str, int], ...] = ()
    warmup: tuple[tuple[str, int], ...] = ()


@frozen
class StreamsMember:
    """Of one thread of an application. `endpoint` is where it answers interactive queries."""

    process_id: str
    topology_epoch: int
    tasks: StreamsTasks
    target_tasks: StreamsTasks
    endpoint: tuple[str, int] | None = None
    client_tags: Mapping[str, str] = field(factory=dict)


def topology_of(row: Any) -> StreamsTopology | None:
    """The topology of a DescribedGroup; None while it has none."""
    if row is None:
        return None
    return StreamsTopology(row.epoch, tuple(_subtopology(one) for one in row.subtopologies or ()))


def _subtopology(row: Any) -> StreamsSubtopology:
    return StreamsSubtopology(
        row.subtopology_id,
        tuple(row.source_topics),
        tuple(map(_topic, row.repartition_source_topics)),
        tuple(row.repartition_sink_topics),
        tuple(map(_topic, row.state_changelog_topics)),
    )


def _topic(row: Any) -> StreamsTopic:
    return StreamsTopic(row.name, row.partitions, row.replication_factor, _pairs(row.topic_configs))


def _pairs(rows: Any) -> dict[str, str]:
    return {row.key: row.value for row in rows}


def member_of(row: Any) -> StreamsMember:
    endpoint = row.user_endpoint
    return StreamsMember(
        row.process_id,
        row.topology_epoch,
        _tasks(row.assignment),
        _tasks(row.target_assignment),
        None if endpoint is None else (endpoint.host, endpoint.port),
        _pairs(row.client_tags),
    )


def _tasks(row: Any) -> StreamsTasks:
    return StreamsTasks(
        *(
            tuple((tasks.subtopology_id, partition) for tasks in rows for partition in tasks.partitions)
            for rows in (row.active_tasks, row.standby_tasks, row.warmup_tasks)
        )
    )


def read_by(tasks: StreamsTasks, topology: StreamsTopology | None) -> tuple[TopicPartition, ...]:
    """The partitions that active tasks read."""
    sources = {one.id: one.sources for one in topology.subtopologies} if topology is not None else {}
    return tuple(
        TopicPartition(topic, partition)
        for subtopology, partition in tasks.active
        for topic in sources.get(subtopology, ())
    )
