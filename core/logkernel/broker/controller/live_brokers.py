"""The brokers that elections count with."""

from __future__ import annotations

from collections.abc import Mapping

from logkernel.broker.controller.view import NO_EPOCH
from logkernel.controller.image import NO_LEADER, ClusterImage
from logkernel.errors import StaleBrokerEpoch


class LiveBrokers:
    """Begins with those that the last controller counted with: `compare` then tells who came and went meanwhile."""

    def __init__(self, image: ClusterImage) -> None:
        self.epochs = counted_with(image)
        """Node id → broker epoch; read-only."""
        self.leaving: set[int] = set()
        """Those that said that they are about to stop; read-only."""

    @property
    def eligible(self) -> Mapping[int, int]:
        """Those that may lead and join in-sync replicas: node id → broker epoch of the live ones that stay."""
        return {node: epoch for node, epoch in self.epochs.items() if node not in self.leaving}

    def check(self, node: int, broker_epoch: int) -> None:
        """Raises `StaleBrokerEpoch` for a broker that is away, or was started again since it sent that."""
        known = self.epochs.get(node)
        if known is None or (broker_epoch != NO_EPOCH and broker_epoch != known):
            raise StaleBrokerEpoch(f"broker {node} is registered with epoch {known}, not {broker_epoch}")

    def compare(self, registered: Mapping[int, int]) -> tuple[list[int], list[int]]:
        """Return (ids of brokers that left, ids of brokers that registered). A broker that was started again is in
        both."""
        gone = [node for node, epoch in self.epochs.items() if registered.get(node) != epoch]
        came = [node for node, epoch in registered.items() if self.epochs.get(node) != epoch]
        return gone, came

    def came(self, node: int, broker_epoch: int) -> None:
        self.epochs[node] = broker_epoch

    def gone(self, node: int) -> None:
        del self.epochs[node]
        self.leaving.discard(node)

    def leaves(self, node: int) -> None:
        self.leaving.add(node)

    def begin_anew(self, image: ClusterImage) -> None:
        """Count with those again that the last election that was kept counted with."""
        self.epochs = counted_with(image)


def counted_with(image: ClusterImage) -> dict[int, int]:
    """Node id → broker epoch of those that elections counted with, and of those that lead or are in sync without that
    (`NO_EPOCH`): facts that were kept before there was a cluster."""
    found = dict(image.incarnations)
    for topic in image.topics.values():
        for row in topic.partitions:
            for node in (row.leader, *row.isr):
                if node != NO_LEADER:
                    found.setdefault(node, NO_EPOCH)
    return found
