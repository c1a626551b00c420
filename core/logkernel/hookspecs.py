"""Every hook of logkernel: what a plugin author reads first.

A plugin is a module or object with functions marked `@hookimpl`, found by an entry point in the
group `logkernel`:

    [project.entry-points.logkernel]
    my-plugin = "my_package.plugin"

Hooks of the first kind *provide* an object by name: the first implementation that does not return
None wins, and a stranger's is asked before a built-in's. Hooks of the second kind *tell*, after the
fact. No hook is called per record or batch, so a hook may take its time within reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pluggy

from logkernel.config.definitions import PluginSetting
from logkernel.contracts import (
    Assignor,
    CleanupPolicy,
    ClusterView,
    Codec,
    Connector,
    Coordination,
    ElectionStrategy,
    Interceptor,
    MetricsReporter,
    Partitioner,
    RecordDecoder,
    Service,
    ServiceDeclaration,
    Settings,
    StateLog,
    Transport,
)

hookspec = pluggy.HookspecMarker("logkernel")
hookimpl = pluggy.HookimplMarker("logkernel")


# ---------------------------------------------------------------- provide


@hookspec(firstresult=True)
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    """The partitioner called `name`, a new object for each topic; `seed` is its only randomness."""


@hookspec(firstresult=True)
def logkernel_interceptor(name: str, settings: Mapping[str, Any]) -> Interceptor | None:
    """The interceptor called `name`, a new object for each client; `settings` are the client's."""


@hookspec(firstresult=True)
def logkernel_metrics_reporter(name: str, settings: Mapping[str, Any]) -> MetricsReporter | None:
    """The reporter of a client's metrics called `name`, a new object for each client."""


@hookspec(firstresult=True)
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """The compression codec called `name`; `level` None means the codec's own default."""


@hookspec(firstresult=True)
def logkernel_election(name: str) -> ElectionStrategy | None:
    """The election strategy called `name`."""


@hookspec(firstresult=True)
def logkernel_cleanup(name: str) -> CleanupPolicy | None:
    """The cleanup policy called `name`; `cleanup.policy=compact,delete` asks for two."""


@hookspec(firstresult=True)
def logkernel_assignor(name: str) -> Assignor | None:
    """The assignor called `name`, which `group.consumer.assignors` may list and members may ask for."""


@hookspec(firstresult=True)
def logkernel_transport(name: str) -> Transport | None:
    """The transport called `name` ("tcp", "memory"), with both its halves."""


@hookspec(firstresult=True)
def logkernel_coordination(name: str, open_log: Callable[[], StateLog]) -> Coordination | None:
    """The coordination called `name`; `open_log` lends a durable log in the broker's folder."""


@hookspec(firstresult=True)
def logkernel_service(name: str, settings: Settings, cluster: ClusterView) -> Service | None:
    """The service called `name`, one of those declared; asked when its first request comes, or soon after start."""


@hookspec
def logkernel_services() -> Iterable[ServiceDeclaration]:
    """The services that this plugin provides. Called at every start: import nothing heavy for it."""
    return ()


@hookspec(firstresult=True)
def logkernel_connector(name: str) -> Connector | None:
    """The connector to the query engine called `name` ("spark"). The engine is imported when it is used, not here."""


@hookspec(firstresult=True)
def logkernel_decoder(topic: str) -> RecordDecoder | None:
    """What says, for `logkernel dump`, what the records of the internal topic `topic` mean.

    Asked where no broker runs and no service exists: the topic's name is all there is."""


@hookspec
def logkernel_names() -> Iterable[tuple[str, str]]:
    """(kind, name) of everything this plugin provides, e.g. ("codec", "gzip"); for lists and error texts."""
    return ()


@hookspec
def logkernel_settings() -> Iterable[PluginSetting]:
    """(name, scope "broker" or "topic", default, documentation) of settings that the plugin owns. A fifth element,
    where there is one, has the words that the setting takes; any other is refused when it is set."""
    return ()


# ---------------------------------------------------------------- tell


@hookspec
def logkernel_broker_started(node_id: int, addresses: tuple[str, ...]) -> None:
    """The broker answers on `addresses`."""


@hookspec
def logkernel_broker_stopping(node_id: int) -> None:
    """The broker is about to close its logs."""


@hookspec
def logkernel_topic_created(topic: str, partitions: int) -> None:
    """A topic exists now, with empty logs."""


@hookspec
def logkernel_topic_deleted(topic: str) -> None:
    """A topic is gone."""


@hookspec
def logkernel_leader_changed(topic: str, partition: int, leader: int, leader_epoch: int) -> None:
    """A partition has a new leader, or none (-1)."""


@hookspec
def logkernel_isr_changed(topic: str, partition: int, isr: tuple[int, ...]) -> None:
    """The in-sync replicas of a partition changed."""


@hookspec
def logkernel_segment_rolled(topic: str, partition: int, base_offset: int, size_bytes: int) -> None:
    """A segment (first offset `base_offset`) was closed at `size_bytes` and a new one is active."""


@hookspec
def logkernel_cleanup_done(topic: str, partition: int, policy: str, log_start_offset: int) -> None:
    """A cleanup policy's plan was carried out."""
