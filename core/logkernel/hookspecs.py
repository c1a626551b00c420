"""Every hook of logkernel: what a plugin author reads first.

A plugin is a module or object with functions marked `@hookimpl`, found by an entry point in the
group `logkernel`:

    [project.entry-points.logkernel]
    my-plugin = "my_package.plugin"

Hooks that *provide* return an object for a name. The first implementation that does not return None wins; outside
distributions are asked before built-ins. Hooks that *describe* return what a plugin provides and owns. Hooks that
*tell* are called after an event; what they raise is logged and ignored. No hook is called per record or batch, so a
hook may take some milliseconds. One that takes more than a second is logged, while it runs and when it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pluggy

from logkernel.config.definitions import Setting
from logkernel.contracts import (
    Assignor,
    Authorizer,
    CleanupPolicy,
    ClientQuotaCallback,
    ClusterView,
    Codec,
    CompactionStrategy,
    Connector,
    Coordination,
    ElectionStrategy,
    FetchFilter,
    Interceptor,
    IsrPolicy,
    MetricsReporter,
    Partitioner,
    PasswordChecker,
    PlacementStrategy,
    ProduceInterceptor,
    Quota,
    RecordDecoder,
    Service,
    ServiceDeclaration,
    Settings,
    StateLog,
    TaskAssignor,
    Transport,
)

KINDS: Mapping[str, str] = {
    "assignor": "logkernel_assignor",
    "authorizer": "logkernel_authorizer",
    "cleanup policy": "logkernel_cleanup",
    "client quota callback": "logkernel_client_quota_callback",
    "codec": "logkernel_codec",
    "compaction strategy": "logkernel_compaction_strategy",
    "connector": "logkernel_connector",
    "coordination": "logkernel_coordination",
    "decoder": "logkernel_decoder",
    "election": "logkernel_election",
    "fetch filter": "logkernel_fetch_filter",
    "interceptor": "logkernel_interceptor",
    "isr": "logkernel_isr",
    "metrics reporter": "logkernel_metrics_reporter",
    "partitioner": "logkernel_partitioner",
    "password checker": "logkernel_password_checker",
    "placement": "logkernel_placement",
    "produce interceptor": "logkernel_produce_interceptor",
    "quota": "logkernel_quota",
    "service": "logkernel_services",
    "shared coordination": "logkernel_coordination",
    "task assignor": "logkernel_task_assignor",
    "transport": "logkernel_transport",
}
"""Kind of a provided object, as `logkernel_names` gives it → the hook that provides it."""

hookspec = pluggy.HookspecMarker("logkernel")
hookimpl = pluggy.HookimplMarker("logkernel")


# ---------------------------------------------------------------- provide


@hookspec(firstresult=True)
def logkernel_partitioner(name: str, settings: Mapping[str, Any], seed: int) -> Partitioner | None:
    """Return the partitioner called `name`: a new object for each topic and producer.

    `settings` are the topic's plugin-owned settings, typed; `seed` is the partitioner's only source of randomness."""


@hookspec(firstresult=True)
def logkernel_interceptor(name: str, settings: Mapping[str, Any]) -> Interceptor | None:
    """Return the interceptor called `name`: a new object for each producer. `settings` are the producer's."""


@hookspec(firstresult=True)
def logkernel_metrics_reporter(name: str, settings: Mapping[str, Any]) -> MetricsReporter | None:
    """Return the metrics reporter called `name`: a new object for each client. `settings` are the client's."""


@hookspec(firstresult=True)
def logkernel_codec(name: str, level: int | None) -> Codec | None:
    """Return the compression codec called `name`. `level` None means the codec's default level.

    Kafka's batch format has numbers for gzip, snappy, lz4 and zstd only, and every client must be able to read the
    result. A plugin can therefore replace one of the four under its name (a faster zstd), but cannot add a fifth."""


@hookspec(firstresult=True)
def logkernel_election(name: str, settings: Mapping[str, Any]) -> ElectionStrategy | None:
    """Return the election strategy called `name`.

    `settings` are the topic's plugin-owned settings, typed; topics with equal ones may share an object."""


@hookspec(firstresult=True)
def logkernel_isr(name: str, settings: Mapping[str, Any]) -> IsrPolicy | None:
    """Return the ISR policy called `name`: a new object for each partition that a broker of a cluster leads.

    `settings` are the topic's plugin-owned settings, typed; when they change, a new object is asked for."""


