"""The plugins that one kernel has loaded: found, judged, registered; and which of them something is from."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from importlib import import_module
from inspect import getattr_static, isroutine
from types import ModuleType
from typing import Any, Final

import pluggy

from logkernel import hookspecs
from logkernel.config.nearest import nearest
from logkernel.errors import PluginError
from logkernel.installed import EntryPoint, entry_points
from logkernel.plugin_faults import Origin

GROUP: Final = "logkernel"
HOOKS: Final = tuple(name for name in vars(hookspecs) if name.startswith(f"{GROUP}_"))

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


class LoadedPlugins:
    """Loads the built-in and installed plugins, then `plugins`. Arguments and errors are those of `Kernel`."""

    def __init__(self, allow: Collection[str] | None, block: Iterable[str], plugins: Iterable[object]) -> None:
        self._manager = _PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._distributions: dict[str, str] = {}
        """Entry point → distribution."""
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
        for name in self._manager.take_unmarked():
            if name in HOOKS:
                raise PluginError(f"{plugin}: function {name} isn't marked; decorate it with @logkernel.hookimpl")
            near = nearest(name.removeprefix(f"{GROUP}_"), [hook.removeprefix(f"{GROUP}_") for hook in HOOKS])
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
                    near = nearest(hook, HOOKS)
                    hint = f"did you mean {near}?" if near else "docs/hooks.md lists all hooks"
                    log.warning("%s: there is no hook %s; %s", self.origin(implementation.plugin_name), hook, hint)

    # ------------------------------------------------------------ questions

    def names(self) -> list[str]:
        """Return the names of all plugins, in the order of registration."""
        return [name for name, _ in self._manager.list_name_plugin()]

    def caller(self, hook: str) -> pluggy.HookCaller:
        """Return what calls the implementations of a hook; it has them in the order of registration."""
        found: pluggy.HookCaller = getattr(self._manager.hook, hook)
        return found

    def origin_of(self, provided: object) -> Origin:
        """Return the plugin that an object came from, by the module of its class; for logs and errors."""
        module = type(provided).__module__
        best, size = Origin(module, "unknown"), 0
        for name, plugin in self._manager.list_name_plugin():
            home = getattr(plugin, "__name__", None) or type(plugin).__module__
            shared = _shared_parts(module, home)
            if shared > size and shared >= home.count("."):
                best, size = self.origin(name), shared
        return best

    def origin(self, plugin_name: str) -> Origin:
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
