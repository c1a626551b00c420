"""Topics: create, delete, add partitions. Each decision is a function of request, image and settings.

Deliberate differences from Kafka: internal topics are neither deleted nor grown by a client (that would
lose offsets, or move groups to other shards), and their replication factor is lowered to the brokers that the cluster
is to have, where somebody says how many these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from logkernel.config.broker import BrokerConfig
from logkernel.config.describe import describe_created
from logkernel.config.topic import TopicSettings
from logkernel.config.values import Between, render
from logkernel.contracts import MetadataChange, ServiceTopic
from logkernel.controller.effects import ControllerResult, Effects, Spend, free
from logkernel.controller.image import ClusterImage, Partition, Topic, topic_key
from logkernel.controller.names import METADATA_TOPIC, check_name, flat
from logkernel.controller.placement import Placing, check_assignment
from logkernel.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    TopicAlreadyExists,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.requests.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from logkernel.vocabulary import MAX_PARTITIONS, NO_ID

MAX_NEW_PARTITIONS = 10_000
"""Partitions that one request may add, as in Kafka."""
MAX_REPLICAS = 32_767
NewId = Callable[[], UUID]


# ---------------------------------------------------------------- create


def create_topics(
    request: CreateTopicsRequest,
    image: ClusterImage,
    config: BrokerConfig,
    placing: Placing,
    new_id: NewId,
    internal: Collection[str],
    spend: Spend = free,
) -> ControllerResult:
    """Create each topic of the request on its own: an error of one does not affect the others, save that none is
    created where they would have too many partitions together. `internal` names the topics in which services keep their
    state."""
    asked = Counter(topic.name for topic in request.topics)
    flats = {flat(name): name for name in image.topics}
    out = ControllerResult([], CreateTopicsResponse(), Effects())
    try:
        _check_left(sum(map(_named_count, request.topics)), MAX_NEW_PARTITIONS)
    except PolicyViolation as error:
        out.response.topics = [_refused(topic.name, error) for topic in request.topics]
        return out
    left = MAX_NEW_PARTITIONS
    for name, row in {topic.name: topic for topic in request.topics}.items():
        try:
            if asked[name] > 1:
                raise InvalidRequest(f"the request names topic {name!r} {asked[name]} times; name it once")
            _check_new(name, image, flats)
            topic, own = _decide(row, config, placing, left)
            topic.internal = name in internal
            spend(len(topic.partitions))
        except KafkaError as error:
            out.response.topics.append(_refused(name, error))
            continue
        left -= len(topic.partitions)
        flats[flat(name)] = name
        if not request.validate_only:
            topic.id = new_id()
            _add(out, topic, own)
        out.response.topics.append(_created(topic, own, config))
    return out


def create_one(
    name: str,
    partitions: int,
    replication_factor: int,
    settings: Mapping[str, str],
    image: ClusterImage,
    config: BrokerConfig,
    placing: Placing,
    new_id: NewId,
    *,
    internal: bool = False,
    size: int | None = None,
) -> ControllerResult:
    """Create a topic from plain values; -1 is the broker's default. The response is its `Topic`. Raises KafkaError.

    An internal topic takes no more replicas than the cluster is to have brokers, `size`, and no higher
    min.insync.replicas.
    """
    _check_new(name, image, {flat(other): other for other in image.topics})
    own = dict(settings)
    if internal:
        factor = config.get("default.replication.factor") if replication_factor == -1 else replication_factor
        replication_factor = factor if size is None else max(1, min(factor, size))
        if int(own.get("min.insync.replicas", "1")) > replication_factor:
            own["min.insync.replicas"] = str(replication_factor)
    row = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replication_factor)
    config.validate_topic(own)
    partitions_made = _partitions(row, config, placing, MAX_NEW_PARTITIONS, own)
    topic = Topic(name, new_id(), partitions_made, internal)
    out = ControllerResult([], topic, Effects())
    _add(out, topic, own)
    return out


def create_internal(
    topic: ServiceTopic,
    partitions: int,
    image: ClusterImage,
    config: BrokerConfig,
    placing: Placing,
    new_id: NewId,
    size: int | None = None,
) -> ControllerResult:
    """Create the topic of a service as declared; `partitions` -1 is the number in its setting, and `size` is of
    `create_one`. Raises `InvalidReplicationFactor` while fewer brokers are alive than it is to have replicas."""
    if partitions == -1:
        partitions = config.get(topic.partitions_setting)
    factor = config.get(topic.replication_setting) if topic.replication_setting else -1
    settings = dict(topic.config)
    for name, behind in topic.config_settings.items():
        settings[name] = _raised(config, name, config.get(behind))
    return create_one(
        topic.name, partitions, factor, settings, image, config, placing, new_id, internal=True, size=size
    )


def creation_request(result: ControllerResult) -> CreateTopicsRequest:
    """The request by which a broker asks the controller to create a topic: the broker decides how many partitions and
    replicas, the controller on which brokers."""
    topic: Topic = result.response
    own = next((change.value for change in result.changes if change.kind == "config"), None) or {}
    row = CreatableTopic(
        name=topic.name,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[CreatableTopicConfig(name, value) for name, value in own.items()],
    )
    return CreateTopicsRequest(topics=[row])


def _raised(config: BrokerConfig, name: str, value: Any) -> str:
    """The value of a broker's setting, raised to what a topic may have: Kafka allows smaller segments for
    __consumer_offsets than for other topics."""
    bounds = config.definitions.topic[name].validator
    lowest = bounds.low if isinstance(bounds, Between) else None
    return render(value if lowest is None else max(value, lowest))


def _check_new(name: str, image: ClusterImage, flats: Mapping[str, str]) -> None:
    check_name(name)
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{name} is no topic for records; choose another name")
    if name in image.topics:
        raise TopicAlreadyExists(f"Topic {name!r} already exists.")
    other = flats.get(flat(name))
    if other is not None:
        raise InvalidTopicException(
            f"Topic {name!r} collides with existing topic {other!r}: metrics write '.' as '_'; choose another name"
        )


def _decide(row: CreatableTopic, config: BrokerConfig, placing: Placing, left: int) -> tuple[Topic, dict[str, str]]:
    own = {given.name: given.value for given in row.configs if given.value is not None}
    if "placement" in own:
        config.validate_topic({"placement": own["placement"]})
    partitions = _partitions(row, config, placing, left, own)
    for given in row.configs:
        if given.value is None:
            raise InvalidConfig(f"{given.name} has no value; give one, or leave it out for the default")
    config.validate_topic(own)
    return Topic(row.name, NO_ID, partitions), own


def _partitions(
    row: CreatableTopic, config: BrokerConfig, placing: Placing, left: int, own: Mapping[str, str]
) -> list[Partition]:
    """`own` are the topic's own settings, not all of them judged."""
    if row.assignments:
        return _assigned(row, placing.nodes, left)
    count = config.get("num.partitions") if row.num_partitions == -1 else row.num_partitions
    factor = config.get("default.replication.factor") if row.replication_factor == -1 else row.replication_factor
    if not 1 <= factor <= MAX_REPLICAS:
        raise InvalidReplicationFactor(
            f"the replication factor can't be {factor}; ask for 1 or more, or -1 for the default"
        )
    if count < 1:
        raise InvalidPartitions(f"a topic can't have {count} partitions; ask for 1 or more, or -1 for the default")
    _check_left(count, left)
    return [_fresh(replicas) for replicas in placing.place(_placing(own, config), count, factor)]


