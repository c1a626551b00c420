"""Brokers whose fetches the test itself carries, and whose roles it orders: no controller, no network, no fetcher."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from hand_clock import HandClock

from logkernel.broker.broker import Broker
from logkernel.broker.governance.governance import Access, Governance, Parts
from logkernel.broker.governance.standalone import Standalone
from logkernel.broker.replicas.follower_replica import FollowerReplica
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import RequestContext
from logkernel.kernel import Kernel
from logkernel.partition.follower import FetchPosition
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    PartitionProduceData,
    ProduceRequest,
    ReplicaState,
    TopicProduceData,
)
from logkernel.requests.offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logkernel.requests.replication import LeaderAndIsrPartitionState
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import IsrProposal, Record, TopicPartition

KERNEL = Kernel()
NAME = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
PEER = RequestContext(commands=True, internal=True)
CLIENT = RequestContext(capabilities=frozenset({"zstd"}))


class Ordered(Standalone):
    """Proposals and roles are the test's."""

    def __init__(self, parts: Parts, node: Node) -> None:
        super().__init__(parts)
        self.node = node

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        self.node.proposed(replica, proposal)

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        self.node.came.append(list(names))

    def role_changed(self, name: TopicPartition) -> None:
        for observer in self.node.role_observers:
            observer(name)


class Node:
    """One broker over a disk that can crash, and its `Access`. It leads and follows as it is told, and nothing else."""

    size = 1

    def __init__(
        self, node_id: int, clock: HandClock, settings: Iterable[str] = (), access: Access | None = None
    ) -> None:
        self.node_id = node_id
        self.clock = clock
        self.disk = SimulatedDisk(node_id)
        self.settings = ("log.dirs=/data", f"node.id={node_id}", "log.cleaner.enable=false", *settings)
        self.proposals: list[tuple[LeaderReplica, IsrProposal]] = []
        self.came: list[list[TopicPartition]] = []
        """Logs for which there was no room before, as often as the manager said so."""
        self.role_observers: list[Callable[[TopicPartition], None]] = []
        self.access = access or self
        self.boot()

    def govern(self, parts: Parts) -> Governance:
        return Ordered(parts, self)

    def proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        self.proposals.append((replica, proposal))

    def boot(self) -> None:
        config = BrokerConfig.load(None, self.settings, KERNEL.declarations())
        runtime = Runtime(config, KERNEL, clock=self.clock)
        self.broker = broker = Broker(runtime, self.access, disk=self.disk)
        broker.logs.open()
        broker.metadata.load("memory", broker.logs.open_metadata_log, broker.logs.cluster_id)
        broker.logs.load(broker.metadata.topic_settings, frozenset(), broker.replicas.segment_rolled)
        broker.logs.all_loaded()
        broker.scheduler.start()
        self.proposals.clear()
        self.replicas = broker.replicas

    def crash(self) -> None:
        """The power goes and comes back: what was not synced is lost."""
        self.disk = self.disk.crash()
        self.boot()

    def stop(self) -> None:
        """A clean end, and another start."""
        self.broker.logs.close(self.replicas.watermarks())
        self.boot()

    # ------------------------------------------------------------ roles

    def order(
        self,
        leader: int,
        epoch: int,
        isr: Iterable[int] = (1, 2),
        replicas: Iterable[int] = (1, 2),
        *,
        topic_id: UUID = TOPIC_ID,
        is_new: bool = False,
        partition_epoch: int | None = None,
    ) -> int:
        state = LeaderAndIsrPartitionState(
            NAME.partition, 1, leader, epoch, list(isr), epoch if partition_epoch is None else partition_epoch,
            list(replicas), is_new=is_new,
        )  # fmt: skip
        code = self.replicas.take(NAME, topic_id, state, self.broker.metadata.topic_settings(NAME.topic))
        self.broker.turn.end()
        return code

    @property
    def led(self) -> LeaderReplica:
        return self.replicas.led[NAME]

    @property
    def followed(self) -> FollowerReplica:
        return self.replicas.followed[NAME]

    def accept(self) -> frozenset[int]:
        """The controller writes the last proposal down; returns the in-sync replicas that it named."""
        replica, proposal = self.proposals.pop()
        replica.isr_accepted(proposal, proposal.partition_epoch + 1)
        self.broker.turn.end()
        return proposal.isr

    # ------------------------------------------------------------ clients

    def produce(self, *values: bytes, acks: int = -1, data: bytes | None = None, timeout_ms: int = 5000) -> list[int]:
        """Send one batch; gives a list into which its error code comes as soon as it is answered."""
        if data is None:
            data = encode_batch([Record(None, value, timestamp_ms=self.clock.wall_ms()) for value in values])
        told: list[int] = []
        self.broker.submit(
            ProduceRequest(
                acks=acks, timeout_ms=timeout_ms,
                topic_data=[TopicProduceData(NAME.topic, [PartitionProduceData(NAME.partition, bytearray(data))])],
            ),
            CLIENT,
            lambda response: told.append(response.responses[0].partition_responses[0].error_code),
        )  # fmt: skip
        return told

    def pass_ms(self, ms: int) -> None:
        end = self.clock.now_ms + ms
        while (deadline := self.broker.runtime.timers.next_deadline()) is not None and deadline <= end:
            self.clock.now_ms = max(self.clock.now_ms, deadline)
            self.broker.step()
        self.clock.now_ms = end

    def segments(self) -> dict[str, bytes]:
        """What the partition's log files hold."""
        folder = f"/data/{NAME}"
        log = (self.replicas.find(NAME) or self.led).log
        held = {f"{segment.base:020d}.log": segment.size for segment in log.segments}
        return {name: self.disk.read(f"{folder}/{name}")[:size] for name, size in held.items()}


