"""The guard of `contracts.Partitioner`."""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.contracts import Partitioner
from logkernel.errors import LogkernelError, PluginError
from logkernel.guards.guard import Guard


class GuardedPartitioner(Guard[Partitioner]):
    """`contracts.Partitioner`. It is asked for each record, so it is not timed; its errors come to the caller at once,
    so they are not noted."""

    __slots__ = ()
    kind = "partitioner"

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        try:
            return self._plugin.partition(key, value, partitions, available)
        except LogkernelError:
            raise
        except Exception as error:
            raise self._failed(error, "the record is not sent: fix the plugin, or name a partition") from error

    def on_batch_full(self, partition: int) -> None:
        try:
            self._plugin.on_batch_full(partition)
        except LogkernelError:
            raise
        except Exception as error:
            raise self._failed(error, "fix or block the plugin") from error

    def _failed(self, error: Exception, remedy: str) -> PluginError:
        return PluginError(f"{self._origin()} failed in {self._place}: {type(error).__name__}: {error}; {remedy}")
