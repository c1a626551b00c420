"""Queues of batches by partition, in a bounded pool. Pure.

A batch is sent when it is full, has lingered, or when somebody waits for memory, a flush, or the close; and
along with others to the same broker, ready or not. Its queue's first batch goes first, always.

    user ─ append ─▶ [ batch, batch, open batch ]  one queue a partition
                        │ drain by node, up to max.request.size, each time from another partition on
                        ▼
                     a produce request; what must be sent again returns to its place in the queue
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from logkernel.client.cluster.metadata import Metadata
from logkernel.client.producer.batches import DONE, OPEN, Batch
from logkernel.client.producer.sequences import Sequences
from logkernel.contracts import Codec
from logkernel.record import loops
from logkernel.record.batch import HEADER_BYTES

MAX_RECORD_OVERHEAD = 40
"""Bytes beside key, value and headers that a record can take."""
GRANT_PART = 32
"""Waiters for memory are let in when this part of the pool is free: one by one would be a switch of threads each."""


@define(eq=False)
class Claim:
    """A caller that waits for memory."""

    size: int
    partition: int | None = None
    """Where a partitioner wants the record: it is not asked again."""
    granted: bool = False


class Pool:
    """`buffer.memory` in bytes; waiters are served in order. `0 <= free <= total`, save after a split."""

    __slots__ = ("free", "granted", "total", "waiting")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self.waiting: deque[Claim] = deque()
        self.granted: list[Claim] = []
        """Claims that got their memory since the driver last looked."""

    def take(self, size: int) -> bool:
        if self.waiting or self.free < size:
            return False
        self.free -= size
        return True

    def claim(self, size: int) -> Claim:
        """Wait for memory; `give_up` when that took too long."""
        claim = Claim(size)
        self.waiting.append(claim)
        return claim

    def give_up(self, claim: Claim) -> bool:
        """The wait is over; whether the memory came after all."""
        if not claim.granted:
            if self.waiting[0] is claim and self.free >= claim.size:
                self.free -= claim.size
                claim.granted = True
            self.waiting.remove(claim)
            self._grant()
        return claim.granted

    def release(self, size: int) -> None:
        self.free += size
        if self.waiting:
            self._grant()

    def _grant(self) -> None:
        waiting = self.waiting
        if waiting and self.free < min(self.total, max(waiting[0].size, self.total // GRANT_PART)):
            return
        while waiting and self.free >= waiting[0].size:
            claim = waiting.popleft()
            self.free -= claim.size
            claim.granted = True
            self.granted.append(claim)


class Queue:
    """The batches of one partition that are not on the wire, oldest first."""

    __slots__ = ("batches", "lane", "on_closed", "partition", "sequences", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.lane = loops.Lane()
        """Its open end, as `send` reaches it."""
        self.sequences = Sequences()
        self.on_closed: Callable[[Queue, int], None] | None = None
        """Told the size of each batch that was closed: the partitioner may move on."""

    @property
    def open(self) -> Batch | None:
        """The last batch, where it takes records."""
        found: Batch | None = self.lane.batch
        return found


@define
class Ready:
    """What `Accumulator.ready` found."""

    nodes: set[int] = field(factory=set)
    unknown: set[str] = field(factory=set)
    """Topics with batches whose leader is not known."""
    next_ms: int | None = None


class Accumulator:
    """See the module."""

    def __init__(self, settings: Mapping[str, Any], codec: Codec | None, codec_for: Callable[[int], Codec]) -> None:
        self.pool = Pool(settings["buffer.memory"])
        self.max_request_bytes: int = settings["max.request.size"]
        self.batch_bytes: int = max(1, min(settings["batch.size"], self.max_request_bytes))
        self.linger_ms: int = settings["linger.ms"]
        self.delivery_timeout_ms: int = settings["delivery.timeout.ms"]
        self.one_at_a_time: bool = settings["max.in.flight.requests.per.connection"] == 1
        self.codec = codec
        self.queues: dict[tuple[str, int], Queue] = {}
        self.active: dict[tuple[str, int], Queue] = {}
        """Queues that hold a batch."""
        self.incomplete: dict[Batch, None] = {}
        """Every batch without an outcome, oldest first."""
        self.finished: list[Batch] = []
        """Batches that got their outcome since the driver last looked."""
        self.owner: Any = None
        """The driver, given to each batch so that callers can wait for its outcome."""
        self.flushing = 0
        self.closing = False
        self._codec_for = codec_for
        self._turn: dict[int, int] = {}

    def queue(self, topic: str, partition: int) -> Queue:
        key = (topic, partition)
        found = self.queues.get(key)
        if found is None:
            found = self.queues[key] = Queue(topic, partition)
        return found

    # ------------------------------------------------------------ in

    def upper_bound(self, key: Any, value: Any, headers: Any) -> int:
        """Bytes that a batch with this one record takes at most."""
        size = HEADER_BYTES + MAX_RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        for name, blob in headers or ():
            size += 4 * len(name) + len(blob or b"") + 10
        return size

    def close_open(self, queue: Queue) -> None:
        """The open batch takes no more; what it does not need of the pool is free."""
        batch = queue.open
        if batch is None:
            return
        queue.lane.close()
        batch.close(self.codec)
        spare = batch.reserved - len(batch.wire)
        if spare > 0:
            batch.reserved -= spare
            self.pool.release(spare)
        if queue.on_closed is not None:
            queue.on_closed(queue, len(batch.wire))

    def new_batch(self, queue: Queue, reserved: int, now_ms: int) -> Batch:
        """A batch for `queue`, in memory that was taken from the pool: `add_open` it with its first record."""
        return Batch(queue.topic, queue.partition, self.batch_bytes, reserved, now_ms)

    def add_open(self, queue: Queue, batch: Batch) -> None:
        """`batch` is the last of `queue` from now on, and takes its records."""
        batch.owner = self.owner
        queue.batches.append(batch)
        queue.lane.open(batch, batch.builder)
        self.active[queue.topic, queue.partition] = queue
        self.incomplete[batch] = None

    def add_closed(self, batch: Batch) -> None:
        """A whole batch behind all that its queue holds, in memory that was taken from the pool."""
        queue = self.queue(batch.topic, batch.partition)
        self.close_open(queue)
        batch.owner = self.owner
        queue.batches.append(batch)
        self.active[queue.topic, queue.partition] = queue
        self.incomplete[batch] = None

    # ------------------------------------------------------------ out

    @property
    def hurry(self) -> bool:
        """Whether a caller waits: then batches do not linger."""
        return bool(self.pool.waiting) or self.closing or self.flushing > 0

    def ready(self, metadata: Metadata, now_ms: int) -> Ready:
        """The nodes to which something can be sent now, and when to look again."""
        found = Ready()
        hurry = self.hurry
        for queue in self.active.values():
            leader = metadata.leader(queue.topic, queue.partition)
            if leader < 0:
                found.unknown.add(queue.topic)
                continue
            if leader in found.nodes or (self.one_at_a_time and queue.sequences.wire):
                continue
            first = queue.batches[0]
            if first.attempts:
                due_ms = first.retry_ms
            elif hurry or first.state != OPEN or len(queue.batches) > 1:
                due_ms = now_ms
            else:
                due_ms = first.created_ms + self.linger_ms
            if due_ms <= now_ms:
                found.nodes.add(leader)
            elif found.next_ms is None or due_ms < found.next_ms:
                found.next_ms = due_ms
        return found

    def drain(
        self,
        metadata: Metadata,
        node: int,
        now_ms: int,
        may_send: Callable[[Queue, Batch], bool],
        *,
        whole: bool = False,
    ) -> list[Batch]:
        """One batch of each partition that `node` leads, as many as one request holds; they leave their queues.

        With `whole`, those that still take records are left to fill, unless somebody is in a hurry.
        """
        whole = whole and not self.hurry
        queues = [queue for queue in self.active.values() if metadata.leader(queue.topic, queue.partition) == node]
        if not queues:
            return []
        if len(queues) > 1:
            queues.sort(key=lambda queue: (queue.topic, queue.partition))
        start = self._turn.get(node, 0) % len(queues)
        taken: list[Batch] = []
        size = 0
        for step in range(len(queues)):
            queue = queues[(start + step) % len(queues)]
            batch = queue.batches[0]
            if (batch.attempts and batch.retry_ms > now_ms) or (self.one_at_a_time and queue.sequences.wire):
                continue
            if (whole and batch is queue.open) or not may_send(queue, batch):
                continue
            if batch is queue.open:
                self.close_open(queue)
            if taken and size + len(batch.wire) > self.max_request_bytes:
                self._turn[node] = (start + step) % len(queues)
                return taken
            queue.batches.popleft()
            if not queue.batches:
                del self.active[queue.topic, queue.partition]
            size += len(batch.wire)
            batch.drained_ms = now_ms
            taken.append(batch)
        self._turn[node] = start + 1
        return taken

    def put_back(self, batch: Batch) -> None:
        """Return a batch to its place: before all that have a larger sequence or none."""
        queue = self.queue(batch.topic, batch.partition)
        order = queue.sequences.pending
        if batch.sequence < 0 or batch not in order:
            queue.batches.appendleft(batch)
        else:
            rank = order.index(batch)
            ahead = sum(1 for other in queue.batches if other.sequence >= 0 and other in order[:rank])
            queue.batches.insert(ahead, batch)
        self.active[batch.topic, batch.partition] = queue

    def split(self, batch: Batch) -> list[Batch]:
        """Smaller batches in the place of one that the broker called too large."""
        queue = self.queue(batch.topic, batch.partition)
        children = batch.split(self.codec, self._codec_for)
        queue.sequences.replaced(batch, children)
        self.incomplete.pop(batch, None)
        for child in reversed(children):
            self.pool.free -= child.reserved
            self.incomplete[child] = None
            self.put_back(child)
        self.pool.release(batch.reserved)
        batch.reserved = 0
        self.finished.append(batch)
        return children

    def finish(self, batch: Batch, base_offset: int, append_time_ms: int, error: Exception | None) -> None:
        """The outcome of a batch that is in no queue; its memory is free."""
        if batch.state == DONE:
            return
        batch.finish(base_offset, append_time_ms, error)
        self.incomplete.pop(batch, None)
        self.pool.release(batch.reserved)
        batch.reserved = 0
        self.finished.append(batch)

    def remove(self, queue: Queue, batch: Batch) -> None:
        """Take a batch out of its queue."""
        if batch is queue.open:
            self.close_open(queue)
        queue.batches.remove(batch)
        if not queue.batches:
            self.active.pop((queue.topic, queue.partition), None)

    def expired(self, now_ms: int) -> list[Batch]:
        """Batches in queues whose delivery.timeout.ms is over; they have left their queues."""
        found: list[Batch] = []
        for queue in list(self.active.values()):
            while queue.batches and queue.batches[0].created_ms + self.delivery_timeout_ms <= now_ms:
                batch = queue.batches[0]
                self.remove(queue, batch)
                found.append(batch)
        return found

    def next_expiry_ms(self) -> int | None:
        """When the oldest batch without an outcome expires."""
        first = next(iter(self.incomplete), None)
        return None if first is None else first.created_ms + self.delivery_timeout_ms

    def drop_unsent(self) -> list[Batch]:
        """Take out every batch that was never sent (an abort)."""
        return self.drop(lambda batch: batch.sequence < 0)

    def drop(self, unwanted: Callable[[Batch], bool]) -> list[Batch]:
        """Take out batches that are not on the wire."""
        found: list[Batch] = []
        for queue in list(self.active.values()):
            for batch in [batch for batch in queue.batches if unwanted(batch)]:
                self.remove(queue, batch)
                found.append(batch)
        return found
