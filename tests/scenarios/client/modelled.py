"""A modelled cluster that loses, delays and reorders, and a sender that is stepped against it in virtual time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from attrs import define, field

from logkernel.client.drivers.driver import tell
from logkernel.client.producer.accumulator import Queue
from logkernel.client.producer.batches import DONE, Batch
from logkernel.client.producer.sender import Sender
from logkernel.client.settings.producer import load_producer
from logkernel.errors import (
    InvalidProducerEpoch,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    NetworkException,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
)
from logkernel.peer.network import Close, Connect, Transmit
from logkernel.record.batch import parse_header
from logkernel.record.decode import decode_all
from logkernel.requests.cluster import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logkernel.requests.data import PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse

TOPIC = "t"


@define
class Faults:
    """How likely each misfortune is, a request."""

    lose_request: float = 0.0
    lose_answer: float = 0.0
    refuse: float = 0.0
    doubt: float = 0.0
    """Appended, and answered with an error all the same."""
    connect_fails: float = 0.0
    repeat_answer: float = 0.0
    longest_ms: int = 30
    silent: bool = False
    """Requests arrive, and nothing comes back; the connection stands."""
    deaf: bool = False
    """Connections are neither made nor refused."""


@define
class Partition:
    leader: int
    epoch: int = 0
    values: list[bytes | None] = field(factory=list)
    producers: dict[int, tuple[int, list[tuple[int, int, int]]]] = field(factory=dict)
    """Producer id → (epoch, its last five batches: first and last sequence, base offset)."""


class Cluster:
    """Nodes 1 to 3 with one topic; what one leader appended, the next one has."""

    def __init__(self, random: Random, faults: Faults, partitions: int) -> None:
        self.random = random
        self.faults = faults
        self.partitions = [Partition(1 + index % 3) for index in range(partitions)]
        self.largest_batch: int | None = None
        self.next_id = 1000
        self.produced = 0

    def move(self) -> None:
        part = self.random.choice(self.partitions)
        part.leader, part.epoch = self.random.randint(1, 3), part.epoch + 1

    def answer(self, node: int, request: Any) -> Any:
        if isinstance(request, MetadataRequest):
            return self.metadata()
        if isinstance(request, InitProducerIdRequest):
            self.next_id += 1
            return InitProducerIdResponse(producer_id=self.next_id, producer_epoch=0)
        assert isinstance(request, ProduceRequest)
        self.produced += 1
        topic = request.topic_data[0]
        rows = [self.produce(node, data.index, bytes(data.records or b"")) for data in topic.partition_data]
        return ProduceResponse([TopicProduceResponse(topic.name, rows)])

    def metadata(self) -> MetadataResponse:
        brokers = [MetadataResponseBroker(node, "host", node) for node in (1, 2, 3)]
        rows = [
            MetadataResponsePartition(
                error_code=0 if part.leader > 0 else LeaderNotAvailable.code,
                partition_index=index,
                leader_id=part.leader,
                leader_epoch=part.epoch,
            )
            for index, part in enumerate(self.partitions)
        ]
        return MetadataResponse(brokers, [MetadataResponseTopic(0, TOPIC, rows)], controller_id=1)

    def produce(self, node: int, index: int, data: bytes) -> PartitionProduceResponse:
        part = self.partitions[index]
        row = PartitionProduceResponse(index, base_offset=-1)
        try:
            if part.leader != node:
                raise NotLeaderOrFollower
            if self.random.random() < self.faults.refuse:
                raise NotEnoughReplicas
            row.base_offset = self.append(part, data)
            if self.random.random() < self.faults.doubt:
                raise self.random.choice([NotEnoughReplicasAfterAppend, RequestTimedOut])
        except KafkaError as error:
            row.error_code, row.base_offset = error.code, -1
        return row

    def append(self, part: Partition, data: bytes) -> int:
        """As a broker checks and appends (KIP-98)."""
        facts = parse_header(data, 0)
        if self.largest_batch is not None and len(data) > self.largest_batch:
            raise MessageTooLarge
        if facts.producer_id >= 0:
            known = part.producers.get(facts.producer_id)
            epoch, seen = known or (facts.producer_epoch, [])
            if facts.producer_epoch < epoch:
                raise InvalidProducerEpoch
            if facts.producer_epoch > epoch:
                if facts.base_sequence != 0:
                    raise OutOfOrderSequenceNumber
                seen = []
            for first, last, base in seen:
                if (first, last) == (facts.base_sequence, facts.last_sequence):
                    return base
            if seen and facts.base_sequence != seen[-1][1] + 1:
                raise OutOfOrderSequenceNumber
            base = len(part.values)
            seen = [*seen, (facts.base_sequence, facts.last_sequence, base)][-5:]
            part.producers[facts.producer_id] = (facts.producer_epoch, seen)
        base = len(part.values)
        part.values += [record.value for record in decode_all(data, None)]  # type: ignore[arg-type]
        return base


class World:
    """One sender, one cluster, one clock. Every turn of fate comes from the seed."""

    def __init__(self, seed: int, faults: Faults, partitions: int = 2, **settings: Any) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(self.random, faults, partitions)
        self.faults = faults
        self.values = load_producer({"bootstrap_servers": "host:1", **settings})
        self.sender = Sender(self.values, [("host", 1)], Random(seed + 1), None, None)  # type: ignore[arg-type]
        self.now = 0
        self.sent: list[tuple[int, bytes, Batch, int]] = []
        """(partition, value, batch, place) of every record, in order."""
        self.done: list[tuple[int, Any]] = []
        """(time, action) of everything that the sender wanted done."""
        self._order = count()
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._connections: dict[int, int] = {}
        """Number → node, of those that stand."""
        self._cut: set[int] = set()
        self._arrival: dict[int, int] = {}
        """Number → the time before which nothing more arrives on it: order is kept."""
        self.sender.core.metadata.want(TOPIC, 0)

    # ------------------------------------------------------------ the user

    def send(self, partition: int, value: bytes) -> bool:
        """Whether there was room."""
        accumulator = self.sender.accumulator
        queue: Queue = accumulator.queue(TOPIC, partition)
        index = queue.open.append(self.now, None, value, ()) if queue.open is not None else -1
        if index < 0:
            accumulator.close_open(queue)
            size = max(accumulator.batch_bytes, accumulator.upper_bound(None, value, ()))
            if not accumulator.pool.take(size):
                return False
            batch = accumulator.new_batch(queue, size, self.now)
            index = batch.append(self.now, None, value, ())
            accumulator.add_open(queue, batch)
        assert queue.open is not None
        self.sent.append((partition, value, queue.open, index))
        return True

    # ------------------------------------------------------------ what it did

    def requests(self, kind: type) -> list[tuple[int, Any]]:
        """(time, request) of each request of a kind."""
        return [
            (at, action.request)
            for at, action in self.done
            if isinstance(action, Transmit) and isinstance(action.request, kind)
        ]

    def actions(self, kind: type) -> list[tuple[int, Any]]:
        return [(at, action) for at, action in self.done if isinstance(action, kind)]

    # ------------------------------------------------------------ the world

    def at(self, delay_ms: int, what: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.now + delay_ms, next(self._order), what))

    def chance(self, likely: float) -> bool:
        return self.random.random() < likely

    def perform(self, action: Any) -> None:
        network = self.sender.core.network
        self.done.append((self.now, action))
        delay = self.random.randint(0, self.faults.longest_ms)
        number = action.number
        if isinstance(action, Connect) and self.faults.deaf:
            return
        if isinstance(action, Connect):
            if self.chance(self.faults.connect_fails):
                self.at(delay, lambda: network.on_lost(number, NetworkException("refused"), self.now))
            else:
                self.at(delay, lambda: self._connected(number, action.port))
        elif isinstance(action, Close):
            self._connections.pop(number, None)
        elif isinstance(action, Transmit) and number in self._connections:
            self._transmit(action, delay)

    def _connected(self, number: int, node: int) -> None:
        self._connections[number] = node
        self.sender.core.network.on_connected(number, {}, self.now)

    def _transmit(self, action: Transmit, delay: int) -> None:
        number = action.number
        node = self._connections[number]
        arrival = max(self._arrival.get(number, 0), self.now + delay)
        if isinstance(action.request, ProduceRequest):
            for topic in action.request.topic_data:
                for data in topic.partition_data:
                    data.records = bytes(data.records or b"")  # as it is now: on a wire it cannot change
        self._arrival[number] = arrival
        self.at(arrival - self.now, lambda: self._arrived(number, node, action))

    def _arrived(self, number: int, node: int, action: Transmit) -> None:
        if number in self._cut:
            return  # what followed a lost request on its connection is lost with it
        if self.chance(self.faults.lose_request):
            self._cut.add(number)
            self._drop(number)
            return
        if self.faults.silent:
            return
        response = self.cluster.answer(node, action.request)  # also where the client has gone: bytes were under way
        if self.chance(self.faults.lose_answer):
            self._drop(number)
            return
        network = self.sender.core.network
        arrival = max(self._arrival.get(number, 0), self.now + self.random.randint(0, self.faults.longest_ms))
        self._arrival[number] = arrival

        def back() -> None:
            if number in self._connections:
                network.on_response(number, action.request_id, response, self.now)
                if self.chance(self.faults.repeat_answer):
                    network.on_response(number, action.request_id, response, self.now)

        self.at(arrival - self.now, back)

    def _drop(self, number: int) -> None:
        if self._connections.pop(number, None) is not None:
            self.sender.core.network.on_lost(number, NetworkException("lost"), self.now)

    def turn(self, until_ms: int) -> None:
        """Step, then go to the next event, no further than `until_ms`."""
        network = self.sender.core.network
        next_ms = self.sender.step(self.now, self.now)
        actions, network.actions = network.actions, []
        for action in actions:
            self.perform(action)
        for found in self.sender.take_finished():
            tell(found)
        times = [until_ms]
        if self._heap:
            times.append(self._heap[0][0])
        if next_ms is not None and not actions:
            times.append(max(self.now + 1, next_ms))
        if actions:
            times.append(self.now)
        self.now = max(self.now, min(times))
        while self._heap and self._heap[0][0] <= self.now:
            heapq.heappop(self._heap)[2]()

    def run(self, ms: int) -> None:
        end = self.now + ms
        while self.now < end:
            self.turn(end)

    def settle(self, limit_ms: int = 600_000) -> None:
        """Until everything has an outcome."""
        end = self.now + limit_ms
        self.sender.accumulator.flushing += 1
        while self.sender.accumulator.incomplete:
            assert self.now < end, "records without an outcome"
            self.turn(end)
        self.sender.accumulator.flushing -= 1

    # ------------------------------------------------------------ what must hold

    def outcome(self, batch: Batch, index: int) -> tuple[Batch, int]:
        found = batch.place(index)
        assert found[0].state == DONE
        return found

    def check(self, *, all_acknowledged: bool) -> int:
        """Acknowledged: exactly once, in order. Otherwise: at most once. Returns how many were acknowledged."""
        acknowledged = 0
        for number, part in enumerate(self.cluster.partitions):
            mine = [row for row in self.sent if row[0] == number]
            places: dict[bytes, list[int]] = {}
            for offset, value in enumerate(part.values):
                assert value is not None
                places.setdefault(value, []).append(offset)
            last = -1
            for _, value, batch, index in mine:
                leaf, at = self.outcome(batch, index)
                found = places.get(value, [])
                assert len(found) <= 1, f"{value!r} lies at {found}"
                if leaf.error is not None:
                    assert not all_acknowledged, repr(leaf.error)
                    continue
                acknowledged += 1
                assert len(found) == 1, f"{value!r} was acknowledged and is lost"
                assert found[0] > last, "order"
                last = found[0]
                assert leaf.metadata(at, 0).offset in (-1, found[0])
        pool = self.sender.accumulator.pool
        assert pool.free == pool.total
        return acknowledged
