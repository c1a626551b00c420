"""The plugins that a topic names in a list, such as `produce.interceptors`, in their order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from logkernel.errors import PluginError, UnknownServerError

log = logging.getLogger("logkernel.replica")

T = TypeVar("T")


class Chain(Generic[T]):
    """Objects of plugins. `made_for`: the settings that chose them."""

    __slots__ = ("_found", "_missing", "made_for")

    def __init__(
        self,
        names: Sequence[str],
        settings: Mapping[str, Any],
        provide: Callable[[str, Mapping[str, Any]], T],
        name: object,
        consequence: str,
    ) -> None:
        """`provide` is the kernel's method; `name`, of what, and `consequence` of a missing plugin, are for the log."""
        self.made_for = (names, settings)
        self._found: list[T] = []
        self._missing: PluginError | None = None
        for each in names:
            try:
                self._found.append(provide(each, settings))
            except PluginError as error:
                log.error("%s: %s %s", consequence, name, error)
                self._missing = error

    def all(self) -> list[T]:
        """Raises `UnknownServerError` if one of them is missing: what it guards must not be passed by."""
        if self._missing is not None:
            raise UnknownServerError(str(self._missing))
        return self._found
