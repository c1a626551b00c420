"""Topics are created, deleted and grown; settings are described and altered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.names import apart, without
from logkernel.broker.authorization.outcome import Answered, Outcome, Part
from logkernel.errors import ClusterAuthorizationFailed, GroupAuthorizationFailed, KafkaError, TopicAuthorizationFailed
from logkernel.requests import configs, topics
from logkernel.vocabulary import CLUSTER_NAME, NO_ID, AclOperation, ResourceType

REFUSED: Final = TopicAuthorizationFailed.code
WHY: Final = TopicAuthorizationFailed.__doc__
FAILED: Final = "Authorization failed."


def create_topics(asking: Asking, request: topics.CreateTopicsRequest) -> Outcome:
    """CREATE on the cluster allows all names. Who may not describe the settings of a topic gets none in the answer."""
    kept, refused = list(request.topics), list[topics.CreatableTopic]()
    if not asking.may_cluster(AclOperation.CREATE, told=False):
        asked = Counter(topic.name for topic in request.topics)
        kept, refused = apart(
            asking, AclOperation.CREATE, request.topics, lambda topic: topic.name if asked[topic.name] == 1 else None
        )
    rows = [topics.CreatableTopicResult(topic.name, REFUSED, FAILED) for topic in refused]
    names = [topic.name for topic in kept]
    described = asking.those(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, names, told=False)
    if not rows and len(described) == len(set(names)):
        return None
    if not kept:
        return Answered(topics.CreateTopicsResponse(topics=rows))

    def amend(response: topics.CreateTopicsResponse) -> topics.CreateTopicsResponse:
        for row in response.topics:
            if not row.error_code and row.name not in described:
                row.topic_config_error_code = REFUSED
                row.num_partitions = row.replication_factor = -1
                row.configs = []
        response.topics.extend(rows)
        return response

    return Part(topics.CreateTopicsRequest(kept, request.timeout_ms, request.validate_only), amend)


def delete_topics(asking: Asking, request: topics.DeleteTopicsRequest) -> Outcome:
    """DELETE on the cluster allows all. Who may not describe a topic does not hear its name from its id; who may, hears
    that there is none."""
    if asking.may_cluster(AclOperation.DELETE, told=False):
        return None
    by_id = {topic.topic_id: asking.topic_name(None, topic.topic_id) for topic in request.topics if topic.name is None}
    names = [*request.topic_names, *(topic.name for topic in request.topics if topic.name is not None)]
    known = [*names, *(name for name in by_id.values() if name is not None)]
    deletable = asking.those(AclOperation.DELETE, ResourceType.TOPIC, known)
    describable = asking.those(AclOperation.DESCRIBE, ResourceType.TOPIC, known)
    allowed = {name for name in describable if name in deletable or not asking.has_topic(name)}
    rows: list[topics.DeletableTopicResult] = []
    kept = []
    for topic in request.topics:
        name = topic.name if topic.name is not None else by_id[topic.topic_id]
        if name is None or name in allowed or (topic.name is None and name in deletable):
            kept.append(topic)
        elif topic.name is not None and topic.topic_id != NO_ID:
            kept.append(topic)  # refused as such, whatever is allowed
        else:
            shown = name if topic.name is not None or name in describable else None
            rows.append(topics.DeletableTopicResult(shown, REFUSED, WHY, topic.topic_id))
    rows += [topics.DeletableTopicResult(name, REFUSED, WHY) for name in request.topic_names if name not in allowed]
    kept_names = [name for name in request.topic_names if name in allowed]
    if not rows:
        return None
    if not kept and not kept_names:
        return Answered(topics.DeleteTopicsResponse(responses=rows))

    def amend(response: topics.DeleteTopicsResponse) -> topics.DeleteTopicsResponse:
        response.responses.extend(rows)
        return response

    return Part(topics.DeleteTopicsRequest(kept_names, request.timeout_ms, kept), amend)


def create_partitions(asking: Asking, request: topics.CreatePartitionsRequest) -> Outcome:
    kept, refused = apart(asking, AclOperation.ALTER, request.topics, lambda topic: topic.name)
    rows = [topics.CreatePartitionsTopicResult(topic.name, REFUSED) for topic in refused]
    return without(request, "topics", kept, topics.CreatePartitionsResponse(), "results", rows)


# ---------------------------------------------------------------- settings

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OWNERS: Final[Mapping[int, tuple[ResourceType, type[KafkaError]]]] = {
    TOPIC: (ResourceType.TOPIC, TopicAuthorizationFailed),
    BROKER: (ResourceType.CLUSTER, ClusterAuthorizationFailed),
    BROKER_LOGGER: (ResourceType.CLUSTER, ClusterAuthorizationFailed),
    CLIENT_METRICS: (ResourceType.CLUSTER, ClusterAuthorizationFailed),
    GROUP: (ResourceType.GROUP, GroupAuthorizationFailed),
}
"""Type of a config resource → the type of what an ACL is about, and the error."""


def _configs(
    operation: AclOperation, response_type: type[Any], field: str, row_type: type[Any], asking: Asking, request: Any
) -> Outcome:
    kept, rows = [], []
    for resource in request.resources:
        owner = OWNERS.get(resource.resource_type)
        if owner is None:
            kept.append(resource)  # there is no such resource, which the handler says
            continue
        kind, error = owner
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else resource.resource_name
        if asking.may(operation, kind, name):
            kept.append(resource)
        else:
            rows.append(row_type(error.code, error.__doc__, resource.resource_type, resource.resource_name))
    return without(request, "resources", kept, response_type(), field, rows)


describe_configs = partial(
    _configs, AclOperation.DESCRIBE_CONFIGS, configs.DescribeConfigsResponse, "results", configs.DescribeConfigsResult
)
alter_configs = partial(
    _configs,
    AclOperation.ALTER_CONFIGS,
    configs.AlterConfigsResponse,
    "responses",
    configs.AlterConfigsResourceResponse,
)
incremental_alter_configs = partial(
    _configs, AclOperation.ALTER_CONFIGS, configs.IncrementalAlterConfigsResponse, "responses",
    configs.IncrementalAlterConfigsAlterConfigsResourceResponse,
)  # fmt: skip
