"""Settings that change at run time: AlterConfigs, IncrementalAlterConfigs, DescribeConfigs.

Topics' own settings and brokers' dynamic ones are kept as text under "topic:NAME", "broker:ID" and, for all
brokers, "broker:"; those of groups and of client metrics subscriptions under "group:ID" and "client-metrics:NAME".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from logkernel.config import election
from logkernel.config.broker import BrokerConfig
from logkernel.config.client_metrics import ROWS as CLIENT_METRICS_ROWS
from logkernel.config.client_metrics import describe_client_metrics, validate_client_metrics
from logkernel.config.definitions import Setting
from logkernel.config.describe import Described, describe_broker, describe_defaults, describe_group, describe_topic
from logkernel.config.groups import validate_group
from logkernel.config.values import LIST
from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, broker_key, client_metrics_key, group_key, topic_key
from logkernel.controller.names import check_name
from logkernel.errors import InvalidConfig, InvalidRequest, KafkaError, UnknownTopicOrPartition
from logkernel.requests.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsAlterableConfig,
    IncrementalAlterConfigsAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = 2
BROKER = 4
CLIENT_METRICS = 16
GROUP = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
_SETTINGS: Final[Mapping[int, Callable[[BrokerConfig], Mapping[str, Setting]]]] = {
    TOPIC: lambda config: config.definitions.topic,
    BROKER: lambda config: config.definitions.broker,
    GROUP: lambda config: config.definitions.group,
    CLIENT_METRICS: lambda config: CLIENT_METRICS_ROWS,
}
MAX_VALUE_CHARACTERS = 32_767
"""Maximum length of a value. Values are stored until someone deletes them."""


def alter_configs(
    request: AlterConfigsRequest, image: ClusterImage, config: BrokerConfig, node_id: int
) -> ControllerResult:
    """The old form of the request: it replaces all settings of each resource."""

    def merge(resource: Any, old: Mapping[str, str]) -> dict[str, str]:
        new = {}
        for row in resource.configs:
            if row.value is None:
                raise InvalidRequest(f"{row.name} has no value; leave it out for the default")
            new[row.name] = row.value
        return new

    response = AlterConfigsResponse()
    return _alter(request, image, config, node_id, merge, response, AlterConfigsResourceResponse)


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, image: ClusterImage, config: BrokerConfig, node_id: int
) -> ControllerResult:
    """Set (0), delete (1), append to a list (2), subtract from a list (3). Settings that are not named stay."""

    def merge(resource: Any, old: Mapping[str, str]) -> dict[str, str]:
        new = dict(old)
        settings = _SETTINGS[resource.resource_type](config)
        if resource.resource_type == CLIENT_METRICS:
            _refuse_edits(resource.configs)
        for row in sorted(resource.configs, key=lambda row: row.config_operation != DELETE):
            _one_operation(row, new, settings)
        for row in resource.configs:
            if row.config_operation == SET:
                _drop_twin(new, row.name, resource.configs)
        return new

    response = IncrementalAlterConfigsResponse()
    answer = IncrementalAlterConfigsAlterConfigsResourceResponse
    return _alter(request, image, config, node_id, merge, response, answer)


def _refuse_edits(rows: Sequence[IncrementalAlterConfigsAlterableConfig]) -> None:
    """A list of a subscription can only be set as a whole, as in Kafka."""
    for row in rows:
        if row.config_operation in (APPEND, SUBTRACT):
            raise InvalidConfig(f"{row.name}: the lists of a subscription take no append and subtract; set the whole")


def _drop_twin(settings: dict[str, str], name: str, rows: Sequence[IncrementalAlterConfigsAlterableConfig]) -> None:
    """Setting one name of the election replaces the other, unless the same request sets that too."""
    asked = {row.name for row in rows if row.config_operation == SET}
    if not {election.ELECTION, election.UNCLEAN} <= asked:
        election.replace(settings, name)


def _one_operation(
    row: IncrementalAlterConfigsAlterableConfig, new: dict[str, str], settings: Mapping[str, Setting]
) -> None:
    if row.config_operation == DELETE:
        new.pop(row.name, None)
        if row.name == election.ELECTION:
            new.pop(election.UNCLEAN, None)
        elif row.name == election.UNCLEAN and new.get(election.ELECTION) in ("clean", "unclean"):
            del new[election.ELECTION]
        return
    if row.value is None:
        raise InvalidRequest(f"{row.name} has no value; give one, or delete the setting")
    if row.config_operation == SET:
        new[row.name] = row.value
    elif row.config_operation in (APPEND, SUBTRACT):
        new[row.name] = _edited(row, new.get(row.name), settings)
    else:
        raise InvalidRequest(
            f"{row.name}: operation {row.config_operation} is not one of 0 set, 1 delete, 2 append, 3 subtract"
        )


def _edited(row: IncrementalAlterConfigsAlterableConfig, old: str | None, settings: Mapping[str, Setting]) -> str:
    """The list with elements added or taken away; one that isn't set starts from its default."""
    setting = settings.get(row.name)
    if setting is not None and setting.type != LIST:
        raise InvalidConfig(f"{row.name}={row.value}: only lists take append and subtract; set the value instead")
    if old is None and setting is not None:
        old = setting.default
    parts = [part.strip() for part in (old or "").split(",") if part.strip()]
    edits = [part.strip() for part in (row.value or "").split(",") if part.strip()]
    if row.config_operation == APPEND:
        return ",".join([*parts, *(part for part in dict.fromkeys(edits) if part not in parts)])
    return ",".join(part for part in parts if part not in edits)


