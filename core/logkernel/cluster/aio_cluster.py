"""The asyncio twin of `Cluster`: `async with await logkernel.aio.open_cluster(brokers=3) as cluster:`.

Calls that wait run in a worker thread, one at a time; the brokers run in the cluster's own thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from logkernel.client.aio_twin import AsyncTwin
from logkernel.cluster import cluster as blocking
from logkernel.cluster.snapshot import ClusterSnapshot


class AsyncCluster(AsyncTwin):
    """A `Cluster` whose methods are awaited; they do what its methods do. Its clients use no sockets."""

    def __init__(self, cluster: blocking.Cluster) -> None:
        super().__init__(cluster.kernel)
        self._cluster = cluster

    async def close(self) -> None:
        """Stop every broker cleanly; may be called twice."""
        if not self._cluster.closed:
            await self._close_with(self._cluster.close)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        from logkernel.client.drivers.loop_driver import AsyncEmbeddedDriver

        return AsyncEmbeddedDriver(machine, values, self._cluster.host, asyncio.to_thread)

    # ------------------------------------------------------------ brokers

    @property
    def brokers(self) -> dict[int, str]:
        """Node id → "running", "paused", "stopped" or "killed"."""
        return self._cluster.brokers

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port,…" of the brokers. Raises `LogkernelError` if they don't listen."""
        return self._cluster.bootstrap_servers

    async def kill(self, node: int) -> None:
        await self._call(self._cluster.kill, node)

    async def stop(self, node: int) -> None:
        await self._call(self._cluster.stop, node)

    async def start(self, node: int) -> None:
        await self._call(self._cluster.start, node)

    async def pause(self, node: int) -> None:
        await self._call(self._cluster.pause, node)

    async def resume(self, node: int) -> None:
        await self._call(self._cluster.resume, node)

    async def cut(self, one: Collection[int], other: Collection[int], *, both_ways: bool = True) -> None:
        await self._call(self._cluster.cut, one, other, both_ways=both_ways)

    async def heal(self) -> None:
        await self._call(self._cluster.heal)

    async def save(self) -> ClusterSnapshot:
        return await self._call(self._cluster.save)

    async def restore(self, snapshot: ClusterSnapshot, timeout_ms: int = 30_000) -> None:
        await self._call(self._cluster.restore, snapshot, timeout_ms)

    # ------------------------------------------------------------ topics

    async def create_topic(self, name: str, partitions: int = -1, replication_factor: int = -1, **given: Any) -> None:
        await self._call(self._cluster.create_topic, name, partitions, replication_factor, **given)

    async def delete_topic(self, name: str) -> None:
        await self._call(self._cluster.delete_topic, name)

    async def controller(self) -> int | None:
        return await self._call(self._cluster.controller)

    async def leader(self, topic: str, partition: int = 0) -> int | None:
        return await self._call(self._cluster.leader, topic, partition)

    async def isr(self, topic: str, partition: int = 0) -> list[int]:
        return await self._call(self._cluster.isr, topic, partition)

    async def replicas(self, topic: str, partition: int = 0) -> list[int]:
        return await self._call(self._cluster.replicas, topic, partition)

    async def wait_for_isr(self, topic: str, partition: int, count: int, timeout_ms: int = 30_000) -> None:
        await self._call(self._cluster.wait_for_isr, topic, partition, count, timeout_ms)

    async def wait_for_leader(
        self, topic: str, partition: int = 0, *, other_than: int | None = None, timeout_ms: int = 30_000
    ) -> int:
        return await self._call(
            self._cluster.wait_for_leader, topic, partition, other_than=other_than, timeout_ms=timeout_ms
        )

    async def topics(self) -> dict[str, int]:
        return await self._call(self._cluster.topics)

    async def move_leader(
        self, topic: str, partition: int = 0, *, to: int | None = None, timeout_ms: int = 30_000
    ) -> int:
        return await self._call(self._cluster.move_leader, topic, partition, to=to, timeout_ms=timeout_ms)


async def open_cluster(brokers: int = 3, path: str | Path | None = None, **given: Any) -> AsyncCluster:
    """As `logkernel.open_cluster`, awaited."""
    return AsyncCluster(await asyncio.to_thread(blocking.open_cluster, brokers, path, **given))
