"""Tells a client quota callback who leads what, as Kafka does by `updateClusterMetadata` (KIP-257).

Kafka calls it for each UpdateMetadata. What a call costs grows with the cluster, and orders come in swarms when a
broker goes. So what came meanwhile is told at once, and so late that no more than `SHARE` of the thread's time goes
into it, however long the callback takes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from logkernel.broker.runtime import Runtime
from logkernel.contracts import ClusterFacts, LedPartition
from logkernel.controller.image import ClusterImage
from logkernel.guards.client_quota_callback import GuardedClientQuotaCallback

REST_MS: Final = 100
"""Least time between two calls."""
SHARE: Final = 0.05


class ClusterNews:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        image: ClusterImage,
        callback: GuardedClientQuotaCallback,
        limits_changed: Callable[[], None],
    ) -> None:
        """`limits_changed` is called when the callback says so."""
        self._runtime = runtime
        self._image = image
        self._callback = callback
        self._limits_changed = limits_changed
        self._not_before_ms = 0
        self._will_tell = False

    def changed(self) -> None:
        """The image may be another now."""
        wait_ms = self._not_before_ms - self._runtime.clock.mono_ms()
        if wait_ms <= 0:
            self._tell()
        elif not self._will_tell:
            self._will_tell = True
            self._runtime.after(wait_ms, self._tell)

    def _tell(self) -> None:
        self._will_tell = False
        clock = self._runtime.clock
        begun_ns = clock.mono_ns()
        changed = self._callback.update_cluster_metadata(facts_of(self._image, self._runtime.node_id))
        took_ms = (clock.mono_ns() - begun_ns) // 1_000_000
        self._not_before_ms = clock.mono_ms() + max(REST_MS, round(took_ms / SHARE))
        if changed:
            self._limits_changed()


def facts_of(image: ClusterImage, node_id: int) -> ClusterFacts:
    """The cluster as broker `node_id` knows it."""
    topics = {
        name: tuple(LedPartition(row.leader, row.replicas, row.isr) for row in topic.partitions)
        for name, topic in image.topics.items()
    }
    internal = frozenset(name for name, topic in image.topics.items() if topic.internal)
    return ClusterFacts(
        image.cluster_id, node_id, frozenset((node_id, *image.nodes)), MappingProxyType(topics), internal
    )
