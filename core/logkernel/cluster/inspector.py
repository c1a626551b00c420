"""What the brokers of one process know of their cluster at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkernel.cluster.managed_broker import ManagedBroker
from logkernel.errors import LogkernelError, UnknownTopicOrPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.controller.image import ClusterImage, Partition


class NoBrokerRuns(LogkernelError):
    """No broker of the cluster can say what there is; start one."""


class Inspector:
    """Reads brokers, and changes nothing. Call its methods on the brokers' thread: by `Cluster.run`."""

    def __init__(self, managed: Mapping[int, ManagedBroker]) -> None:
        self._managed = managed

    # ------------------------------------------------------------ brokers

    def running(self) -> list[Broker]:
        """The brokers that run."""
        return [
            managed.broker for managed in self._managed.values()
            if managed.broker is not None and managed.state == "running"
        ]  # fmt: skip

    def broker(self, node: int) -> Broker | None:
        """A broker, None while it does not run."""
        return self._managed[node].broker

    def is_formed(self) -> bool:
        """Whether every broker that runs knows all that run, and the controller."""
        running = {node for node, managed in self._managed.items() if managed.state == "running"}
        return all(
            broker.cluster.controller_id in running and running <= set(broker.metadata.image.nodes)
            for broker in self.running()
        )

    def image(self) -> ClusterImage | None:
        """The image of the active controller; None while there is none."""
        for broker in self.running():
            if broker.governance.is_controller:
                return broker.governance.image
        return None

    # ------------------------------------------------------------ topics

    def topics(self) -> dict[str, int]:
        """Topic name → number of partitions, without internal topics. Raises `NoBrokerRuns`."""
        image = self.image() or next((broker.cluster for broker in self.running()), None)
        if image is None:
            raise NoBrokerRuns("no broker of this cluster runs; start one")
        return {name: len(row.partitions) for name, row in sorted(image.topics.items()) if not row.internal}

    def partition(self, topic: str, partition: int) -> Partition:
        """What the controller knows of a partition. Raises `UnknownTopicOrPartition`."""
        image = self.image()
        found = image.topics.get(topic) if image is not None else None
        if found is None or not 0 <= partition < len(found.partitions):
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{partition}; create it first")
        return found.partitions[partition]

    def ready(self, topic: str, partition: int) -> list[int]:
        """The nodes that run and are in sync, in the order of the assignment."""
        row = self.partition(topic, partition)
        return [node for node in row.replicas if node in row.isr and self._managed[node].state == "running"]

    def in_sync(self) -> dict[tuple[str, int], set[int]]:
        """Every partition → the nodes that are in sync; nothing while there is no controller."""
        image = self.image()
        topics = {} if image is None else image.topics
        return {
            (name, index): set(row.isr) for name, topic in topics.items() for index, row in enumerate(topic.partitions)
        }

    # ------------------------------------------------------------ who leads

    def leaders(self) -> dict[tuple[str, int], int]:
        """Every partition → the node that leads it, -1 for none; nothing while there is no controller."""
        image = self.image()
        topics = {} if image is None else image.topics
        return {
            (name, index): row.leader for name, topic in topics.items() for index, row in enumerate(topic.partitions)
        }

    def leading_broker(self, topic: str, partition: int) -> Broker | None:
        """The broker that leads the partition and is ready to; None while there is none. Raises
        `UnknownTopicOrPartition`."""
        if self.image() is None:
            return None
        row = self.partition(topic, partition)
        managed = self._managed.get(row.leader)
        if managed is None or managed.state != "running" or managed.broker is None:
            return None
        replica = managed.broker.replicas.led.get((topic, partition))
        return managed.broker if replica is not None and replica.leader.leader_epoch == row.leader_epoch else None

    def is_led(self, topic: str) -> bool:
        """Whether every broker that runs knows the leaders of a topic, and these lead."""
        for broker in self.running():
            found = broker.cluster.topics.get(topic)
            if found is None or any(row.leader < 0 for row in found.partitions):
                return False
            for index, row in enumerate(found.partitions):
                if row.leader == broker.runtime.node_id and (topic, index) not in broker.replicas.led:
                    return False
        return True

    def is_replicated(self) -> bool:
        """Whether each partition is led that can be, and all that is written is committed."""
        image = self.image()
        if image is None:
            return False
        running = {broker.runtime.node_id for broker in self.running()}
        names = [
            (name, index)
            for name, topic in image.topics.items()
            for index, row in enumerate(topic.partitions)
            if row.leader in running
        ]
        return all(self.leading_broker(*name) is not None for name in names) and all(
            replica.leader.high_watermark >= replica.log.end_offset
            for broker in self.running()
            for replica in broker.replicas.led.values()
        )