def _placing(own: Mapping[str, str], config: BrokerConfig) -> TopicSettings:
    """What a placement may know of a new topic's settings."""
    known = config.definitions.topic
    wanted = {name: text for name, text in own.items() if name == "placement" or (name in known and known[name].plugin)}
    return config.topic_settings(wanted)


def _named_count(row: CreatableTopic) -> int:
    """Partitions that the request says, before anything else of it is judged, as Kafka counts: the default is one."""
    if row.assignments:
        return len(row.assignments)
    return 1 if row.num_partitions == -1 else max(0, row.num_partitions)


def _check_left(count: int, left: int) -> None:
    if count > left:
        raise PolicyViolation(
            f"{count} new partitions, where a request may add {MAX_NEW_PARTITIONS} in all; ask for fewer at once"
        )


def _assigned(row: CreatableTopic, brokers: Sequence[int], left: int) -> list[Partition]:
    if row.replication_factor != -1 or row.num_partitions != -1:
        raise InvalidRequest(
            f"replicas are assigned by hand, so that partitions={row.num_partitions} and"
            f" replication factor={row.replication_factor} must both be -1"
        )
    _check_left(len(row.assignments), left)
    by_index = {given.partition_index: given.broker_ids for given in row.assignments}
    if len(by_index) < len(row.assignments) or sorted(by_index) != list(range(len(by_index))):
        raise InvalidReplicaAssignment(
            f"the partitions {sorted(given.partition_index for given in row.assignments)[:20]} are not 0, 1, 2, … each"
            f" once; number them so"
        )
    factor = None
    for index in range(len(by_index)):
        check_assignment(by_index[index], factor, brokers)
        factor = len(by_index[index])
    return [_fresh(by_index[index]) for index in range(len(by_index))]


