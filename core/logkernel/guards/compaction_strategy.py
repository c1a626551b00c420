"""The guard of `contracts.CompactionStrategy`."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from logkernel.contracts import BatchView, CompactionStrategy
from logkernel.errors import LogkernelError, PluginError
from logkernel.guards.guard import Guard
from logkernel.plugin_faults import Origin, PluginFaults

VERSION_BYTES = 8


class GuardedCompactionStrategy(Guard[CompactionStrategy]):
    """`contracts.CompactionStrategy`. Asked by a worker thread, so it is not timed, and the cleaner notes what it
    raises; its plugin is looked up before."""

    __slots__ = ()
    kind = "compaction strategy"

    def __init__(
        self, plugin: CompactionStrategy, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        known = origin()
        super().__init__(plugin, name, faults, lambda: known)

    def versions(self, batch: BatchView) -> bytes:
        """Return int64s in native order."""
        try:
            answer: Any = self._plugin.versions(batch)
            found = answer if isinstance(answer, bytes) else array("q", answer).tobytes()
        except LogkernelError:
            raise
        except Exception as error:
            raise PluginError(
                f"{self._origin()} failed in {self._place}: {type(error).__name__}: {error}; the log is not compacted"
            ) from error
        if len(found) != VERSION_BYTES * batch.count:
            raise PluginError(
                f"{self._origin()}: {self._place} returned {len(found) / VERSION_BYTES:g} versions for the"
                f" {batch.count} records from offset {batch.base_offset}; return one for each"
            )
        return found
