"""The guard of `contracts.Assignor`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from logkernel.contracts import Assignor, GroupFacts
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedAssignor(TimedGuard[Assignor]):
    """`contracts.Assignor`."""

    __slots__ = ()
    kind = "assignor"
    may_refuse = False

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        return self._call(
            "the group keeps its assignment, and the member that asked is told UNKNOWN_SERVER_ERROR",
            lambda: _mapping(self.name, self._plugin.assign(group)),
        )


def _mapping(name: str, found: Any) -> Mapping[str, Iterable[tuple[UUID, int]]]:
    if not isinstance(found, Mapping):
        raise PluginError(f"assignor {name} returned {found!r}; return a mapping of member id to its partitions")
    return found
