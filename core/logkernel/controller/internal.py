"""The topics in which services keep their state, as the services declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from logkernel.config.broker import BrokerConfig
from logkernel.config.nearest import nearest
from logkernel.contracts import ServiceDeclaration, ServiceTopic
from logkernel.controller.names import check_name
from logkernel.errors import InvalidTopicException, PluginError


def internal_topics(services: Iterable[ServiceDeclaration], config: BrokerConfig) -> Mapping[str, ServiceTopic]:
    """Name → topic. Services may share a topic, which the first of them declares. Raises PluginError, with the
    service's name, for a topic that cannot be created."""
    found: dict[str, ServiceTopic] = {}
    for service in services:
        topic = service.topic
        if topic is None:
            continue
        try:
            check_name(topic.name)
        except InvalidTopicException as error:
            raise PluginError(f"service {service.name!r}: {error}") from None
        used = (topic.partitions_setting, topic.replication_setting, *topic.config_settings.values())
        _check(service, "broker", filter(None, used), config.definitions.broker)
        _check(service, "topic", (*topic.config, *topic.config_settings), config.definitions.topic)
        found.setdefault(topic.name, topic)
    return found


def _check(service: ServiceDeclaration, scope: str, names: Iterable[str], known: Mapping[str, object]) -> None:
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else "declare it by logkernel_settings"
            raise PluginError(f"service {service.name!r}: its topic needs {name}, which is no {scope} setting; {hint}")