def _fresh(replicas: Sequence[int]) -> Partition:
    return Partition(tuple(replicas), tuple(replicas), replicas[0])


def _add(out: ControllerResult, topic: Topic, own: Mapping[str, str]) -> None:
    out.changes.append(topic.change())
    if own:
        out.changes.append(MetadataChange("config", topic_key(topic.name), dict(own)))
    out.effects.created.append(topic.name)


def _refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error))


def _created(topic: Topic, own: Mapping[str, str], config: BrokerConfig) -> CreatableTopicResult:
    configs = [
        CreatableTopicConfigs(
            name=one.name,
            value=one.value,
            read_only=one.read_only,
            config_source=one.source,
            is_sensitive=one.sensitive,
        )
        for one in describe_created(config, own)
    ]
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=configs,
    )


# ---------------------------------------------------------------- delete


def delete_topics(
    request: DeleteTopicsRequest, image: ClusterImage, config: BrokerConfig, spend: Spend = free
) -> ControllerResult:
    """Delete topics by name or by id. A topic that is named twice is refused, whether or not it exists."""
    states = [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]
    names = Counter(state.name for state in states if state.name is not None)
    ids = Counter(state.topic_id for state in states if state.name is None)
    out = ControllerResult([], DeleteTopicsResponse(), Effects())
    gone: set[str] = set()
    for name, topic_id in dict.fromkeys((state.name, state.topic_id) for state in states):
        answer = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            if names.get(name or "", 0) > 1 or (name is None and ids[topic_id] > 1):
                raise InvalidRequest(f"the request names topic {name or topic_id} more than once; name it once")
            topic = _condemned(name, topic_id, image, config)
            if topic.name not in gone:
                spend(len(topic.partitions))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, str(error)
        else:
            answer.name, answer.topic_id = topic.name, topic.id
            if topic.name not in gone:
                gone.add(topic.name)
                _remove(out, topic, image)
        out.response.responses.append(answer)
    return out


def delete_one(name: str, image: ClusterImage, config: BrokerConfig) -> ControllerResult:
    """Delete a topic by name. The response is its `Topic`. Raises KafkaError."""
    topic = _condemned(name, NO_ID, image, config)
    out = ControllerResult([], topic, Effects())
    _remove(out, topic, image)
    return out


