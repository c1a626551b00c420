"""What one connection tells of the APIs that are served over its listener: ApiVersions (KIP-35, KIP-511).

The transport answers it by itself, so no quota of the broker measures it: who asks without end is held back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from logkernel.contracts import BrokerDoor
from logkernel.errors import UnsupportedVersion

from .api import Row
from .releases import Release

MOST_VERSIONS: Final = 10
"""ApiVersions that a connection is answered at once. Clients ask once or twice."""
VERSIONS_MS: Final = 100
"""How long a connection is held back after each further one."""


class Versions:
    """Of one connection. `release` is the Kafka that the broker looks like."""

    __slots__ = ("_door", "_listener", "_release", "_told")

    def __init__(self, door: BrokerDoor, listener: str, release: Release) -> None:
        self._door = door
        self._listener = listener
        self._release = release
        self._told = 0

    def row(self, key: int) -> Row | None:
        """The API of this key; None where it is not served."""
        found = self._release.rows.get(key)
        return None if found is None or found.request_name not in self._served() else found

    def answer(self, version: int, request: Any, hold_back: Callable[[int], None]) -> Any:
        from .apis.api_versions import answer

        features = self._release.shown(self._door.features())
        response = answer(version, request, self._rows(), features, self._door.features_epoch())
        response.throttle_time_ms = self._count(hold_back)
        return response

    def answer_unknown(self, hold_back: Callable[[int], None]) -> Any:
        """The response, of version 0, to a version that is not known."""
        from .apis.api_versions import listing

        self._count(hold_back)
        return listing(self._rows(), UnsupportedVersion.code)

    def _served(self) -> frozenset[str]:
        return self._door.serves() | self._door.commands(self._listener) | {"ApiVersionsRequest"}

    def _rows(self) -> list[Row]:
        names = self._served()
        return [row for row in self._release.rows.values() if row.request_name in names]

    def _count(self, hold_back: Callable[[int], None]) -> int:
        """Hold back who asks too often; return for how many ms."""
        self._told += 1
        if self._told <= MOST_VERSIONS:
            return 0
        hold_back(VERSIONS_MS)
        return VERSIONS_MS
