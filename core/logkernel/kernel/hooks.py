"""Calls the hooks of the loaded plugins: what one raises, or returns wrongly, is told with the plugin's name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from threading import get_ident
from time import monotonic
from types import FrameType
from typing import Any

from logkernel.config.definitions import Setting
from logkernel.contracts import ServiceDeclaration
from logkernel.errors import LogkernelError, PluginError
from logkernel.kernel.loaded import LoadedPlugins
from logkernel.plugin_faults import SLOW_MS, Origin, PluginFaults


class Hooks:
    """A method for each of the three sorts of hooks (see `hookspecs`). `faults` notes what plugins do wrong."""

    def __init__(self, plugins: LoadedPlugins, faults: PluginFaults) -> None:
        self._plugins = plugins
        self._faults = faults

    def ask(self, hook: str, /, **facts: Any) -> Any:
        """Call a hook that provides. What a plugin raises becomes a `PluginError` with the plugin's name."""
        outer = self._faults.running.begin(self._named_asked, (hook, get_ident()))
        try:
            return self._plugins.caller(hook)(**facts)
        except LogkernelError:
            raise
        except Exception as error:
            origin, what = self._raiser(hook, error), f"{type(error).__name__}: {error}"
            self._faults.misbehaved(origin, hook, what, "the object it should provide is not available")
            raise PluginError(
                f"{origin} failed in {hook}: {what}; fix or uninstall it, or block it by plugins.block"
            ) from error
        finally:
            self._faults.running.end(outer)

    def tell(self, hook: str, /, **facts: Any) -> None:
        """Call an event hook in every plugin. What a plugin raises is logged with the plugin's name and kept in
        `PluginFaults`."""
        for implementation in reversed(self._plugins.caller(hook).get_hookimpls()):
            origin = self._plugins.origin(implementation.plugin_name)
            begun_s, told_ms = monotonic(), self._faults.told_ms
            outer = self._faults.running.begin(tuple, (origin, hook))
            try:
                implementation.function(*[facts[name] for name in implementation.argnames])
            except Exception as error:
                self._faults.raised(origin, hook, error, "ignored, as nothing depends on it")
            finally:
                self._faults.running.end(outer)
            elapsed_ms = (monotonic() - begun_s) * 1000
            if elapsed_ms > SLOW_MS:
                self._faults.took(origin, hook, elapsed_ms, told_ms)

    def describe(self, hook: str) -> dict[str, tuple[Any, ...]]:
        """Return plugin → the result of its implementation of a hook that describes, in the order of registration.
        Raises `PluginError` with the plugin's name for what is no row of that hook."""
        found: dict[str, tuple[Any, ...]] = {}
        row_type = _ROWS[hook]
        for implementation in self._plugins.caller(hook).get_hookimpls():
            if implementation.wrapper or implementation.hookwrapper:
                continue
            name = implementation.plugin_name
            origin = self._plugins.origin(name)
            outer = self._faults.running.begin(tuple, (origin, hook))
            try:
                answer: Any = implementation.function()
                rows = found[name] = tuple(answer or ())
            except Exception as error:
                raise self._refused(origin, hook, f"{type(error).__name__}: {error}") from error
            finally:
                self._faults.running.end(outer)
            wrong = [row for row in rows if not _is_row(row, row_type)]
            if wrong:
                what = "(kind, name)" if row_type is tuple else row_type.__name__
                raise self._refused(origin, hook, f"it returned {wrong[0]!r:.200}, which is no {what}")
        return found

    def check_contract(self, hook: str, found: Any, contract: object, facts: Mapping[str, Any]) -> None:
        wrong = _why_not(found, contract)
        if wrong is not None:
            raise self._refused(self._returner(hook, facts), hook, f"it returned {found!r:.200}, {wrong}")

    def _returner(self, hook: str, facts: Mapping[str, Any]) -> Origin:
        """Return the plugin that returns an object for these facts, by asking each alone."""
        for implementation in reversed(self._plugins.caller(hook).get_hookimpls()):
            if implementation.function(*[facts[name] for name in implementation.argnames]) is not None:
                return self._plugins.origin(implementation.plugin_name)
        return Origin("?", "unknown")

    def _refused(self, origin: Origin, hook: str, what: str) -> PluginError:
        self._faults.misbehaved(origin, hook, what, "it is not used")
        return PluginError(f"{origin} failed in {hook}: {what}; fix or uninstall it, or block it by plugins.block")

    def _raiser(self, hook: str, error: Exception) -> Origin:
        """Return the plugin whose implementation of the hook raised the error."""
        frames, trace = [], error.__traceback__
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        return self._among(hook, frames)

    def _named_asked(self, key: tuple[str, int]) -> tuple[Origin, str]:
        """A call of `ask`, by (hook, thread): whichever plugin's implementation runs there now."""
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
            for one in self._plugins.caller(hook).get_hookimpls()
        }
        for frame in frames:
            name = codes.get(frame.f_code)
            if name is not None:
                return self._plugins.origin(name)
        return Origin("?", "unknown")


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
