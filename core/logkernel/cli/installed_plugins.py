"""The plugins of this environment, each loaded alone: one that cannot be loaded is a row, not the end of the list."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from importlib import metadata
from typing import Any

from attrs import define, field, frozen

from logkernel.config.definitions import Setting
from logkernel.errors import PluginError
from logkernel.hookspecs import KINDS
from logkernel.installed import EntryPoint, entry_points
from logkernel.kernel import GROUP, Kernel

KINDS_TOLD = f"Kinds: {', '.join(KINDS)}."
LOADED, BLOCKED, NOT_ALLOWED = "loaded", "blocked", "not allowed"


@define
class InstalledPlugin:
    """An entry point, and what its plugin says of itself. `state` is `LOADED`, `BLOCKED`, `NOT_ALLOWED`, or why it
    cannot be loaded."""

    point: EntryPoint
    version: str
    state: str
    names: tuple[tuple[str, str], ...] = ()
    """(kind, name) of what it provides."""
    settings: tuple[Setting, ...] = ()
    hooks: tuple[str, ...] = ()
    module: Any = field(default=None, repr=False)

    @property
    def is_built_in(self) -> bool:
        return self.point.distribution == GROUP

    def origin_of(self, row: tuple[str, str], all_of_them: Iterable[InstalledPlugin]) -> str:
        """ "built-in" or "outside"; of a built-in whose name an outside plugin has, too, which one replaces it."""
        if not self.is_built_in:
            return "outside"
        for other in all_of_them:
            if not other.is_built_in and row in other.names:
                return f"built-in, replaced by {other.point.name}"
        return "built-in"


@frozen
class Chosen:
    """A topic's setting that chooses a plugin."""

    kind: str
    name: str
    topic: str


def installed(allow: Collection[str] | None = None, block: Sequence[str] = ()) -> list[InstalledPlugin]:
    """All entry points, outside plugins first. Code of plugins that are blocked or not allowed is not imported."""
    points = sorted(entry_points(GROUP), key=lambda point: (point.distribution == GROUP, point.name))
    everything = [point.name for point in points]
    found = []
    for point in points:
        row = InstalledPlugin(point, _version(point.distribution), LOADED)
        if point.name in block:
            row.state = BLOCKED
        elif point.distribution != GROUP and allow is not None and point.distribution not in allow:
            row.state = NOT_ALLOWED
        else:
            _load(row, everything)
        found.append(row)
    return found


def named(word: str, rows: Iterable[InstalledPlugin]) -> list[InstalledPlugin]:
    """The plugins with that entry point, or else those that provide that name or "kind/name"."""
    rows = list(rows)
    exact = [row for row in rows if row.point.name == word]
    kind, slash, name = word.partition("/")
    wanted = (plain_kind(kind), name) if slash else (None, word)
    return exact or [row for row in rows if any(wanted in ((None, one), (of, one)) for of, one in row.names)]


def plain_kind(word: str) -> str:
    """A kind as `logkernel_names` gives it; a command line may write it with hyphens."""
    return word.replace("-", " ").replace("_", " ")


def _load(row: InstalledPlugin, everything: Iterable[str]) -> None:
    try:
        row.module = row.point.load()
        kernel = Kernel(allow=(), block=everything, plugins=[row.module])
        for declared in kernel.declarations():
            row.names, row.settings = declared.names, declared.settings
    except PluginError as error:
        row.state = f"cannot be loaded: {error}"
    except Exception as error:
        row.state = f"cannot be loaded: {type(error).__name__}: {error}"
    else:
        row.hooks = tuple(
            sorted(name for name in dir(row.module) if hasattr(getattr(row.module, name), f"{GROUP}_impl"))
        )


def _version(distribution: str) -> str:
    if distribution == GROUP:
        from logkernel import __version__

        return __version__
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "?"


def module_of(word: str) -> Any:
    """A module of the working directory or of `sys.path` by its dotted name. Raises `PluginError`."""
    from importlib import import_module

    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return import_module(word)
    except ImportError as error:
        raise PluginError(f"{word}: cannot be imported: {error}; name a module, or a kind and a name") from error
