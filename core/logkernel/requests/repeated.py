"""What it means that a request names something again: it is answered once.

An answer may have a thousand times the bytes of its question (all offsets of a group, all settings of a topic, all
producers of a partition), so a small request that names one thing again and again would take gigabytes. Apache Kafka
4.3.1 answers the most of them each time; no client asks so. `ONCE` has a rule for each request whose answer outgrows
its question; the router applies it before anything else looks at the request.

| request | named | Kafka | here |
|---|---|---|---|
| DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe, StreamsGroupDescribe | a group | each time | once |
| DescribeTransactions | a transactional id | each time | once |
| DescribeProducers | a topic, or a partition | each time | once |
| DescribeConfigs | all settings of a resource, or one | each time; a setting within one row once | once |
| OffsetFetch | all offsets of a group, or a partition's | each time | once, for the first member that asks |
| DescribeShareGroupOffsets | all offsets of a group, or a partition's | each time; within one row once | once |
| Metadata, DescribeTopicPartitions | a topic | once | once |
| DeleteGroups | a group | once | once |

Rows that ask for different things of one group or resource are answered row by row, as by Kafka; what an earlier row
names is left out of a later one, and a row with nothing left is not answered. A row that asks for all is answered after
rows that ask for something, not the other way round: so anything is told twice at most.

A request that names more than `MOST_NAMED` groups, transactional ids or resources is refused as a whole: each costs the
broker's thread about 10 µs, and a million of them fit into 6 MB. Kafka has threads for that, and answers.

Two requests refuse a repeated name themselves, as Kafka does: ListOffsets (`broker/handlers/offsets.py`) and
DescribeUserScramCredentials (`controller/credentials.py`). Where a row of the answer is as small as what asks for it
(FindCoordinator, OffsetForLeaderEpoch, OffsetCommit), nothing is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from logkernel.attrs_lite import evolve
from logkernel.errors import InvalidRequest
from logkernel.vocabulary import NO_ID

T = TypeVar("T")
Rule = Callable[[Any], Any]
"""From a request to one that asks for the same, once. The first is left as it is."""

MOST_NAMED: Final = 100_000
COUNTED: Final[Mapping[str, str]] = {
    "DescribeGroupsRequest": "groups",
    "ConsumerGroupDescribeRequest": "group_ids",
    "ShareGroupDescribeRequest": "group_ids",
    "StreamsGroupDescribeRequest": "group_ids",
    "DeleteGroupsRequest": "groups_names",
    "DescribeTransactionsRequest": "transactional_ids",
    "DescribeConfigsRequest": "resources",
    "OffsetFetchRequest": "groups",
    "DescribeShareGroupOffsetsRequest": "groups",
}
"""Request class → the field with what it names, where that may be no more than `MOST_NAMED`."""


def asked_once(name: str, request: Any) -> Any:
    """A request of the class `name`, in `ONCE`, as it is answered. Raises `InvalidRequest` where it names too much."""
    field = COUNTED.get(name)
    if field is not None and len(getattr(request, field)) > MOST_NAMED:
        number = len(getattr(request, field))
        raise InvalidRequest(f"the request names {number} things, and {MOST_NAMED} are the most; ask in parts")
    return ONCE[name](request)


class _Named:
    """What the rows of one request have named so far."""

    def __init__(self) -> None:
        self._owners: set[Hashable] = set()
        self._whole: set[Hashable] = set()
        self._parts: dict[Hashable, set[Hashable]] = {}

    def __contains__(self, owner: Hashable) -> bool:
        return owner in self._owners

    def is_whole_new(self, owner: Hashable) -> bool:
        """Note that all of `owner` is asked for."""
        is_new = owner not in self._whole
        self._owners.add(owner)
        self._whole.add(owner)
        return is_new

    def new_parts(self, owner: Hashable, parts: Iterable[T], within: Hashable = None) -> list[T]:
        """Note that `parts` of `owner` are asked for, such as partitions `within` a topic; return those that are new,
        in order."""
        self._owners.add(owner)
        if owner in self._whole:
            return []
        known = self._parts.setdefault((owner, within), set())
        new = [part for part in dict.fromkeys(parts) if part not in known]
        known.update(new)
        return new


def _each_name(field: str, request: Any) -> Any:
    names = getattr(request, field)
    once = dict.fromkeys(names)
    return request if len(once) == len(names) else evolve(request, **{field: list(once)})


def _metadata_key(topic: Any) -> Hashable:
    """A topic that has both is asked for by its id."""
    key: Hashable = topic.topic_id if topic.topic_id != NO_ID else topic.name
    return key


def _each_topic(key: Callable[[Any], Hashable], request: Any) -> Any:
    topics = request.topics
    if topics is None or len(topics) < 2:
        return request
    once: dict[Hashable, Any] = {}
    for topic in topics:
        once.setdefault(key(topic), topic)
    return request if len(once) == len(topics) else evolve(request, topics=list(once.values()))


def _each_partition(key: Callable[[Any], Hashable], field: str, topics: list[Any]) -> list[Any]:
    """The topics, each once, with the partitions that any of its rows names."""
    once: dict[Hashable, Any] = {}
    named = _Named()
    for topic in topics:
        first = once.get(key(topic))
        partitions = named.new_parts(key(topic), getattr(topic, field))
        if first is None:
            once[key(topic)] = evolve(topic, **{field: partitions})
        else:
            getattr(first, field).extend(partitions)
    return list(once.values())


def _each_producer_partition(request: Any) -> Any:
    return evolve(request, topics=_each_partition(lambda topic: topic.name, "partition_indexes", request.topics))


def _each_offset(key: Callable[[Any], Hashable], field: str, request: Any) -> Any:
    """Rows of groups, each with all its topics (null) or with partitions of some."""
    named = _Named()
    rows = []
    for group in request.groups:
        is_again = group.group_id in named
        if group.topics is None:
            if named.is_whole_new(group.group_id):
                rows.append(group)
            continue
        topics = []
        for topic in _each_partition(key, field, group.topics):
            partitions = named.new_parts(group.group_id, getattr(topic, field), key(topic))
            if partitions or not is_again:
                topics.append(evolve(topic, **{field: partitions}))
        if topics or not is_again:
            rows.append(evolve(group, topics=topics))
    return evolve(request, groups=rows)


def _each_setting(request: Any) -> Any:
    """Rows of resources, each with all its settings (null) or with some."""
    named = _Named()
    rows = []
    for row in request.resources:
        resource = row.resource_type, row.resource_name
        if row.configuration_keys is None:
            if named.is_whole_new(resource):
                rows.append(row)
            continue
        is_again = resource in named
        keys = named.new_parts(resource, row.configuration_keys)
        if keys or not is_again:
            rows.append(evolve(row, configuration_keys=keys))
    return evolve(request, resources=rows)


ONCE: Final[Mapping[str, Rule]] = {
    "DescribeGroupsRequest": partial(_each_name, "groups"),
    "ConsumerGroupDescribeRequest": partial(_each_name, "group_ids"),
    "ShareGroupDescribeRequest": partial(_each_name, "group_ids"),
    "StreamsGroupDescribeRequest": partial(_each_name, "group_ids"),
    "DeleteGroupsRequest": partial(_each_name, "groups_names"),
    "DescribeTransactionsRequest": partial(_each_name, "transactional_ids"),
    "DescribeProducersRequest": _each_producer_partition,
    "DescribeConfigsRequest": _each_setting,
    "OffsetFetchRequest": partial(_each_offset, lambda topic: (topic.name, topic.topic_id), "partition_indexes"),
    "DescribeShareGroupOffsetsRequest": partial(_each_offset, lambda topic: topic.topic_name, "partitions"),
    "MetadataRequest": partial(_each_topic, _metadata_key),
    "DescribeTopicPartitionsRequest": partial(_each_topic, lambda topic: topic.name),
}
"""Request class → its rule."""