@hookspec(firstresult=True)
def logkernel_placement(name: str, settings: Mapping[str, Any]) -> PlacementStrategy | None:
    """Return the placement strategy called `name`. It assigns replicas to brokers, and says which of them leads first.

    Called by the controller of a cluster when a topic is created without an assignment, or gets more partitions.
    `settings` are the topic's plugin-owned settings, typed."""


@hookspec(firstresult=True)
def logkernel_cleanup(name: str, settings: Mapping[str, Any]) -> CleanupPolicy | None:
    """Return the cleanup policy called `name`. `cleanup.policy=compact,delete` asks for two.

    `settings` are the topic's plugin-owned settings, typed; topics with equal ones may share an object. All of a
    topic's settings are in `LogFacts.settings`."""


@hookspec(firstresult=True)
def logkernel_compaction_strategy(name: str, settings: Mapping[str, Any]) -> CompactionStrategy | None:
    """Return the compaction strategy called `name`, a topic's `compaction.strategy`: a new object for each rewrite.

    `settings` are the topic's plugin-owned settings, typed. Not called for `offset`, which `cleanup.policy=compact`
    does itself. If the plugin is missing, the topic is not compacted."""


@hookspec(firstresult=True)
def logkernel_produce_interceptor(name: str, settings: Mapping[str, Any]) -> ProduceInterceptor | None:
    """Return the produce interceptor called `name`, one of the topic's `produce.interceptors`: a new object for each
    partition that a broker leads.

    `settings` are the topic's plugin-owned settings, typed; when they change, a new object is asked for. If the plugin
    is missing, writes to the topic fail, as its records would pass unchecked."""


@hookspec(firstresult=True)
def logkernel_fetch_filter(name: str, settings: Mapping[str, Any]) -> FetchFilter | None:
    """Return the fetch filter called `name`, one of the topic's `fetch.filters`: a new object for each partition that a
    broker leads.

    `settings` are the topic's plugin-owned settings, typed; when they change, a new object is asked for. If the plugin
    is missing, consumers get nothing of the topic, as they could get what they should not."""


@hookspec(firstresult=True)
def logkernel_quota(name: str, settings: Mapping[str, Any]) -> Quota | None:
    """Return the quota called `name`, one of the topic's `quotas`: a new object for each topic on a broker.

    `settings` are the topic's plugin-owned settings, typed; when they change, a new object is asked for. If the plugin
    is missing, clients' requests for the topic fail."""


@hookspec(firstresult=True)
def logkernel_client_quota_callback(name: str, settings: Settings) -> ClientQuotaCallback | None:
    """Return the client quota callback called `name`, the broker's `client.quota.callback.class`: a new object for each
    broker.

    `settings` are the broker's. Not called where the setting is empty: then the cluster's quotas count, by Kafka's
    precedence. If the plugin is missing, the broker does not start."""


@hookspec(firstresult=True)
def logkernel_authorizer(name: str, settings: Settings) -> Authorizer | None:
    """Return the authorizer called `name`, the broker's `authorizer.class.name`: a new object for each broker.

    `settings` are the broker's. Not called where the setting is empty: then everybody may do everything. Kafka's class
    names mean `standard`."""


@hookspec(firstresult=True)
def logkernel_password_checker(name: str, settings: Settings) -> PasswordChecker | None:
    """Return the password checker called `name`, a listener's `plain.sasl.server.callback.handler.class`: a new object
    for each listener, and another when the listener's settings change.

    `settings` are the broker's. If the plugin is missing, the broker does not start."""


@hookspec(firstresult=True)
def logkernel_assignor(name: str) -> Assignor | None:
    """Return the assignor called `name`, one of `group.consumer.assignors` (KIP-848)."""


@hookspec(firstresult=True)
def logkernel_task_assignor(name: str) -> TaskAssignor | None:
    """Return the task assignor called `name`, one of `group.streams.assignors` (KIP-1071)."""


@hookspec(firstresult=True)
def logkernel_transport(name: str) -> Transport | None:
    """Return the transport called `name` ("tcp", "memory"), with its listening and its connecting half."""


