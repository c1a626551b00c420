"""Groups of Kafka Streams (KIP-1071)."""

from __future__ import annotations

from functools import partial
from typing import Any

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.groups import NO_GROUP, NO_TOPIC, described
from logkernel.broker.authorization.outcome import Answered, Outcome
from logkernel.requests import streams_groups
from logkernel.vocabulary import AclOperation, ResourceType


def streams_group_heartbeat(asking: Asking, request: streams_groups.StreamsGroupHeartbeatRequest) -> Outcome:
    """A member that brings a topology has to be allowed to describe its topics. The service asks whether it may create
    those that are missing (`ClusterView.allowed`)."""
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(streams_groups.StreamsGroupHeartbeatResponse(error_code=NO_GROUP))
    names = _topics(request.topology)
    if len(asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, sorted(names))) < len(names):
        return Answered(streams_groups.StreamsGroupHeartbeatResponse(error_code=NO_TOPIC))
    return None


def _topics(topology: Any) -> set[str]:
    """The names of all topics of a topology, as requests and responses have it."""
    names = set[str]()
    for one in (topology.subtopologies or ()) if topology is not None else ():
        names.update(one.source_topics, one.repartition_sink_topics)
        names.update(topic.name for topic in (*one.state_changelog_topics, *one.repartition_source_topics))
    return names


def _tells_of_hidden_topics(asking: Asking, row: Any) -> bool:
    """Whether the topology has a topic that the client may not describe."""
    names = _topics(row.topology)
    hidden = len(asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, sorted(names))) < len(names)
    if hidden:
        row.topology = None
    return hidden


streams_group_describe = partial(
    described,
    "group_ids",
    lambda name: streams_groups.DescribedGroup(NO_GROUP, group_id=name),
    streams_groups.StreamsGroupDescribeResponse,
    _tells_of_hidden_topics,
)
