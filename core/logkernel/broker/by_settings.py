"""Objects of plugins that decide by facts alone, such as an election: topics with equal settings share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MOST_KEPT = 64
"""Objects that are kept of one name; more are made anew when they are needed."""


class BySettings(Generic[T]):
    def __init__(self, provide: Callable[[str, Mapping[str, Any]], T]) -> None:
        """`provide` is the kernel's method."""
        self._provide = provide
        self._kept: dict[str, list[tuple[Mapping[str, Any], T]]] = {}

    def get(self, name: str, settings: Mapping[str, Any]) -> T:
        """Return the object of that name for a topic with these plugin-owned settings. Raises `PluginError`."""
        kept = self._kept.setdefault(name, [])
        for known, found in kept:
            if known is settings or known == settings:
                return found
        made = self._provide(name, settings)
        if len(kept) == MOST_KEPT:
            del kept[0]
        kept.append((settings, made))
        return made
