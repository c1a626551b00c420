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
    """A member that brings a topology has to be allowed to describe its topics, and to create those that are internal:
    the broker creates them in its name, whenever they are missing."""
    if not asking.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return Answered(streams_groups.StreamsGroupHeartbeatResponse(error_code=NO_GROUP))
    if request.topology is None:
        return None
    internal, names = set[str](), set[str]()
    for one in request.topology.subtopologies:
        internal.update(topic.name for topic in (*one.state_changelog_topics, *one.repartition_source_topics))
        names.update(one.source_topics, one.repartition_sink_topics)
    names |= internal
    if len(asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, sorted(names))) < len(names):
        return Answered(streams_groups.StreamsGroupHeartbeatResponse(error_code=NO_TOPIC))
    if internal and not asking.may_cluster(AclOperation.CREATE, told=False):
        allowed = asking.those(AclOperation.CREATE, ResourceType.TOPIC, sorted(internal))
        if len(allowed) < len(internal):
            refused = ", ".join(sorted(internal - allowed)[:3])
            message = f"Unauthorized to CREATE on topics {refused}."
            return Answered(streams_groups.StreamsGroupHeartbeatResponse(error_code=NO_TOPIC, error_message=message))
    return None


def _tells_of_hidden_topics(asking: Asking, row: Any) -> bool:
    """Whether the topology has a topic that the client may not describe."""
    names = set[str]()
    for one in (row.topology.subtopologies or ()) if row.topology is not None else ():
        names.update(one.source_topics, one.repartition_sink_topics)
        names.update(topic.name for topic in (*one.state_changelog_topics, *one.repartition_source_topics))
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