Merge = Callable[[Any, Mapping[str, str]], dict[str, str]]


def _alter(
    request: Any, image: ClusterImage, config: BrokerConfig, node_id: int, merge: Merge, response: Any, answer: Any
) -> ControllerResult:
    """Alter each resource on its own; within a resource, all changes are made or none."""
    asked = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    out = ControllerResult([], response, Effects())
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        row = answer(resource_type=kind, resource_name=name)
        response.responses.append(row)
        try:
            if asked[kind, name] > 1:
                raise InvalidRequest(f"the request names the resource {name!r} more than once; name it once")
            _alter_one(resource, image, config, node_id, merge, out, keep=not request.validate_only)
        except KafkaError as error:
            row.error_code, row.error_message = error.code, str(error)
    return out


def _alter_one(
    resource: Any,
    image: ClusterImage,
    config: BrokerConfig,
    node_id: int,
    merge: Merge,
    out: ControllerResult,
    *,
    keep: bool,
) -> None:
    key = _key(resource.resource_type, resource.resource_name, image, node_id)
    names = Counter(row.name for row in resource.configs)
    for name, times in names.items():
        if times > 1:
            raise InvalidRequest(f"{name} is given {times} times for one resource; give it once")
    old = image.configs.get(key, {})
    new = merge(resource, old)
    for name, value in new.items():
        if len(value) > MAX_VALUE_CHARACTERS:
            raise InvalidConfig(f"{name} has {len(value)} characters; {MAX_VALUE_CHARACTERS} are the most")
    if resource.resource_type == TOPIC:
        config.validate_topic(_without_gone(new, old, config.definitions.topic))
    elif resource.resource_type == GROUP:
        validate_group(config, _without_gone(new, old, config.definitions.group))
    elif resource.resource_type == CLIENT_METRICS:
        validate_client_metrics(new)
    else:
        changed = {name: value for name, value in new.items() if old.get(name) != value}
        _check_broker(changed, config, is_asked=resource.resource_name == str(node_id))
    if not keep or new == old:
        return
    out.changes.append(MetadataChange("config", key, new or None))
    if resource.resource_type == TOPIC:
        out.effects.topics_configured.append(resource.resource_name)
    elif resource.resource_type == BROKER:
        out.effects.brokers_configured.append(resource.resource_name)


def _without_gone(new: Mapping[str, str], old: Mapping[str, str], known: Mapping[str, Setting]) -> dict[str, str]:
    """The settings without stored ones of plugins that are not installed."""
    return {name: value for name, value in new.items() if name in known or old.get(name) != value}


