"""Brokers that obey a controller's orders and keep what they were told, without a network."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from logkernel.contracts import MetadataChange
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic, registration_change
from logkernel.controller.orders import Answered, Orders
from logkernel.errors import InconsistentTopicId
from logkernel.requests.replication import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    Order,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)

ONE, OTHER = UUID(int=1), UUID(int=2)


class Follower:
    """A broker that obeys, and keeps what it was told."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.live: set[int] = set()
        self.topics: dict[str, tuple[UUID, dict[int, tuple[Any, ...]]]] = {}
        self.logs: dict[tuple[str, int], UUID] = {}
        self.roles: dict[tuple[str, int], tuple[Any, ...]] = {}
        self.seen: list[Order] = []

    def restart(self) -> None:
        self.live, self.topics, self.roles = set(), {}, {}

    def obey(self, request: Order) -> Any:
        self.seen.append(request)
        if isinstance(request, UpdateMetadataRequest):
            self.live = {broker.id for broker in request.live_brokers}
            for topic in request.topic_states:
                known, rows = self.topics.get(topic.topic_name, (topic.topic_id, {}))
                if all(row.leader == -2 for row in topic.partition_states):
                    if known == topic.topic_id:
                        self.topics.pop(topic.topic_name, None)
                    continue
                rows = rows if known == topic.topic_id else {}
                for row in topic.partition_states:
                    role = self.roles.get((topic.topic_name, row.partition_index))
                    if role is not None and self.node not in row.replicas and row.leader_epoch > role[1]:
                        del self.roles[topic.topic_name, row.partition_index]
                    rows[row.partition_index] = (
                        row.leader, row.leader_epoch, tuple(row.isr), row.partition_epoch, tuple(row.replicas)
                    )  # fmt: skip
                self.topics[topic.topic_name] = (topic.topic_id, rows)
            return UpdateMetadataResponse()
        if isinstance(request, StopReplicaRequest):
            for stopped in request.topic_states:
                for stop in stopped.partition_states:
                    name = (stopped.topic_name, stop.partition_index)
                    self.roles.pop(name, None)
                    if stop.delete_partition:
                        self.logs.pop(name, None)
            return StopReplicaResponse()
        response = LeaderAndIsrResponse()
        for state in request.topic_states:
            errors = LeaderAndIsrTopicError(state.topic_id)
            response.topics.append(errors)
            for order in state.partition_states:
                name = (state.topic_name, order.partition_index)
                code = 0
                if self.logs.setdefault(name, state.topic_id) != state.topic_id:
                    code = InconsistentTopicId.code
                else:
                    self.roles[name] = (order.leader, order.leader_epoch, tuple(order.replicas))
                errors.partition_errors.append(LeaderAndIsrPartitionError(order.partition_index, code))
        return response


def row(replicas: str, isr: str = "", leader: int | None = None, leader_epoch: int = 0, epoch: int = 0) -> Partition:
    members = tuple(map(int, replicas))
    return Partition(
        members, tuple(map(int, isr or replicas)), members[0] if leader is None else leader, leader_epoch, epoch
    )


def topic(name: str, topic_id: UUID, *rows: Partition) -> MetadataChange:
    return Topic(name, topic_id, list(rows)).change()


def node(number: int) -> MetadataChange:
    return registration_change(BrokerRegistration(number, {"P": ("h", number)}))


class Cluster:
    """Orders, and brokers that obey them."""

    def __init__(self, *changes: MetadataChange, nodes: tuple[int, ...] = (1, 2, 3)) -> None:
        self.followers = {number: Follower(number) for number in nodes}
        self.epochs = dict.fromkeys(nodes, 0)
        self.now = 1_000
        self.elect(1, [*map(node, nodes), *changes])

    def elect(self, term: int, changes: list[MetadataChange]) -> None:
        self.orders = Orders(1, term, ClusterImage.of(changes))
        for number in self.orders.image.nodes:
            self.orders.broker_came(number, self.epochs[number])

    def start(self, number: int) -> None:
        self.epochs[number] += 1
        self.followers[number].restart()
        self.orders.fold([node(number)])
        self.orders.broker_came(number, self.epochs[number])

    def stop(self, number: int) -> None:
        self.orders.fold([MetadataChange("broker", str(number), None)])
        self.orders.broker_gone(number)

    def deliver(self, number: int, *, lost: bool = False, unheard: bool = False) -> Answered | None:
        request = self.orders.next_request(number, self.now)
        if request is None:
            return None
        assert request.broker_epoch == self.epochs[number]
        if isinstance(request, LeaderAndIsrRequest):
            leaders = {row.leader for state in request.topic_states for row in state.partition_states}
            assert leaders & self.orders.image.nodes.keys() <= self.followers[number].live, "a leader not told of"
        response = None if unheard else self.followers[number].obey(request)
        return self.orders.on_answer(number, request, None if lost else response, self.now)

    def run(self) -> list[Answered]:
        """Deliver everything."""
        found = []
        while not self.orders.is_idle:
            ready = self.orders.ready(self.now)
            if not ready:
                deadline = self.orders.next_deadline()
                assert deadline is not None
                assert deadline > self.now
                self.now = deadline
            for number in ready:
                answered = self.deliver(number)
                assert answered is not None
                found.append(answered)
        return found

    def seen(self, number: int) -> list[Order]:
        seen, self.followers[number].seen = self.followers[number].seen, []
        return seen

    def check(self) -> None:
        image = self.orders.image
        for number in image.nodes:
            broker = self.followers[number]
            assert broker.live == set(image.nodes)
            assert {name: found[0] for name, found in broker.topics.items()} == {
                name: found.id for name, found in image.topics.items()
            }
            held = {}
            for name, found in image.topics.items():
                for index, each in enumerate(found.partitions):
                    told = broker.topics[name][1][index]
                    assert told == (each.leader, each.leader_epoch, each.isr, each.partition_epoch, each.replicas)
                    if number in each.replicas:
                        held[name, index] = (each.leader, each.leader_epoch, each.replicas)
                        assert broker.logs[name, index] == found.id
            assert broker.roles == held


def kinds(seen: list[Order]) -> list[str]:
    return [type(request).__name__.removesuffix("Request") for request in seen]


def answer_of(request: Order, code: int) -> Any:
    """A LeaderAndIsr answer that says `code` of every partition."""
    assert isinstance(request, LeaderAndIsrRequest)
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                state.topic_id,
                [LeaderAndIsrPartitionError(row.partition_index, code) for row in state.partition_states],
            )
            for state in request.topic_states
        ]
    )
