"""A topology beside the topics that there are: how many tasks each subtopology has, and which topics are missing.

    repartition topics   have the partitions that the topology says, else as many as the largest source of a subtopology
                         that writes to them; those that are copartitioned with others have as many as those
    changelog topics     have a partition for each task of their subtopology
    a subtopology        has a task for each partition of its largest source

What is not as it must be is told to members by a status (KIP-1071), and nothing is assigned meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Final

from attrs import field, frozen

from logkernel.errors import StreamsInvalidTopology

from .topology import InternalTopic, Subtopology, Topology

MAX_TASKS: Final = 100_000
"""Of a topology, so that what a few bytes ask for stays within bounds. Kafka has no such limit."""
MAX_TOLD: Final = 3

Count = Callable[[str], int | None]
"""Topic → its number of partitions; None if there is no such topic."""


class StatusCode(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@frozen
class Problem:
    status: StatusCode
    detail: str


@frozen
class Configured:
    tasks: Mapping[str, int] = field(factory=dict)
    """Subtopology id → its number of tasks; empty where that is not known."""
    partitions: Mapping[str, int] = field(factory=dict)
    """Internal topic → the number of partitions that it has or is to have."""
    missing: tuple[InternalTopic, ...] = ()
    """Internal topics to be made."""
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Wrong(Exception):
    def __init__(self, status: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(status, detail)


def configure(topology: Topology, count: Count) -> Configured:
    """Raises `StreamsInvalidTopology` where no topics could make it run."""
    try:
        return _configure(topology, count)
    except _Wrong as wrong:
        return Configured(problem=wrong.problem)


def _configure(topology: Topology, count: Count) -> Configured:
    gone = {name for one in topology.subtopologies for name in one.source_topics if count(name) is None}
    if gone:
        raise _Wrong(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {listed(sorted(gone))} are missing.")
    decided = _repartition_counts(topology, count)

    def known(topic: str) -> int | None:
        found = count(topic)
        return decided.get(topic) if found is None else found

    _copartition(topology, decided, known)
    tasks = {one.subtopology_id: _largest(one, known) for one in topology.subtopologies}
    if sum(tasks.values()) > MAX_TASKS:
        raise StreamsInvalidTopology(f"The topology has {sum(tasks.values())} tasks, more than {MAX_TASKS}.")
    wanted: dict[str, InternalTopic] = {}
    for one in topology.subtopologies:
        for topic in one.repartition_source_topics:
            wanted[topic.name] = _sized(topic, topic.partitions or decided[topic.name])
        for topic in one.state_changelog_topics:
            wanted[topic.name] = _sized(topic, tasks[one.subtopology_id])
    missing = tuple(topic for topic in wanted.values() if not _exists(topic, count))
    problem = None
    if missing:
        names = listed([topic.name for topic in missing])
        problem = Problem(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}")
    return Configured(tasks, {topic.name: topic.partitions for topic in wanted.values()}, missing, problem)


def _sized(topic: InternalTopic, partitions: int) -> InternalTopic:
    return InternalTopic(topic.name, partitions, topic.replication_factor, topic.configs)


def _exists(topic: InternalTopic, count: Count) -> bool:
    found = count(topic.name)
    if found is not None and found != topic.partitions:
        raise _Wrong(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Existing topic {topic.name} has different number of partitions: expected {topic.partitions}, found"
            f" {found}",
        )
    return found is not None


def listed(names: Collection[str]) -> str:
    """Three of them, and how many there are besides."""
    told = ", ".join(list(names)[:MAX_TOLD])
    return told if len(names) <= MAX_TOLD else f"{told} and {len(names) - MAX_TOLD} additional topics"


# ---------------------------------------------------------------- numbers of partitions


def _repartition_counts(topology: Topology, count: Count) -> dict[str, int]:
    """Of all repartition topics; a sink's number may follow from that of a topic before it."""
    sources = [topic for one in topology.subtopologies for topic in one.repartition_source_topics]
    decided = {topic.name: topic.partitions for topic in sources if topic.partitions}
    waiting: dict[str, list[Subtopology]] = {}
    queue = deque(topology.subtopologies)
    while queue:
        one = queue.popleft()
        if all(sink in decided for sink in one.repartition_sink_topics):
            continue
        counts = [count(topic) for topic in one.source_topics]
        counts += [decided.get(topic.name) for topic in one.repartition_source_topics]
        largest = max((number for number in counts if number is not None), default=None)
        if largest is None:
            for topic in one.repartition_source_topics:
                waiting.setdefault(topic.name, []).append(one)
            continue
        for sink in one.repartition_sink_topics:
            decided.setdefault(sink, largest)
            queue.extend(waiting.pop(sink, ()))
    if any(sink not in decided for one in topology.subtopologies for sink in one.repartition_sink_topics):
        raise StreamsInvalidTopology(
            "Failed to compute number of partitions for all repartition topics. There may be loops in the topology"
            " that cannot be resolved."
        )
    if any(topic.name not in decided for topic in sources):
        raise StreamsInvalidTopology(
            "Failed to compute number of partitions for all repartition topics, because a repartition source topic is"
            " never used as a sink topic."
        )
    return decided


def _largest(one: Subtopology, known: Count) -> int:
    return max(known(topic) or 0 for topic in one.sources)


def _copartition(topology: Topology, decided: dict[str, int], known: Count) -> None:
    """Give repartition topics the number that those beside them have."""
    fixed = {
        topic.name for one in topology.subtopologies for topic in one.repartition_source_topics if topic.partitions
    }
    repartition = {topic.name for one in topology.subtopologies for topic in one.repartition_source_topics}
    for one in topology.subtopologies:
        for names in one.copartitioned():
            if names:
                decided.update(_common(names, fixed & names, names & repartition, known))


def _common(names: set[str], fixed: set[str], repartition: set[str], known: Count) -> dict[str, int]:
    """Repartition topic → the number that `names`, which are copartitioned, have in common: that of source topics, else
    of `fixed` repartition topics, else the largest. Raises `_Wrong` where they can't have one."""
    counts = {name: known(name) or 0 for name in sorted(names)}
    leaders = (names - repartition) or fixed or repartition
    if (names - repartition or fixed) and len({counts[name] for name in leaders}) > 1:
        told = _java({name: counts[name] for name in sorted(leaders)})
        raise _incorrect(f"Following topics do not have the same number of partitions: [{told}]")
    common = max(counts[name] for name in leaders)
    for name in sorted(fixed):
        if counts[name] != common:
            raise _incorrect(
                f"Number of partitions [{counts[name]}] of repartition topic [{name}] doesn't match number of"
                f" partitions [{common}] of the source topic."
            )
    return dict.fromkeys(repartition, common)


def _incorrect(detail: str) -> _Wrong:
    return _Wrong(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)


def _java(counts: Mapping[str, int]) -> str:
    """As Java prints a map."""
    return "{" + ", ".join(f"{name}={number}" for name, number in counts.items()) + "}"
