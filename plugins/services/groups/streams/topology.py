"""What an application says of itself: its subtopologies, the topics that they read, and those that the broker makes.

A topology is a value that the group keeps from its first member on; of a later member it must be the same.
Subtopologies are compared without regard to their order, all else in order, as Kafka does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from attrs import frozen

from logkernel.errors import StreamsInvalidTopology
from logkernel.requests import streams_groups as wire
from logkernel.vocabulary import is_topic_name

MAX_SUBTOPOLOGIES: Final = 10_000
MAX_NAMES: Final = 100_000
"""Topics, their settings and places in copartition groups, of all subtopologies together."""


@frozen
class InternalTopic:
    """A topic that the broker makes for the application."""

    name: str
    partitions: int = 0
    """0: to be computed."""
    replication_factor: int = 0
    """0: the broker's default."""
    configs: tuple[tuple[str, str], ...] = ()


@frozen
class CopartitionGroup:
    """Places in the subtopology's lists of these names."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


@frozen
class Subtopology:
    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[InternalTopic, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[InternalTopic, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def is_stateful(self) -> bool:
        return bool(self.state_changelog_topics)

    @property
    def sources(self) -> tuple[str, ...]:
        """All topics that it reads."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))

    @property
    def required(self) -> tuple[str, ...]:
        """All topics that must exist before it can run."""
        return (*self.sources, *(topic.name for topic in self.state_changelog_topics))

    def copartitioned(self) -> Iterator[set[str]]:
        """Names of topics that need the same number of partitions."""
        for group in self.copartition_groups:
            yield {
                *(self.source_topics[place] for place in group.source_topics),
                *(self.repartition_source_topics[place].name for place in group.repartition_source_topics),
            }


@frozen(eq=False)
class Topology:
    """`epoch` is the application's own number of it."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    def is_same(self, other: Topology) -> bool:
        return self.epoch == other.epoch and self.by_id == other.by_id

    @cached_property
    def by_id(self) -> dict[str, Subtopology]:
        return {one.subtopology_id: one for one in self.subtopologies}

    @cached_property
    def reader_of(self) -> dict[str, str]:
        """Topic → id of the subtopology that reads it."""
        return {topic: one.subtopology_id for one in self.subtopologies for topic in one.sources}

    @cached_property
    def required(self) -> frozenset[str]:
        return frozenset(name for one in self.subtopologies for name in one.required)

    @cached_property
    def names(self) -> frozenset[str]:
        """All topics that it names."""
        return self.required.union(*(one.repartition_sink_topics for one in self.subtopologies))


def of_request(topology: wire.Topology) -> Topology:
    """Raises `StreamsInvalidTopology` where it is too large to be looked at."""
    _check_extent(topology)
    return Topology(topology.epoch, tuple(_subtopology(one) for one in topology.subtopologies))


def _subtopology(one: wire.Subtopology) -> Subtopology:
    return Subtopology(
        one.subtopology_id,
        tuple(one.source_topics),
        tuple(one.source_topic_regex),
        tuple(map(_internal, one.state_changelog_topics)),
        tuple(one.repartition_sink_topics),
        tuple(map(_internal, one.repartition_source_topics)),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in one.copartition_groups
        ),
    )


def _check_extent(topology: wire.Topology) -> None:
    if len(topology.subtopologies) > MAX_SUBTOPOLOGIES:
        raise StreamsInvalidTopology(f"The topology has more than {MAX_SUBTOPOLOGIES} subtopologies.")
    if sum(map(_extent, topology.subtopologies)) > MAX_NAMES:
        raise StreamsInvalidTopology(
            f"The topology has more than {MAX_NAMES} names of topics, of their settings and places of copartition"
            " groups. Divide the application, and give each part its own application.id."
        )


def _extent(one: wire.Subtopology) -> int:
    topics = (*one.state_changelog_topics, *one.repartition_source_topics)
    count = len(one.source_topics) + len(one.source_topic_regex) + len(one.repartition_sink_topics) + len(topics)
    for topic in topics:
        count += len(topic.topic_configs)
    for group in one.copartition_groups:
        count += len(group.source_topics) + len(group.source_topic_regex) + len(group.repartition_source_topics)
    return count + len(one.copartition_groups)


def _internal(topic: wire.TopicInfo) -> InternalTopic:
    configs = tuple((row.key, row.value) for row in topic.topic_configs)
    return InternalTopic(topic.name, topic.partitions, topic.replication_factor, configs)


# ---------------------------------------------------------------- is it one that can run?


def check(topology: Topology, internal: Iterable[str]) -> None:
    """Raises `StreamsInvalidTopology` for what contradicts itself, whatever topics there are.

    `internal` are those of the topics that belong to the broker.
    """
    names = topology.names
    _refuse(
        [name for name in internal if name in names],
        "Use of Kafka internal topics {} in a Kafka Streams topology is prohibited.",
    )
    _refuse([name for name in names if not is_topic_name(name)], "Topic names {} are not valid topic names.")
    if topology.epoch < 0:
        raise StreamsInvalidTopology(f"The topology epoch is {topology.epoch}, but must not be negative.")
    if len(topology.by_id) != len(topology.subtopologies):
        raise StreamsInvalidTopology("Two subtopologies have the same id.")
    for one in topology.subtopologies:
        _check_subtopology(one)


def _refuse(names: Sequence[str], problem: str) -> None:
    """Raises `StreamsInvalidTopology` if there are such names; `{}` stands for three of them in `problem`."""
    if names:
        raise StreamsInvalidTopology(problem.format(",".join(sorted(names)[:3])))


def _check_once(what: str, names: Iterable[str], where: str) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise StreamsInvalidTopology(f"{what} {name} of {where} is given more than once.")
        seen.add(name)


def _check_subtopology(one: Subtopology) -> None:
    if not one.sources:
        raise StreamsInvalidTopology(f"No source topics found for subtopology {one.subtopology_id}")
    for what, made in (("Changelog", one.state_changelog_topics), ("Repartition", one.repartition_source_topics)):
        _check_once(f"{what} topic", [topic.name for topic in made], f"subtopology {one.subtopology_id}")
        for topic in made:
            _check_once("Setting", [name for name, _ in topic.configs], f"topic {topic.name}")
    for topic in one.state_changelog_topics:
        if topic.partitions:
            raise StreamsInvalidTopology(
                f"Changelog topic {topic.name} must have an undefined partition count, but it is set to"
                f" {topic.partitions}."
            )
    for topic in one.repartition_source_topics:
        if topic.partitions < 0:
            raise StreamsInvalidTopology(f"Repartition topic {topic.name} has {topic.partitions} partitions.")
    for group in one.copartition_groups:
        for places, topics in (
            (group.source_topics, one.source_topics),
            (group.source_topic_regex, one.source_topic_regex),
            (group.repartition_source_topics, one.repartition_source_topics),
        ):
            if any(not 0 <= place < len(topics) for place in places):
                raise StreamsInvalidTopology(
                    f"A copartition group of subtopology {one.subtopology_id} names a topic that it does not have."
                )