def ask(node: Node, request: Any, context: RequestContext = PEER) -> list[Any]:
    """Submit; gives a list into which the response comes."""
    told: list[Any] = []
    node.broker.submit(request, context, told.append)
    return told


def fetch_request(position: FetchPosition, node_id: int, *, wait_ms: int = 0, max_bytes: int = 1 << 20) -> FetchRequest:
    partition = FetchPartition(
        NAME.partition, position.offset, max_bytes, position.log_start, position.leader_epoch, position.last_epoch
    )
    return FetchRequest(
        replica_id=node_id, max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20,
        topics=[FetchTopic(NAME.topic, [partition])], replica_state=ReplicaState(node_id, -1),
    )  # fmt: skip


def row_of(response: Any) -> PartitionData:
    row: PartitionData = response.responses[0].partitions[0]
    return row


def follow(follower: Node, leader: Node, *, max_bytes: int = 1 << 20) -> None:
    """One fetch of a follower, carried to the leader and back."""
    replica, now_ms = follower.followed, follower.clock.now_ms
    position = replica.next_fetch(now_ms)
    assert position is not None, "it asks for nothing"
    (response,) = ask(leader, fetch_request(position, follower.node_id, max_bytes=max_bytes))
    if replica.apply(position, row_of(response), now_ms):
        ends = []
        for timestamp in (-2, -1):
            request = ListOffsetsRequest(
                replica_id=follower.node_id,
                topics=[ListOffsetsTopic(NAME.topic, [ListOffsetsPartition(NAME.partition, timestamp=timestamp)])],
            )
            ends.append(ask(leader, request)[0].topics[0].partitions[0].offset)
        replica.out_of_range(position, *ends)


def catch_up(follower: Node, leader: Node, *, max_bytes: int = 1 << 20) -> None:
    """Fetch until the follower holds all, the leader knows it, and the follower knows the watermark."""
    for _ in range(100):
        follow(follower, leader, max_bytes=max_bytes)
        mine, theirs = follower.followed, leader.led
        sync, end = theirs.leader.sync, theirs.log.end_offset
        assert sync is not None
        known = sync.followers[follower.node_id].log_end
        whole = mine.log.end_offset == known == end and mine.high_watermark == theirs.high_watermark
        if whole and mine.log.start_offset == theirs.log.start_offset:
            return
    raise AssertionError("it does not catch up")


Make = Callable[..., Node]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def make(clock: HandClock) -> Iterator[Make]:
    """Makes nodes; closes them all."""
    made: list[Node] = []

    def new(node_id: int, *settings: str, access: Access | None = None) -> Node:
        made.append(Node(node_id, clock, settings, access))
        return made[-1]

    yield new
    for node in made:
        node.broker.logs.abandon()


@pytest.fixture
def pair(make: Make) -> tuple[Node, Node]:
    """A leader, 1, and its follower, 2, both alive and in sync."""
    one, two = make(1), make(2)
    for node in (one, two):
        assert node.order(1, 0, is_new=True) == 0
        node.replicas.on_live_brokers(frozenset((1, 2)))
    return one, two
