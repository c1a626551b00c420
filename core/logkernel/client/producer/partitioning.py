"""Which partition a record goes to, one `Partitioning` a topic.

the record names one                 there
a partitioner (setting, or topic's)  as it says
a key (unless partitioner.ignore.keys)   murmur2(key) % partitions
no key                               the sticky partition: left after batch.size bytes, and the next is drawn with
                                     a weight that falls with the length of its queue (KIP-480, KIP-794)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from logkernel.client.cluster.metadata import TopicInfo
from logkernel.client.producer.accumulator import Queue
from logkernel.client.producer.sender import Sender
from logkernel.contracts import Partitioner
from logkernel.errors import InvalidPartitions, no_partition
from logkernel.record import loops

murmur2 = loops.murmur2


class FunctionPartitioner:
    """A plain function as a partitioner."""

    def __init__(self, function: Callable[..., int]) -> None:
        self._function = function

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        return self._function(key, value, partitions, available)

    def on_batch_full(self, partition: int) -> None:
        """A function keeps no state."""


def make_partitioner(given: Any, by_name: Callable[[str, int], Partitioner], seed: int) -> Partitioner:
    """The partitioner that the setting `partitioner.class` means: a name, a class, an object, or a function."""
    if isinstance(given, str):
        return by_name(given, seed)
    made = given() if isinstance(given, type) else given
    if isinstance(made, Partitioner):
        return made
    if hasattr(made, "partition"):
        return FunctionPartitioner(made.partition)
    if callable(made):
        return FunctionPartitioner(made)
    raise TypeError(f"partitioner.class={given!r} is not supported; give a name, a class or a function")


class Partitioning:
    """Chooses the partition of each record of one topic. Made again when the number of partitions changes."""

    __slots__ = ("_adaptive", "_info", "_produced", "_random", "_sender", "_wait_ms", "count", "keyed", "partitioner",
                 "queues", "route", "sticky", "topic")  # fmt: skip

    def __init__(
        self,
        info: TopicInfo,
        sender: Sender,
        settings: Mapping[str, Any],
        partitioner: Partitioner | None,
        random: Random,
        now_ms: int,
    ) -> None:
        self.topic = info.name
        self.count = len(info.leaders)
        self.partitioner = partitioner
        self.keyed = not settings["partitioner.ignore.keys"]
        """Whether keys choose the partition."""
        self._info = info
        self._sender = sender
        self._random = random
        self._adaptive: bool = settings["partitioner.adaptive.partitioning.enable"]
        self._wait_ms: int = settings["partitioner.availability.timeout.ms"]
        self._produced = 0
        self.queues = [sender.accumulator.queue(info.name, index) for index in range(self.count)]
        for queue in self.queues:
            queue.on_closed = self._on_closed
        self.sticky = self.queues[self._draw()]
        self.route = loops.Route()
        """The same, as the compiled `send` reads it."""
        self.route.keyed = self.keyed
        self.route.lanes = [queue.lane for queue in self.queues]
        self.route.sticky = self.sticky.lane

    def choose(self, key: bytes | None, value: bytes | None) -> Queue:
        partitioner = self.partitioner
        if partitioner is not None:
            index = partitioner.partition(key, value, self.count, self._info.available)
            if not 0 <= index < self.count:
                raise InvalidPartitions(f"the partitioner chose {index}: {no_partition(self.topic, index, self.count)}")
            return self.queues[index]
        if key is None or not self.keyed:
            return self.sticky
        return self.queues[(murmur2(key) & 0x7FFFFFFF) % self.count]

    def explicit(self, partition: int) -> Queue:
        if not 0 <= partition < self.count:
            raise InvalidPartitions(no_partition(self.topic, partition, self.count))
        return self.queues[partition]

    def _on_closed(self, queue: Queue, size: int) -> None:
        if self.partitioner is not None:
            self.partitioner.on_batch_full(queue.partition)
        elif queue is self.sticky:
            self._produced += size
            if self._produced >= self._sender.accumulator.batch_bytes * 0.9:
                self._produced = 0
                self.sticky = self.queues[self._draw()]
                self.route.sticky = self.sticky.lane

    def _draw(self) -> int:
        """A partition among those with a leader; a long queue makes it less likely, a stuck broker rules it out."""
        if self.count == 1:
            return 0
        among = self._info.available or range(self.count)
        if self._wait_ms > 0:
            among = [index for index in among if not self._stuck(index)] or among
        if not self._adaptive or len(among) < 2:
            return self._random.choice(among)
        lengths = [len(self.queues[index].batches) for index in among]
        longest = max(lengths)
        return self._random.choices(among, [longest + 1 - length for length in lengths])[0]

    def _stuck(self, index: int) -> bool:
        sender = self._sender
        node = self._info.leaders[index] if index < len(self._info.leaders) else -1
        ready_ms, drained_ms = sender.node_ready_ms.get(node, 0), sender.node_drained_ms.get(node, 0)
        return ready_ms - drained_ms > self._wait_ms