def _condemned(name: str | None, topic_id: UUID, image: ClusterImage, config: BrokerConfig) -> Topic:
    if name is not None and topic_id != NO_ID:
        raise InvalidRequest(f"both the name {name!r} and the id {topic_id} are given; give one of them")
    if name is None and topic_id == NO_ID:
        raise InvalidRequest("neither a name nor an id is given; give one of them")
    if not config.get("delete.topic.enable"):
        raise TopicDeletionDisabled("delete.topic.enable=false: topics are not deleted here; set it to true")
    if name is None:
        known = image.names.get(topic_id)
        if known is None:
            raise UnknownTopicId(f"no topic has the id {topic_id}; refresh the metadata")
        name = known
    topic = image.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {name!r}; check the name, or create the topic")
    _check_ordinary(topic, "deleted")
    return topic


def _check_ordinary(topic: Topic, what: str) -> None:
    if topic.internal:
        raise InvalidTopicException(
            f"{topic.name} is an internal topic and can't be {what}, as it holds a service's state; choose another"
        )


def _remove(out: ControllerResult, topic: Topic, image: ClusterImage) -> None:
    out.changes.append(MetadataChange("topic", topic.name, None))
    if topic_key(topic.name) in image.configs:
        out.changes.append(MetadataChange("config", topic_key(topic.name), None))
    out.effects.deleted.append((topic.name, topic.id))


# ---------------------------------------------------------------- grow


def create_partitions(
    request: CreatePartitionsRequest,
    image: ClusterImage,
    config: BrokerConfig,
    placing: Placing,
    spend: Spend = free,
) -> ControllerResult:
    asked = Counter(row.name for row in request.topics)
    out = ControllerResult([], CreatePartitionsResponse(), Effects())
    left = MAX_NEW_PARTITIONS
    for name, row in {topic.name: topic for topic in request.topics}.items():
        answer = CreatePartitionsTopicResult(name=name)
        out.response.results.append(answer)
        try:
            if asked[name] > 1:
                raise InvalidRequest(f"the request names topic {name!r} {asked[name]} times; name it once")
            topic, added = _growth(row, image, config, placing, left)
            spend(len(added))
        except KafkaError as error:
            answer.error_code, answer.error_message = error.code, str(error)
            continue
        left -= len(added)
        if not request.validate_only:
            grown = Topic(name, topic.id, [*topic.partitions, *added], topic.internal)
            out.changes.append(grown.change())
            out.effects.grown.append((name, len(topic.partitions)))
    return out


def _growth(
    row: CreatePartitionsTopic, image: ClusterImage, config: BrokerConfig, placing: Placing, left: int
) -> tuple[Topic, list[Partition]]:
    topic = image.topics.get(row.name)
    if topic is None:
        raise UnknownTopicOrPartition(f"there is no topic {row.name!r}; check the name, or create the topic")
    _check_ordinary(topic, "given more partitions")
    has = len(topic.partitions)
    if row.count <= has:
        raise InvalidPartitions(
            f"topic {row.name!r} has {has} partitions and can't be given {row.count}; ask for {has + 1} or more"
        )
    wanted = row.count - has
    _check_left(wanted, left)
    if row.count > MAX_PARTITIONS:
        raise InvalidPartitions(f"a topic can't have {row.count} partitions; {MAX_PARTITIONS} are the most")
    first = topic.partitions[0]
    factor = sum(node not in first.removing for node in first.replicas)  # that to which a move leads, not both together
    if row.assignments is None:
        settings, _ = config.kept_topic_settings(image.topic_config(row.name))
        leader = topic.partitions[0].replicas[0]
        placed = placing.place(settings, wanted, factor, first=has, leader_of_first=leader)
        return topic, [_fresh(replicas) for replicas in placed]
    if len(row.assignments) != wanted:
        raise InvalidReplicaAssignment(
            f"{len(row.assignments)} assignments for {wanted} new partitions; give one for each"
        )
    for given in row.assignments:
        check_assignment(given.broker_ids, factor, placing.nodes)
    return topic, [_fresh(given.broker_ids) for given in row.assignments]
