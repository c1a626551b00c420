"""The plugin manager of one kernel, with a typed method for each hook that provides.

Built-in plugins are found as all others: by entry points of the group `logkernel`. Outside plugins are asked first, so
that one can replace a built-in under its name. Nothing here is global: the objects that plugins provide hold their own
state, and two kernels in a process share none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from logkernel import hookspecs
from logkernel.config.definitions import PluginDeclaration
from logkernel.config.nearest import nearest
from logkernel.contracts import (
    Assignor,
    CleanupPolicy,
    ClusterView,
    Codec,
    Connector,
    Coordination,
    ElectionStrategy,
    Interceptor,
    IsrPolicy,
    MetricsReporter,
    Partitioner,
    PasswordChecker,
    PlacementStrategy,
    RecordDecoder,
    Service,
    ServiceDeclaration,
    Settings,
    StateLog,
    Transport,
)
from logkernel.errors import PluginError, UnsupportedCompressionType
from logkernel.kernel import kinds
from logkernel.kernel.hooks import Hooks
from logkernel.kernel.kinds import Kind, P
from logkernel.kernel.loaded import LoadedPlugins
from logkernel.plugin_faults import Origin, PluginFaults

if TYPE_CHECKING:
    from logkernel.guards.authorizer import GuardedAuthorizer
    from logkernel.guards.client_quota_callback import GuardedClientQuotaCallback
    from logkernel.guards.compaction_strategy import GuardedCompactionStrategy
    from logkernel.guards.fetch_filter import GuardedFetchFilter
    from logkernel.guards.produce_interceptor import GuardedProduceInterceptor
    from logkernel.guards.quota import GuardedQuota
    from logkernel.guards.task_assignor import GuardedTaskAssignor

CODEC_NAMES: Mapping[int, str] = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Codec id (bits 0 to 2 of a batch's attributes) → name that plugins provide."""

log = logging.getLogger("logkernel.kernel")


def _warn_of_names(declared: PluginDeclaration) -> None:
    for kind, name in declared.names:
        if kind not in hookspecs.KINDS:
            near = nearest(kind, hookspecs.KINDS)
            hint = f"did you mean {near!r}?" if near else f"use one of {', '.join(hookspecs.KINDS)}"
            log.warning("%s: logkernel_names gives %r the unknown kind %r; %s", declared, name, kind, hint)
        elif kind == "codec" and name not in CODEC_NAMES.values():
            log.warning(
                "%s: its codec %r can never be used, as Kafka's batch format knows only %s; give the codec one of"
                " these names, to replace that codec",
                declared, name, ", ".join(CODEC_NAMES.values()),
            )  # fmt: skip