@hookspec(firstresult=True)
def logkernel_coordination(name: str, open_log: Callable[[], StateLog], settings: Settings) -> Coordination | None:
    """Return the coordination called `name`. `open_log` opens a durable log in the broker's data directory; `settings`
    are the broker's. A `SharedCoordination` is named as "shared coordination" by `logkernel_names`: a broker that
    serves with it joins a cluster; the hook returns its first session."""


@hookspec(firstresult=True)
def logkernel_service(name: str, settings: Settings, cluster: ClusterView) -> Service | None:
    """Return the service called `name`, as declared by `logkernel_services`.

    Called at the service's first request, or soon after the broker's start. `settings` are the broker's."""


@hookspec
def logkernel_services() -> Iterable[ServiceDeclaration]:
    """Declare the services that this plugin provides. Called at every start: import nothing heavy."""
    return ()


@hookspec(firstresult=True)
def logkernel_connector(name: str) -> Connector | None:
    """Return the connector to the query engine called `name` ("spark"). Import the engine when it is used, not here."""


@hookspec(firstresult=True)
def logkernel_decoder(topic: str) -> RecordDecoder | None:
    """Return the decoder that `logkernel dump` uses for the records of the internal topic `topic`.

    Called without a broker or service: only the topic's name is known."""


@hookspec
def logkernel_names() -> Iterable[tuple[str, str]]:
    """Return (kind, name) of everything this plugin provides, e.g. ("cleanup policy", "compact").

    Settings that choose a plugin, such as cleanup.policy, accept only these names. The kinds are assignor,
    authorizer, cleanup policy, client quota callback, codec, compaction strategy, connector, coordination, decoder,
    election, fetch filter, interceptor, isr, metrics reporter, partitioner, password checker, placement, produce
    interceptor, quota, service, shared coordination, task assignor and transport.
    An unknown kind, or a codec other than Kafka's four, is logged as a warning at start."""
    return ()


@hookspec
def logkernel_settings() -> Iterable[Setting]:
    """Return the settings that this plugin owns, of brokers, topics or groups. Built-in services use this hook, too.

        from logkernel.config.definitions import TOPIC, Setting
        from logkernel.config.values import INT, Between

        Setting("acme.window.ms", INT, "1000", Between(1, 60_000), "How long a window is.", scope=TOPIC)

    The type is one of Kafka's (`INT`, `LIST`, ...) or your own (`OwnType(name, parse)`). A validator is any callable
    that raises ValueError for a bad value and names its bounds as `str()`; `logkernel.config.values` has the usual
    ones. A value that the type or the validator rejects is refused when it is set, in a file or by AlterConfigs.

    Read a broker's setting with `settings.get(name)`, a topic's from `settings.plugin[name]`, a group's with
    `ClusterView.group_setting(group_id, name)`; all are typed. The default of a topic's setting is the broker setting
    of the same name. DescribeConfigs lists a topic's setting only where the topic uses one of the plugin's policies,
    elections or partitioners, if the plugin has any. Called at every start: import nothing heavy."""
    return ()


# ---------------------------------------------------------------- tell


@hookspec
def logkernel_broker_started(node_id: int, addresses: tuple[str, ...]) -> None:
    """The broker serves clients on `addresses` ("host:port")."""


@hookspec
def logkernel_broker_stopping(node_id: int) -> None:
    """The broker is about to close its logs."""


@hookspec
def logkernel_topic_created(topic: str, partitions: int) -> None:
    """A topic was created, with empty logs. Topics that exist when the broker starts are not announced."""


@hookspec
def logkernel_topic_deleted(topic: str) -> None:
    """A topic was deleted."""


@hookspec
def logkernel_leader_changed(topic: str, partition: int, leader: int, leader_epoch: int) -> None:
    """A partition has a new leader (a node id), or none (-1). Leaders that a broker finds at its start are not
    announced."""


@hookspec
def logkernel_isr_changed(topic: str, partition: int, isr: tuple[int, ...]) -> None:
    """The in-sync replicas of a partition changed to `isr` (node ids)."""


@hookspec
def logkernel_segment_rolled(topic: str, partition: int, base_offset: int, size_bytes: int) -> None:
    """The segment that begins at `base_offset` was closed with `size_bytes`, and a new one is active."""


@hookspec
def logkernel_cleanup_done(topic: str, partition: int, policy: str, log_start_offset: int) -> None:
    """A cleanup policy's plan was carried out."""
