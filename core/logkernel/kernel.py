"""The plugin manager of one kernel, with a typed method for each hook that provides.

Built-in plugins are found as all others: by entry points of the group `logkernel`. Outside plugins are asked first, so
that one can replace a built-in under its name. Nothing here is global: the objects that plugins provide hold their own
state, and two kernels in a process share none.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib import import_module
from inspect import getattr_static, isroutine
from threading import get_ident
from time import monotonic
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import pluggy

from logkernel import hookspecs
from logkernel.config.definitions import PluginDeclaration, Setting
from logkernel.config.nearest import nearest
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
from logkernel.errors import LogkernelError, PluginError, UnsupportedCompressionType
from logkernel.installed import EntryPoint, entry_points
from logkernel.plugin_faults import SLOW_MS, Origin, PluginFaults

if TYPE_CHECKING:
    from logkernel.guards.authorizer import GuardedAuthorizer
    from logkernel.guards.compaction_strategy import GuardedCompactionStrategy
    from logkernel.guards.fetch_filter import GuardedFetchFilter
    from logkernel.guards.produce_interceptor import GuardedProduceInterceptor
    from logkernel.guards.quota import GuardedQuota
    from logkernel.guards.task_assignor import GuardedTaskAssignor

GROUP = "logkernel"
CODEC_NAMES: Mapping[int, str] = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
"""Codec id (bits 0 to 2 of a batch's attributes) → name that plugins provide."""

log = logging.getLogger("logkernel.kernel")


class _PluginManager(pluggy.PluginManager):
    """Looks only at names that begin with the group's, as pytest does: a module has scores of others."""

    def __init__(self, project_name: str) -> None:
        super().__init__(project_name)
        self._unmarked: list[str] = []

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        if not name.startswith(GROUP):
            return None
        found = super().parse_hookimpl_opts(plugin, name)
        if found is None and name.startswith(f"{GROUP}_"):
            known = getattr_static(plugin, name, None)  # a property is not asked
            known = getattr(known, "__func__", known)
            if isroutine(known) and not hasattr(known, f"{GROUP}_spec"):
                self._unmarked.append(name)
        return found

    def take_unmarked(self) -> list[str]:
        """The functions of what was registered last whose names are a hook's, or nearly so, without `@hookimpl`."""
        found, self._unmarked = self._unmarked, []
        return found

    def parse_hookspec_opts(self, module_or_class: ModuleType | type, name: str) -> pluggy.HookspecOpts | None:
        return super().parse_hookspec_opts(module_or_class, name) if name.startswith(GROUP) else None


def _shared_parts(module: str, home: str) -> int:
    """Return how many leading parts two dotted names have in common."""
    count = 0
    for one, other in zip(module.split("."), home.split("."), strict=False):
        if one != other:
            break
        count += 1
    return count


def _warn_of_unmet(what: str, names: Iterable[str], known: Collection[str | None]) -> None:
    """Warn of a name in plugins.block or plugins.allow that is not installed; it would have no effect."""
    for name in names:
        if name not in known:
            near = nearest(name, [one for one in known if one])
            hint = f"; did you mean {near}?" if near else ""
            log.warning("plugins.%s: %s: no such plugin installed%s", what, name, hint)


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
        self._manager = _PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._distributions: dict[str, str] = {}
        """Entry point → distribution."""
        self.faults = PluginFaults()
        found = sorted(entry_points(GROUP), key=lambda point: point.distribution != GROUP)
        blocked = list(block)
        for name in blocked:
            self._manager.set_blocked(name)
        _warn_of_unmet("block", blocked, {point.name for point in found})
        _warn_of_unmet("allow", allow or (), {point.distribution for point in found})
        self._load_entry_points(found, allow)
        for plugin in [plugins] if isinstance(plugins, str) else plugins:
            self._register(plugin)
        self._warn_of_misspelt_hooks()
        self._codecs: dict[int, Codec] = {}
        self._declarations: list[PluginDeclaration] | None = None

    def _register(self, plugin: object) -> None:
        """A module, its dotted name, or an object. Raises `PluginError` for what cannot have hooks, or has none."""
        if isinstance(plugin, str):
            try:
                plugin = import_module(plugin)
            except ImportError as error:
                raise PluginError(
                    f"plugin {plugin!r}: {error}; give a module, its dotted name, or an object"
                ) from error
        if isinstance(plugin, type):
            raise PluginError(f"plugin {plugin.__name__} is a class; give an object of it: {plugin.__name__}()")
        name = plugin.__name__ if isinstance(plugin, ModuleType) else f"{plugin!r:.200}"
        self._manager.register(plugin)
        self._judge_marks(f"plugin {name}")
        if not self._manager.get_hookcallers(plugin):
            raise PluginError(f"plugin {name} has no hook; mark its functions with @hookimpl")

    def _judge_marks(self, plugin: str) -> None:
        """Raises `PluginError` for a hook without `@hookimpl`, which would never be called; warns of a misspelt one."""
        hooks = [name for name in vars(hookspecs) if name.startswith(f"{GROUP}_")]
        for name in self._manager.take_unmarked():
            if name in hooks:
                raise PluginError(f"{plugin}: function {name} isn't marked; decorate it with @logkernel.hookimpl")
            near = nearest(name.removeprefix(f"{GROUP}_"), [hook.removeprefix(f"{GROUP}_") for hook in hooks])
            if near:
                log.warning(
                    "%s: function %s isn't marked, and there is no such hook; did you mean %s_%s? Then decorate it with"
                    " @logkernel.hookimpl",
                    *(plugin, name, GROUP, near),
                )

    def _load_entry_points(self, found: Iterable[EntryPoint], allow: Collection[str] | None) -> None:
        left_out: dict[str, list[str]] = {}
        for point in found:  # the last registered is asked first: strangers
            distribution = point.distribution
            if self._manager.is_blocked(point.name) or self._manager.has_plugin(point.name):
                continue
            if distribution != GROUP and allow is not None and distribution not in allow:
                left_out.setdefault(distribution, []).append(point.name)
                continue
            try:
                self._manager.register(point.load(), name=point.name)
                self._distributions[point.name] = distribution
            except Exception as error:
                raise PluginError(
                    f"plugin {point.name!r} of distribution {distribution!r} cannot be loaded: {error!r};"
                    f" fix or uninstall it, or block it by plugins.block"
                ) from error
            self._judge_marks(f"plugin {point.name!r} of distribution {distribution!r}")

        for distribution, names in left_out.items():
            log.warning("plugin not allowed: distribution=%s entry_points=%s", distribution, ",".join(names))

    def _warn_of_misspelt_hooks(self) -> None:
        """Warn of implementations that no hook calls, unless marked with pluggy's `optionalhook`."""
        for hook, caller in vars(self._manager.hook).items():
            if not isinstance(caller, pluggy.HookCaller) or caller.has_spec():
                continue
            for implementation in caller.get_hookimpls():
                if not implementation.optionalhook:
                    near = nearest(hook, [name for name in vars(hookspecs) if name.startswith(f"{GROUP}_")])
                    hint = f"did you mean {near}?" if near else "docs/hooks.md lists all hooks"
                    log.warning("%s: there is no hook %s; %s", self._origin(implementation.plugin_name), hook, hint)

    # ------------------------------------------------------------ calling hooks

    def _ask(self, hook: str, /, **facts: Any) -> Any:
        """Call a hook that provides. What a plugin raises becomes a `PluginError` with the plugin's name."""
        outer = self.faults.running.begin(self._named_asked, (hook, get_ident()))
        try:
            return getattr(self._manager.hook, hook)(**facts)
        except LogkernelError:
            raise
        except Exception as error:
            origin, what = self._raiser(hook, error), f"{type(error).__name__}: {error}"
            self.faults.misbehaved(origin, hook, what, "the object it should provide is not available")
            raise PluginError(
                f"{origin} failed in {hook}: {what}; fix or uninstall it, or block it by plugins.block"
            ) from error
        finally:
            self.faults.running.end(outer)

    def tell(self, hook: str, /, **facts: Any) -> None:
        """Call an event hook in every plugin. What a plugin raises is logged with the plugin's name and kept in
        `faults`."""
        for implementation in reversed(getattr(self._manager.hook, hook).get_hookimpls()):
            origin = self._origin(implementation.plugin_name)
            begun_s = monotonic()
            outer = self.faults.running.begin(tuple, (origin, hook))
            try:
                implementation.function(*[facts[name] for name in implementation.argnames])
            except Exception as error:
                self.faults.raised(origin, hook, error, "ignored, as nothing depends on it")
            finally:
                self.faults.running.end(outer)
            elapsed_ms = (monotonic() - begun_s) * 1000
            if elapsed_ms > SLOW_MS:
                self.faults.took(origin, hook, elapsed_ms)

    def origin_of(self, provided: object) -> Origin:
        """Return the plugin that an object came from, by the module of its class; for logs and errors."""
        module = type(provided).__module__
        best, size = Origin(module, "unknown"), 0
        for name, plugin in self._manager.list_name_plugin():
            home = getattr(plugin, "__name__", None) or type(plugin).__module__
            shared = _shared_parts(module, home)
            if shared > size and shared >= home.count("."):
                best, size = self._origin(name), shared
        return best

    def _origin(self, plugin_name: str) -> Origin:
        distribution = self._distributions.get(plugin_name)
        if distribution is not None:
            return Origin(plugin_name, distribution)
        plugin = self._manager.get_plugin(plugin_name)
        if plugin_name.isdigit():  # pluggy numbers an object that has no name
            plugin_name = type(plugin).__qualname__
        return Origin(plugin_name, "", self._file_of(plugin))

    def _file_of(self, plugin: Any) -> str:
        """Return the file with the first hook of a plugin; the name of its module if the hook is no Python."""
        for caller in self._manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                code = getattr(implementation.function, "__code__", None)
                if implementation.plugin is plugin and code is not None:
                    return str(code.co_filename)
        return type(plugin).__module__

    def _raiser(self, hook: str, error: Exception) -> Origin:
        """Return the plugin whose implementation of the hook raised the error."""
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        return self._among(hook, frames)

    def _named_asked(self, key: tuple[str, int]) -> tuple[Origin, str]:
        """A call of `_ask`, by (hook, thread): whichever plugin's implementation runs there now."""
        hook, thread = key
        frames, frame = [], sys._current_frames().get(thread)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        return self._among(hook, frames), hook

    def _among(self, hook: str, frames: Iterable[FrameType]) -> Origin:
        """Return the plugin whose implementation of the hook one of `frames` runs."""
        codes = {
            getattr(one.function, "__code__", None): one.plugin_name
            for one in getattr(self._manager.hook, hook).get_hookimpls()
        }
        for frame in frames:
            name = codes.get(frame.f_code)
            if name is not None:
                return self._origin(name)
        return Origin("?", "unknown")

    # ------------------------------------------------------------ what plugins provide

    def all_names(self) -> list[tuple[str, str]]:
        """Return (kind, name) of everything that plugins provide."""
        return [row for rows in self._rows("logkernel_names").values() for row in rows]

    def names(self, kind: str) -> list[str]:
        """Return the names that plugins provide for one kind, sorted."""
        return sorted({name for found, name in self.all_names() if found == kind})

    def _provided(self, kind: str, contract: object, name: str, **facts: Any) -> Any:
        """Return what a plugin provides. Raises `PluginError` if none does, if it raises, or returns what does not have
        the methods of its contract."""
        hook = "logkernel_service" if kind == "service" else hookspecs.KINDS[kind]
        found = self._ask(hook, name=name, **facts)
        if found is None:
            known = self.names(kind)
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else "check the name, or install the plugin"
            raise PluginError(f"no plugin provides the {kind} {name!r} (known: {', '.join(known) or 'none'}); {hint}")
        self._check_contract(hook, found, contract, {"name": name, **facts})
        return found

    def _check_contract(self, hook: str, found: Any, contract: object, facts: Mapping[str, Any]) -> None:
        wrong = _why_not(found, contract)
        if wrong is not None:
            raise self._refused(self._returner(hook, facts), hook, f"it returned {found!r:.200}, {wrong}")

    def _returner(self, hook: str, facts: Mapping[str, Any]) -> Origin:
        """Return the plugin that returns an object for these facts, by asking each alone."""
        for implementation in reversed(getattr(self._manager.hook, hook).get_hookimpls()):
            if implementation.function(*[facts[name] for name in implementation.argnames]) is not None:
                return self._origin(implementation.plugin_name)
        return Origin("?", "unknown")

    def _refused(self, origin: Origin, hook: str, what: str) -> PluginError:
        self.faults.misbehaved(origin, hook, what, "it is not used")
        return PluginError(f"{origin} failed in {hook}: {what}; fix or uninstall it, or block it by plugins.block")

    def partitioner(self, name: str, settings: Mapping[str, Any], seed: int) -> Partitioner:
        from logkernel.guards.partitioner import GuardedPartitioner

        found: Partitioner = self._provided("partitioner", Partitioner, name, settings=settings, seed=seed)
        return GuardedPartitioner(found, name, self.faults, partial(self.origin_of, found))

    def interceptor(self, name: str, settings: Mapping[str, Any]) -> Interceptor:
        found: Interceptor = self._provided("interceptor", Interceptor, name, settings=settings)
        return found

    def metrics_reporter(self, name: str, settings: Mapping[str, Any]) -> MetricsReporter:
        found: MetricsReporter = self._provided("metrics reporter", MetricsReporter, name, settings=settings)
        return found

    def connector(self, name: str) -> Connector:
        found: Connector = self._provided("connector", Connector, name)
        return found

    def codec(self, name: str, level: int | None = None) -> Codec:
        """Also raises `PluginError` for a codec that Kafka's batch format does not know, or with a wrong `codec_id`."""
        found: Codec = self._provided("codec", Codec, name, level=level)
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
        from logkernel.guards.election import GuardedElection

        found: ElectionStrategy = self._provided("election", ElectionStrategy, name, settings=settings)
        return GuardedElection(found, name, self.faults, partial(self.origin_of, found))

    def isr(self, name: str, settings: Mapping[str, Any]) -> IsrPolicy:
        from logkernel.guards.isr import GuardedIsr

        found: IsrPolicy = self._provided("isr", IsrPolicy, name, settings=settings)
        return GuardedIsr(found, name, self.faults, partial(self.origin_of, found))

    def placement(self, name: str, settings: Mapping[str, Any]) -> PlacementStrategy:
        from logkernel.guards.placement import GuardedPlacement

        found: PlacementStrategy = self._provided("placement", PlacementStrategy, name, settings=settings)
        return GuardedPlacement(found, name, self.faults, partial(self.origin_of, found))

    def cleanup(self, name: str, settings: Mapping[str, Any]) -> CleanupPolicy:
        from logkernel.guards.cleanup import GuardedPolicy

        found: CleanupPolicy = self._provided("cleanup policy", CleanupPolicy, name, settings=settings)
        return GuardedPolicy(found, name, self.faults, partial(self.origin_of, found))

    def compaction_strategy(self, name: str, settings: Mapping[str, Any]) -> GuardedCompactionStrategy:
        from logkernel.guards.compaction_strategy import GuardedCompactionStrategy

        found: CompactionStrategy = self._provided("compaction strategy", CompactionStrategy, name, settings=settings)
        return GuardedCompactionStrategy(found, name, self.faults, partial(self.origin_of, found))

    def produce_interceptor(self, name: str, settings: Mapping[str, Any]) -> GuardedProduceInterceptor:
        from logkernel.guards.produce_interceptor import GuardedProduceInterceptor

        found: ProduceInterceptor = self._provided("produce interceptor", ProduceInterceptor, name, settings=settings)
        return GuardedProduceInterceptor(found, name, self.faults, partial(self.origin_of, found))

    def fetch_filter(self, name: str, settings: Mapping[str, Any]) -> GuardedFetchFilter:
        from logkernel.guards.fetch_filter import GuardedFetchFilter

        found: FetchFilter = self._provided("fetch filter", FetchFilter, name, settings=settings)
        return GuardedFetchFilter(found, name, self.faults, partial(self.origin_of, found))

    def quota(self, name: str, settings: Mapping[str, Any]) -> GuardedQuota:
        from logkernel.guards.quota import GuardedQuota

        found: Quota = self._provided("quota", Quota, name, settings=settings)
        return GuardedQuota(found, name, self.faults, partial(self.origin_of, found))

    def authorizer(self, name: str, settings: Settings) -> GuardedAuthorizer:
        from logkernel.guards.authorizer import GuardedAuthorizer

        found: Authorizer = self._provided("authorizer", Authorizer, name, settings=settings)
        return GuardedAuthorizer(found, name, self.faults, partial(self.origin_of, found))

    def client_quota_callback(self, name: str, settings: Settings) -> ClientQuotaCallback:
        from logkernel.guards.client_quota_callback import GuardedClientQuotaCallback

        found: ClientQuotaCallback = self._provided(
            "client quota callback", ClientQuotaCallback, name, settings=settings
        )
        return GuardedClientQuotaCallback(found, name, self.faults, partial(self.origin_of, found))

    def password_checker(self, name: str, settings: Settings) -> PasswordChecker:
        from logkernel.guards.password_checker import GuardedPasswordChecker

        found: PasswordChecker = self._provided("password checker", PasswordChecker, name, settings=settings)
        return GuardedPasswordChecker(found, name, self.faults, partial(self.origin_of, found))

    def assignor(self, name: str) -> Assignor:
        from logkernel.guards.assignor import GuardedAssignor

        found: Assignor = self._provided("assignor", Assignor, name)
        return GuardedAssignor(found, name, self.faults, partial(self.origin_of, found))

    def task_assignor(self, name: str) -> GuardedTaskAssignor:
        from logkernel.guards.task_assignor import GuardedTaskAssignor

        found: TaskAssignor = self._provided("task assignor", TaskAssignor, name)
        return GuardedTaskAssignor(found, name, self.faults, partial(self.origin_of, found))

    def transport(self, name: str) -> Transport:
        found: Transport = self._provided("transport", Transport, name)
        return found

    def coordination(
        self, name: str, open_log: Callable[[], StateLog], settings: Settings | None = None
    ) -> Coordination:
        given = settings or {}
        found: Coordination = self._provided("coordination", Coordination, name, open_log=open_log, settings=given)
        return found

    def services(self) -> list[ServiceDeclaration]:
        """Return all declared services; of two with one name, the outside plugin's."""
        found: dict[str, ServiceDeclaration] = {}
        for declarations in reversed(self._rows("logkernel_services").values()):
            for declaration in declarations:
                found.setdefault(declaration.name, declaration)
        return list(found.values())

    def service(self, name: str, settings: Settings, cluster: ClusterView) -> Service:
        found: Service = self._provided("service", Service, name, settings=settings, cluster=cluster)
        return found

    def decoder(self, topic: str) -> RecordDecoder | None:
        """Return the decoder for the records of `topic`, or None if no plugin has one. Raises `PluginError`."""
        found: RecordDecoder | None = self._ask("logkernel_decoder", topic=topic)
        if found is not None:
            self._check_contract("logkernel_decoder", found, RecordDecoder, {"topic": topic})
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
        rows = {hook: self._rows(hook) for hook in ("logkernel_names", "logkernel_settings")}
        for name, _ in reversed(self._manager.list_name_plugin()):
            names, settings = (by_plugin.get(name, ()) for by_plugin in rows.values())
            if names or settings:
                origin = self._origin(name)
                declared = PluginDeclaration(origin.plugin, origin.distribution, names, settings, origin.file)
                _warn_of_names(declared)
                found.append(declared)
        return found

    def _rows(self, hook: str) -> dict[str, tuple[Any, ...]]:
        """Return plugin → the result of its implementation of a hook that describes, in the order of registration.
        Raises `PluginError` with the plugin's name for what is no row of that hook."""
        found, row_type = {}, _ROWS[hook]
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            if implementation.wrapper or implementation.hookwrapper:
                continue
            name = implementation.plugin_name
            origin = self._origin(name)
            outer = self.faults.running.begin(tuple, (origin, hook))
            try:
                rows = found[name] = tuple(implementation.function() or ())
            except Exception as error:
                raise self._refused(origin, hook, f"{type(error).__name__}: {error}") from error
            finally:
                self.faults.running.end(outer)
            wrong = [row for row in rows if not _is_row(row, row_type)]
            if wrong:
                what = "(kind, name)" if row_type is tuple else row_type.__name__
                raise self._refused(origin, hook, f"it returned {wrong[0]!r:.200}, which is no {what}")
        return found


_ROWS: Mapping[str, type] = {
    "logkernel_names": tuple, "logkernel_settings": Setting, "logkernel_services": ServiceDeclaration,
}  # fmt: skip
"""Hook that describes → what its rows are."""


def _is_row(row: Any, row_type: type) -> bool:
    if row_type is tuple:
        return isinstance(row, tuple) and len(row) == 2 and all(isinstance(part, str) for part in row)
    return isinstance(row, row_type)


def _why_not(found: Any, contract: Any) -> str | None:
    """Why an object does not fulfil a contract; None if it has all that the contract names."""
    if isinstance(found, type):
        return f"which is a class; return {found.__name__}()"
    needed = {
        name
        for base in contract.__mro__
        if getattr(base, "_is_protocol", False)
        for name in (*vars(base), *base.__annotations__)
        if not name.startswith("_")
    }
    lacking = sorted(name for name in needed if not hasattr(found, name))
    return f"which lacks {', '.join(lacking)}" if lacking else None
