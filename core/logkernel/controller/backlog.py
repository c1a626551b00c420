"""What one broker has not confirmed yet, and the part of it that one request carries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.controller.image import ClusterImage, Topic
from logkernel.requests.replication import BEING_DELETED, Order

MAX_PARTITIONS: Final = 1_000
"""Maximum partitions of one request. UpdateMetadata never splits a topic, as brokers derive its partition count."""
REFUSED_MS: Final = 1_000
"""Time before a partition is sent again that a broker refused."""

Name = tuple[str, int]
"""(topic, partition)."""
K = TypeVar("K")
V = TypeVar("V")


@mutable
class Payload:
    """One request, and the part of the backlog that it carries."""

    request: Order
    version: int | None = None
    """Version of the live brokers that the request carries, if it is 1."""
    forgotten: dict[UUID, Topic] = field(factory=dict)
    quieted: dict[Name, None] = field(factory=dict)
    stopped: dict[Name, int] = field(factory=dict)
    ordered: dict[Name, bool] = field(factory=dict)
    changed: dict[str, set[int]] = field(factory=dict)


@mutable
class Backlog:
    """What one broker, in one broker epoch, has not confirmed yet."""

    broker_epoch: int
    version: int = -1
    """Version of the live brokers that it confirmed."""
    forget: dict[UUID, Topic] = field(factory=dict)
    quiet: dict[Name, None] = field(factory=dict)
    stops: dict[Name, int] = field(factory=dict)
    """Partition whose replica is to be deleted → its leader epoch; `BEING_DELETED` if its topic is deleted."""
    orders: dict[Name, bool] = field(factory=dict)
    """Partition → whether the replica is new: this broker never had a log of it."""
    changed: dict[str, set[int]] = field(factory=dict)
    stopping: set[Name] = field(factory=set)
    """All of `quiet` and `stops`, be they waiting, in flight or deferred; these get no LeaderAndIsr before."""
    inconsistent: set[Name] = field(factory=set)
    """Partitions of which it had a log of an earlier topic, and was told to delete it."""
    under_way: Payload | None = None
    not_before_ms: int = 0
    """Monotonic ms before which nothing is sent."""
    deferred: Payload | None = None
    """What the broker refused."""
    deferred_until_ms: int = 0

    # ------------------------------------------------------------ questions

    def has_orders(self) -> bool:
        return any(name not in self.stopping for name in self.orders)

    def has_something(self, version: int) -> bool:
        some = self.version != version or self.forget or self.quiet or self.stops or self.changed
        return bool(some) or self.has_orders()

    def is_idle(self, version: int) -> bool:
        return self.under_way is None and self.deferred is None and not self.has_something(version) and not self.orders

    # ------------------------------------------------------------ additions

    def change(self, topic: str, indexes: Iterable[int]) -> None:
        self.changed.setdefault(topic, set()).update(indexes)

    def order(self, name: Name, *, is_new: bool) -> None:
        self.orders[name] = is_new or self.orders.get(name, False)
        self._undefer(name)

    def _undefer(self, name: Name) -> None:
        if self.deferred is not None:
            self.deferred.ordered.pop(name, None)

    def stop(self, name: Name, leader_epoch: int) -> None:
        self.orders.pop(name, None)
        self._undefer(name)
        self.stops[name] = leader_epoch
        self.stopping.add(name)

    def keep(self, name: Name) -> None:
        """Take back a `stop`: the partition is assigned to this broker again."""
        if self.stops.get(name, BEING_DELETED) != BEING_DELETED:
            del self.stops[name]
            self.stopping.discard(name)

    def delete(self, topic: Topic, held: Iterable[int]) -> None:
        self.changed.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            name = (topic.name, index)
            self.orders.pop(name, None)
            self._undefer(name)
            self.inconsistent.discard(name)
        self.forget[topic.id] = topic
        for index in held:
            name = (topic.name, index)
            self.stops.pop(name, None)
            self.quiet[name] = None
            self.stopping.add(name)

    # ------------------------------------------------------------ what a request takes

    def take_forgotten(self) -> dict[UUID, Topic]:
        return _take(self.forget, 1)

    def take_quiet(self) -> dict[Name, None]:
        return _take(self.quiet, MAX_PARTITIONS)

    def take_stops(self) -> dict[Name, int]:
        return _take(self.stops, MAX_PARTITIONS)

    def take_changed(self) -> dict[str, set[int]]:
        """Take out whole topics, until they have `MAX_PARTITIONS` partitions."""
        taken: dict[str, set[int]] = {}
        count = 0
        while self.changed and count < MAX_PARTITIONS:
            topic = next(iter(self.changed))
            taken[topic] = self.changed.pop(topic)
            count += len(taken[topic])
        return taken

    def take_orders(self) -> dict[Name, bool]:
        taken = {}
        for name in self.orders:
            if name not in self.stopping:
                taken[name] = self.orders[name]
                if len(taken) == MAX_PARTITIONS:
                    break
        for name in taken:
            del self.orders[name]
        return taken

    # ------------------------------------------------------------ what comes back

    def put_back(self, node: int, payload: Payload, image: ClusterImage) -> None:
        """Put back what `node` did not confirm, except for what is obsolete by now."""
        self.forget = payload.forgotten | self.forget
        self.quiet = payload.quieted | self.quiet
        for name, leader_epoch in payload.stopped.items():
            if leader_epoch != BEING_DELETED and image.has_replica(node, *name):
                self.stopping.discard(name)  # it was assigned to the broker again meanwhile
            elif name not in self.quiet:
                self.stops.setdefault(name, leader_epoch)
        for name, is_new in payload.ordered.items():
            if image.has_replica(node, *name) and name not in self.stopping:
                self.order(name, is_new=is_new)
        for topic, indexes in payload.changed.items():
            found = image.topics.get(topic)
            if found is not None:
                self.change(topic, (index for index in indexes if index < len(found.partitions)))

    def defer(self, refused: Payload, mono_ms: int) -> None:
        """Put back what the broker refused, to be sent again after `REFUSED_MS`."""
        if self.deferred is None:
            self.deferred, self.deferred_until_ms = refused, mono_ms + REFUSED_MS
        else:
            self.deferred.quieted |= refused.quieted
            self.deferred.stopped |= refused.stopped
            self.deferred.ordered |= refused.ordered

    def resume(self, mono_ms: int) -> None:
        """Move what was deferred long enough back into the backlog."""
        if self.deferred is not None and mono_ms >= self.deferred_until_ms:
            payload, self.deferred = self.deferred, None
            self.quiet |= payload.quieted
            self.stops |= payload.stopped
            self.orders = payload.ordered | self.orders


def _take(waiting: dict[K, V], count: int) -> dict[K, V]:
    """Take out and return the first `count` entries."""
    taken = dict(zip(list(waiting)[:count], list(waiting.values())[:count], strict=True))
    for key in taken:
        del waiting[key]
    return taken
