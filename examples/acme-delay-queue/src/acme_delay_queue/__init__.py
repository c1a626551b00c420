"""A delay queue as a logkernel service. It answers no requests: producers and consumers are plain Kafka clients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from logkernel.config.definitions import Setting
from logkernel.config.values import INT, STRING, Between, NonEmpty
from logkernel.contracts import Service, ServiceDeclaration, ServiceTopic
from logkernel.hookspecs import hookimpl

DECLARATION: Final = ServiceDeclaration(
    name="acme-delay-queue",
    requests=(),
    topic=ServiceTopic("__acme_delay_queue", "acme.delay.partitions", {"cleanup.policy": "compact"}),
)


@hookimpl
def logkernel_services() -> Iterable[ServiceDeclaration]:
    return [DECLARATION]


@hookimpl
def logkernel_service(name: str, settings: Any, cluster: Any) -> Service | None:
    if name != DECLARATION.name:
        return None
    from .machine import DelayQueue

    return DelayQueue(settings.get("acme.delay.topic"), settings.get("acme.delay.partitions"), cluster)


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("service", DECLARATION.name)]


@hookimpl
def logkernel_settings() -> Iterable[Setting]:
    return [
        Setting("acme.delay.topic", STRING, "delayed", NonEmpty(), "The topic that the delay queue watches."),
        Setting("acme.delay.partitions", INT, "1", Between(1, 1000), "Partitions of the delay queue's own topic."),
    ]
