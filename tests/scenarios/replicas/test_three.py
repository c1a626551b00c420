"""Three brokers with their own fetchers, a network that loses messages, brokers that crash: by seeds.

The controller is a few lines of the test; everything else is what a broker runs. No acknowledged record is lost while
one broker at a time is down, and in the end all hold the same bytes.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from hand_clock import HandClock

from logkernel.broker.peers import Peers
from logkernel.broker.replicas.fetchers import ReplicaFetchers
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.contracts import Answer, PeerTransport
from logkernel.vocabulary import IsrProposal, TopicPartition

from .conftest import NAME, PEER, Node

NODES = (1, 2, 3)
SETTINGS = (
    "replica.lag.time.max.ms=400", "min.insync.replicas=2", "replica.fetch.backoff.ms=100",
    "replica.fetch.wait.max.ms=50", "replica.socket.timeout.ms=200", "log.segment.bytes=1048576",
)  # fmt: skip


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.clock = HandClock()
        self.wires: deque[Callable[[], None]] = deque()
        """Messages under way."""
        self.loss = self.random.choice((0.0, 0.0, 0.05, 0.2))
        self.leader, self.epoch, self.partition_epoch = 1, 0, 0
        self.isr: tuple[int, ...] = NODES
        self.down: set[int] = set()
        self.acked: list[bytes] = []
        self.unanswered: list[tuple[bytes, list[int]]] = []
        self.nodes = {node: Broker(self, node) for node in NODES}
        for node in self.nodes.values():
            node.take_orders(is_new=True)

    # ------------------------------------------------------------ the controller

    @property
    def alive(self) -> frozenset[int]:
        return frozenset(NODES) - self.down

    def elect(self) -> None:
        """The first that lives of those in sync."""
        self.epoch += 1
        self.partition_epoch += 1
        members = tuple(node for node in self.isr if node in self.alive)
        if members:
            self.isr = members
            self.leader = self.random.choice(members)
        else:
            self.leader = -1
        for node in self.alive:
            self.nodes[node].take_orders()

    def propose(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        def judged() -> None:
            row = (self.epoch, self.partition_epoch)
            if (proposal.leader_epoch, proposal.partition_epoch) != row or not proposal.isr <= self.alive:
                if replica.in_service:
                    replica.isr_refused(proposal, revert=not proposal.isr <= self.alive)
                return
            self.isr, self.partition_epoch = tuple(sorted(proposal.isr)), self.partition_epoch + 1
            if replica.in_service:
                replica.isr_accepted(proposal, self.partition_epoch)

        self.wires.append(judged)

    # ------------------------------------------------------------ time

    def step(self) -> None:
        """A few messages arrive, some are lost, and a few milliseconds pass."""
        for _ in range(self.random.randint(0, 6)):
            if self.wires:
                self.wires.popleft()()
        self.clock.now_ms += self.random.randint(1, 8)
        for node in self.alive:
            self.nodes[node].broker.step()

    def crash(self, node: int) -> None:
        """The power of one broker goes; the controller notices."""
        self.down.add(node)
        self.nodes[node].life += 1
        if node in self.isr and len(self.isr) > 1:
            self.isr = tuple(member for member in self.isr if member != node)
        self.elect()

    def bring_back(self, node: int) -> None:
        self.down.discard(node)
        self.nodes[node].crash()
        for each in self.alive:
            self.nodes[each].replicas.on_live_brokers(self.alive)
        self.nodes[node].take_orders()

    def produce(self, value: bytes) -> None:
        node = self.nodes.get(self.leader)
        if node is None or node.node_id in self.down:
            return
        self.unanswered.append((value, node.produce(value, timeout_ms=1500)))

    def look(self) -> None:
        """Take note of what was acknowledged."""
        self.acked += [value for value, told in self.unanswered if told == [0]]
        self.unanswered = [row for row in self.unanswered if not row[1]]

    # ------------------------------------------------------------ the end

    @property
    def is_whole(self) -> bool:
        if self.down or set(self.isr) != set(NODES):
            return False
        logs = [node.replicas.find(NAME) for node in self.nodes.values()]
        ends = {(log.log.end_offset, log.high_watermark) for log in logs if log is not None}
        return len(ends) == 1 and all(end == mark for end, mark in ends)


class Broker(Node, PeerTransport):
    """A node with fetchers; its messages go through the world."""

    def close(self) -> None:
        """The world ends what a node has open."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.life = 0
        super().__init__(node_id, world.clock, SETTINGS)

    def boot(self) -> None:
        super().boot()
        runtime, turn = self.broker.runtime, self.broker.turn
        self.broker.cluster.topic_name = lambda topic_id: NAME.topic  # type: ignore[method-assign]
        self.fetchers = ReplicaFetchers(
            runtime, Peers(runtime, turn, self), lambda: self.life, self.replicas.keep_log_starts
        )
        self.role_observers = [self._role]

    def proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        self.world.propose(replica, proposal)

    def _role(self, name: TopicPartition) -> None:
        followed = self.replicas.followed.get(name)
        if followed is None:
            self.fetchers.forget(name)
        else:
            self.fetchers.follow(followed, followed.follower.leader)

    def take_orders(self, *, is_new: bool = False) -> None:
        world = self.world
        self.replicas.on_live_brokers(world.alive)
        code = self.order(
            world.leader, world.epoch, world.isr, NODES, is_new=is_new, partition_epoch=world.partition_epoch
        )
        assert code == 0

    def send(
        self, target: int, request: Any, answer: Answer, failed: Callable[[Exception], None], timeout_ms: int
    ) -> None:
        world, life = self.world, self.life

        def lost() -> bool:
            return world.random.random() < world.loss

        def arrives() -> None:
            peer = world.nodes[target]
            if target not in world.down and not lost():
                their_life = peer.life
                peer.broker.submit(request, PEER, lambda response: back(response, their_life))

        def back(response: Any, their_life: int) -> None:
            def arrives_back() -> None:
                if self.life == life and world.nodes[target].life == their_life and not lost():
                    answer(response)

            world.wires.append(arrives_back)

        world.wires.append(arrives)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_acknowledged_is_lost_and_all_logs_become_one(seed: int) -> None:
    world = World(seed)
    chance = world.random
    crashes = 0
    for number in range(400):
        if chance.random() < 0.3:
            world.produce(b"%d-%d " % (seed, number) + bytes(chance.choice((10, 10, 60_000))))
        fate = chance.random()
        if fate < 0.01:
            world.elect()
        elif fate < 0.04 and not world.down and len(world.isr) == len(NODES):
            world.crash(chance.choice(NODES))
            crashes += 1
        elif fate < 0.07 and world.down:
            world.bring_back(next(iter(world.down)))
        world.step()
        world.look()
    for node in [*world.down]:
        world.bring_back(node)
    world.loss = 0.0
    for _ in range(3000):
        world.step()
        world.look()
        if world.is_whole:
            break
    assert world.is_whole, (world.isr, world.leader, [node.replicas.find(NAME) for node in world.nodes.values()])
    held = [b"".join(node.segments().values()) for node in world.nodes.values()]
    assert held[0] == held[1] == held[2]
    assert crashes
    assert world.acked
    assert all(value in held[0] for value in world.acked)