class Kernel:
    """Loads plugins and gets objects from them by name.

    `allow` lists the outside distributions to load (None: all installed). `block` names entry points that are not
    loaded, built-ins included. `plugins` are modules, their dotted names, or objects. Raises `PluginError` for a
    plugin that cannot be loaded.

    The methods named after a kind (`partitioner`, `codec`, …) return the object that a plugin provides for `name`.
    They raise `PluginError` if no plugin does, or if the plugin fails.
    """

    def __init__(
        self,
        *,
        allow: Collection[str] | None = None,
        block: Iterable[str] = (),
        plugins: Iterable[object] = (),
    ) -> None:
        self.faults = PluginFaults()
        self._plugins = LoadedPlugins(allow, block, plugins)
        self._hooks = Hooks(self._plugins, self.faults)
        self._codecs: dict[int, Codec] = {}
        self._declarations: list[PluginDeclaration] | None = None

    def tell(self, hook: str, /, **facts: Any) -> None:
        """Call an event hook in every plugin. What a plugin raises is logged with the plugin's name and kept in
        `faults`."""
        self._hooks.tell(hook, **facts)

    def origin_of(self, provided: object) -> Origin:
        """Return the plugin that an object came from, by the module of its class; for logs and errors."""
        return self._plugins.origin_of(provided)

    # ------------------------------------------------------------ what plugins provide

    def all_names(self) -> list[tuple[str, str]]:
        """Return (kind, name) of everything that plugins provide."""
        return [row for rows in self._hooks.describe("logkernel_names").values() for row in rows]

    def names(self, kind: str) -> list[str]:
        """Return the names that plugins provide for one kind, sorted."""
        return sorted({name for found, name in self.all_names() if found == kind})

    def _provided(self, kind: Kind[P], name: str, **facts: Any) -> P:
        """Return what a plugin provides, in its guard. Raises `PluginError` if none does, if it raises, or returns what
        does not have the methods of its contract."""
        found = self._hooks.ask(kind.hook, name=name, **facts)
        if found is None:
            known = self.names(kind.name)
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else "check the name, or install the plugin"
            raise PluginError(
                f"no plugin provides the {kind.name} {name!r} (known: {', '.join(known) or 'none'}); {hint}"
            )
        self._hooks.check_contract(kind.hook, found, kind.contract, {"name": name, **facts})
        guard = kind.guard()
        provided: P = found if guard is None else guard(found, name, self.faults, partial(self.origin_of, found))
        return provided

    def partitioner(self, name: str, settings: Mapping[str, Any], seed: int) -> Partitioner:
        return self._provided(kinds.PARTITIONER, name, settings=settings, seed=seed)

    def interceptor(self, name: str, settings: Mapping[str, Any]) -> Interceptor:
        return self._provided(kinds.INTERCEPTOR, name, settings=settings)

    def metrics_reporter(self, name: str, settings: Mapping[str, Any]) -> MetricsReporter:
        return self._provided(kinds.METRICS_REPORTER, name, settings=settings)

    def connector(self, name: str) -> Connector:
        return self._provided(kinds.CONNECTOR, name)

    def codec(self, name: str, level: int | None = None) -> Codec:
        """Also raises `PluginError` for a codec that Kafka's batch format does not know, or with a wrong `codec_id`."""
        found = self._provided(kinds.CODEC, name, level=level)
        known = ", ".join(CODEC_NAMES.values())
        if name not in CODEC_NAMES.values():
            raise PluginError(
                f"the codec {name!r} can't be used, as Kafka's batch format knows only {known}; use one of these, which"
                f" a plugin can replace"
            )
        if CODEC_NAMES.get(found.codec_id) != name:
            raise PluginError(
                f"{self.origin_of(found)} provides the codec {name!r} with the codec_id {found.codec_id}; use the id of"
                f" {name} in Kafka's batch format"
            )
        return found

    def codec_for(self, codec_id: int) -> Codec:
        """Return the codec for a batch's codec id; it is cached. Raises `UnsupportedCompressionType`."""
        codec = self._codecs.get(codec_id)
        if codec is None:
            name = CODEC_NAMES.get(codec_id)
            if name is None:
                raise UnsupportedCompressionType(f"compression type {codec_id} is not one of {dict(CODEC_NAMES)}")
            try:
                codec = self._codecs[codec_id] = self.codec(name)
            except PluginError as error:
                raise UnsupportedCompressionType(str(error)) from error
        return codec

    def election(self, name: str, settings: Mapping[str, Any]) -> ElectionStrategy:
        return self._provided(kinds.ELECTION, name, settings=settings)

    def isr(self, name: str, settings: Mapping[str, Any]) -> IsrPolicy:
        return self._provided(kinds.ISR, name, settings=settings)

    def placement(self, name: str, settings: Mapping[str, Any]) -> PlacementStrategy:
        return self._provided(kinds.PLACEMENT, name, settings=settings)

    def cleanup(self, name: str, settings: Mapping[str, Any]) -> CleanupPolicy:
        return self._provided(kinds.CLEANUP, name, settings=settings)

    def compaction_strategy(self, name: str, settings: Mapping[str, Any]) -> GuardedCompactionStrategy:
        return self._provided(kinds.COMPACTION_STRATEGY, name, settings=settings)

    def produce_interceptor(self, name: str, settings: Mapping[str, Any]) -> GuardedProduceInterceptor:
        return self._provided(kinds.PRODUCE_INTERCEPTOR, name, settings=settings)

    def fetch_filter(self, name: str, settings: Mapping[str, Any]) -> GuardedFetchFilter:
        return self._provided(kinds.FETCH_FILTER, name, settings=settings)

    def quota(self, name: str, settings: Mapping[str, Any]) -> GuardedQuota:
        return self._provided(kinds.QUOTA, name, settings=settings)

    def authorizer(self, name: str, settings: Settings) -> GuardedAuthorizer:
        return self._provided(kinds.AUTHORIZER, name, settings=settings)

    def client_quota_callback(self, name: str, settings: Settings) -> GuardedClientQuotaCallback:
        return self._provided(kinds.CLIENT_QUOTA_CALLBACK, name, settings=settings)

    def password_checker(self, name: str, settings: Settings) -> PasswordChecker:
        return self._provided(kinds.PASSWORD_CHECKER, name, settings=settings)

    def assignor(self, name: str) -> Assignor:
        return self._provided(kinds.ASSIGNOR, name)

    def task_assignor(self, name: str) -> GuardedTaskAssignor:
        return self._provided(kinds.TASK_ASSIGNOR, name)

    def transport(self, name: str) -> Transport:
        return self._provided(kinds.TRANSPORT, name)

    def coordination(
        self, name: str, open_log: Callable[[], StateLog], settings: Settings | None = None
    ) -> Coordination:
        return self._provided(kinds.COORDINATION, name, open_log=open_log, settings=settings or {})

    def services(self) -> list[ServiceDeclaration]:
        """Return all declared services; of two with one name, the outside plugin's."""
        found: dict[str, ServiceDeclaration] = {}
        for declarations in reversed(self._hooks.describe("logkernel_services").values()):
            for declaration in declarations:
                found.setdefault(declaration.name, declaration)
        return list(found.values())

    def service(self, name: str, settings: Settings, cluster: ClusterView) -> Service:
        return self._provided(kinds.SERVICE, name, settings=settings, cluster=cluster)

    def decoder(self, topic: str) -> RecordDecoder | None:
        """Return the decoder for the records of `topic`, or None if no plugin has one. Raises `PluginError`."""
        found: RecordDecoder | None = self._hooks.ask("logkernel_decoder", topic=topic)
        if found is not None:
            self._hooks.check_contract("logkernel_decoder", found, RecordDecoder, {"topic": topic})
        return found

    def declarations(self) -> list[PluginDeclaration]:
        """Return what each plugin provides and which settings it owns, outside plugins first.

        The plugins are asked once. A name that can never be used is logged as a warning. Raises `PluginError` with the
        plugin's name.
        """
        if self._declarations is None:
            self._declarations = self._ask_for_declarations()
        return self._declarations

    def _ask_for_declarations(self) -> list[PluginDeclaration]:
        found = []
        rows = {hook: self._hooks.describe(hook) for hook in ("logkernel_names", "logkernel_settings")}
        for name in reversed(self._plugins.names()):
            names, settings = (by_plugin.get(name, ()) for by_plugin in rows.values())
            if names or settings:
                origin = self._plugins.origin(name)
                declared = PluginDeclaration(origin.plugin, origin.distribution, names, settings, origin.file)
                _warn_of_names(declared)
                found.append(declared)
        return found