def _check_broker(changed: Mapping[str, str], config: BrokerConfig, *, is_asked: bool) -> None:
    """Raises InvalidRequest, as Kafka does for brokers where a topic would get InvalidConfig. `is_asked`: they are of
    the broker whose `config` this is, alone."""
    for name, value in changed.items():
        try:
            config.validate_broker_config(name, value)
            if is_asked:
                config.validate_listener_of(name, value)
        except InvalidConfig as error:
            raise InvalidRequest(str(error)) from None


def apply_topic_settings(
    image: ClusterImage, config: BrokerConfig, name: str, settings: Mapping[str, str]
) -> ControllerResult:
    """Set each of `settings` on a topic. The response is {name: (old or None, new)} of those that differ."""
    key = _key(TOPIC, name, image, -1)
    old = image.topic_config(name)
    config.validate_topic(settings)
    differs = {one: (old.get(one), text) for one, text in settings.items() if old.get(one) != text}
    if not differs:
        return ControllerResult([], differs, Effects())
    new = {**old, **settings}
    for one in settings:
        if not {election.ELECTION, election.UNCLEAN} <= set(settings):
            election.replace(new, one)
    change = MetadataChange("config", key, new)
    return ControllerResult([change], differs, Effects(topics_configured=[name]))


def _key(kind: int, name: str, image: ClusterImage, node_id: int) -> str:
    """The key of a resource's settings. Raises KafkaError for a resource that does not exist."""
    if kind == TOPIC:
        if not name:
            raise InvalidRequest("a topic has a name; defaults of all topics are settings of the broker ''")
        if name not in image.topics:
            raise UnknownTopicOrPartition(f"there is no topic {name!r}; check the name, or create the topic")
        return topic_key(name)
    if kind == BROKER:
        if name not in ("", str(node_id)) and name not in map(str, image.nodes):
            raise InvalidRequest(f"there is no broker {name!r}; name {node_id}, or '' for all brokers")
        return broker_key(name)
    if kind == GROUP:
        if not name:
            raise InvalidRequest("a group has a name; name the group whose settings are meant")
        return group_key(name)
    if kind == CLIENT_METRICS:
        if not name:
            raise InvalidRequest("a subscription has a name; name the one whose settings are meant")
        return client_metrics_key(name)
    raise InvalidRequest(
        f"resources of type {kind} have no settings that are kept; use 2 (topic), 4 (broker), 16 (client metrics)"
        f" or 32 (group)"
    )


# ---------------------------------------------------------------- describe


def describe_configs(
    request: DescribeConfigsRequest, image: ClusterImage, config: BrokerConfig, node_id: int
) -> DescribeConfigsResponse:
    """The requested settings of each resource; all where the request names none."""
    response = DescribeConfigsResponse()
    for resource in request.resources:
        row = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        response.results.append(row)
        try:
            found = _described(resource, image, config, node_id)
        except KafkaError as error:
            row.error_code, row.error_message = error.code, str(error)
            continue
        row.configs = [_told(one, request) for one in found]
    return response


def _described(
    resource: DescribeConfigsResource, image: ClusterImage, config: BrokerConfig, node_id: int
) -> list[Described]:
    name, keys = resource.resource_name, resource.configuration_keys
    if resource.resource_type == TOPIC:
        check_name(name)
    _key(resource.resource_type, name, image, node_id)
    if resource.resource_type == TOPIC:
        return describe_topic(config, image.topic_config(name), keys)
    if resource.resource_type == GROUP:
        return describe_group(config, image.group_config(name), keys)
    if resource.resource_type == CLIENT_METRICS:
        return describe_client_metrics(image.configs.get(client_metrics_key(name), {}), keys)
    if name == "":
        return describe_defaults(config, keys)
    if name != str(node_id):
        raise InvalidRequest(f"broker {name} must be asked itself; this is broker {node_id}")
    return describe_broker(config, keys)


def _told(one: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = one.synonyms if request.include_synonyms else []
    return DescribeConfigsResourceResult(
        name=one.name,
        value=one.value,
        read_only=one.read_only,
        config_source=one.source,
        is_sensitive=one.sensitive,
        synonyms=[DescribeConfigsSynonym(name=row.name, value=row.value, source=row.source) for row in synonyms],
        config_type=one.type,
        documentation=one.documentation if request.include_documentation else None,
    )
