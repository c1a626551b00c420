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

from logkernel.config.definitions import Setting
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

KINDS: Mapping[str, str] = {
    "assignor": "logkernel_assignor",
    "cleanup policy": "logkernel_cleanup",
    "codec": "logkernel_codec",
    "connector": "logkernel_connector",
    "coordination": "logkernel_coordination",
    "decoder": "logkernel_decoder",
    "election": "logkernel_election",
    "interceptor": "logkernel_interceptor",
    "metrics reporter": "logkernel_metrics_reporter",
    "partitioner": "logkernel_partitioner",
    "service": "logkernel_services",
    "transport": "logkernel_transport",
}
"""Kinds of what plugins provide, by which `logkernel_names` tells of it, and the hook that provides each."""

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
    """The compression codec called `name`; `level` None means the codec's own default.

    Kafka's batch format has room for the codecs gzip, snappy, lz4 and zstd alone, and every client must read what a
    codec writes. So a plugin can stand in for one of these, under its name (a faster zstd), but can't bring another."""


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
    """(kind, name) of everything this plugin provides, e.g. ("cleanup policy", "compact").

    Settings that choose a plugin, such as cleanup.policy, take these names alone. The kinds are assignor, cleanup
    policy, codec, connector, coordination, decoder, election, interceptor, metrics reporter, partitioner, service and
    transport; another kind is warned of at the start, and so is a codec that is none of Kafka's four."""
    return ()


@hookspec
def logkernel_settings() -> Iterable[Setting]:
    """The settings that this plugin owns, for brokers, topics or groups: what built-in services bring comes this way.

        from logkernel.config.definitions import TOPIC, Setting
        from logkernel.config.values import INT, Between

        Setting("acme.window.ms", INT, "1000", Between(1, 60_000), "How long a window is.", scope=TOPIC)

    The type is one of Kafka's (`INT`, `LIST`, ...) or your own (`OwnType(name, parse)`). A validator is any callable
    that raises ValueError, with bounds as its `str()`; `logkernel.config.values` has the usual ones. A value that type
    or validator refuses is refused when it is set, in a file or by AlterConfigs.

    A broker's setting is read by `settings.get(name)`, typed; a topic's stands in `settings.plugin[name]`, with a
    broker setting of the same name as its default; a group's is `ClusterView.group_setting(group_id, name)`. A topic's
    setting is listed among those of a topic only where one of the plugin's policies, elections or partitioners is in
    use, if it has any. Called at every start: import nothing heavy for it."""
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
