"""Every history of a small scope: two brokers, a few records, few faults, in whatever order.

Seeds sample long histories; here all short ones are walked, breadth first, over the same machines. What happens next is
one of the choices that a state offers:

    write n        a client's batch reaches n, which leads
    tick n         n fetches, proposes once more, or finds out who lags
    lag n          so much time passes at n that whoever has not caught up lags; then a tick
    deliver m      a message arrives, in any order
    drop m         a message is lost
    flush n        n makes its log durable
    kill n, power n    n dies; with `power`, what was not flushed is gone
    start n        n is there again, in another life
    gone n, came n     the controller deals with it
    order n        n hears what is written down

A state is reached again by running its choices anew, so nothing has to be copied. Two states are one if machines, logs,
messages and what is left of the budget are equal. Raises Violation, whose trace are the choices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from logkernel.attrs_lite import frozen, mutable
from logkernel.contracts import ElectionStrategy, MetadataChange
from logkernel.controller import election_rules
from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import (
    BrokerRegistration,
    ClusterImage,
    Partition,
    Topic,
    incarnation_change,
    partition_change,
    registration_change,
)
from logkernel.errors import IneligibleReplica, KafkaError, NotController
from logkernel.testing.simulation.protocol.messages import INCARNATION, TOPIC, ClientBatch, Standing
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.replica import Replica
from logkernel.testing.simulation.protocol.schedule import World
from logkernel.testing.simulation.protocol.timeline import Timeline

NODES: Final = (1, 2)
LAG_MS: Final = 10**9
STEP_MS: Final = 200
"""Each tick is later than any pause before an attempt."""
CONTROLLER: Final = 0
CLIENT: Final = -1
Choice = tuple[str, int]
"""(what, node or number of the message)."""


@frozen
class Scope:
    """How much may happen in one history."""

    records: int = 3
    deaths: int = 1
    drops: int = 1
    lags: int = 1
    flushes: int = 1
    min_isr: int = 1


@mutable
class Explored:
    """What a search came to."""

    states: int = 0
    histories: int = 0
    """Choices that were tried."""
    depth: int = 0
    """Choices of the longest history."""


class Pile(Network):
    """Messages that are under way: whoever chooses takes one."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.messages: list[tuple[int, int, str, Any]] = []

    def send(self, source: int, target: int, kind: str, body: Any) -> None:
        if target != CLIENT:
            self.messages.append((source, target, kind, body))


class SmallWorld:
    def __init__(self, scope: Scope, strategy: ElectionStrategy) -> None:
        self.left = {
            "write": scope.records, "die": scope.deaths, "drop": scope.drops, "lag": scope.lags, "flush": scope.flushes
        }  # fmt: skip
        self.strategy = strategy
        self.timeline = Timeline(0)
        self.promises = Promises(self.timeline)
        self.pile = Pile(self.timeline)
        world = World(2, NODES, scope.min_isr, False, 1, 1, 1, 0.0, 1, LAG_MS, 0)
        self.replicas = {
            node: Replica(self.timeline, self.pile, self.promises, Standing(node, min_isr=scope.min_isr), world)
            for node in NODES
        }
        self.promises.replicas = self.replicas
        self.running = set(NODES)
        self.dealt: dict[int, int] = {}
        self.lives = dict.fromkeys(NODES, 0)
        self.numbers = 0
        self.image = ClusterImage()
        for node in NODES:
            self.image.apply(registration_change(BrokerRegistration(node, {})))
        self._write_down([Topic(TOPIC, UUID(int=1), [Partition(NODES, NODES, 1, 0, 0)]).change()])
        for node in NODES:
            self._start(node)
            self._came(node)
        for node in NODES:
            self._order(node)

    # ------------------------------------------------------------ choices

    def choices(self) -> Iterator[Choice]:
        left, row = self.left, self.image.topics[TOPIC].partitions[0]
        for number in range(len(self.pile.messages)):
            yield "deliver", number
            if left["drop"]:
                yield "drop", number
        for node in NODES:
            replica, runs = self.replicas[node], node in self.running
            if not runs:
                yield "start", node
                if node in self.dealt:
                    yield "gone", node
                continue
            if self.dealt.get(node) != self.lives[node]:
                yield ("gone" if node in self.dealt else "came"), node
            elif row.leader_epoch > replica.leader_epoch:
                yield "order", node
            if replica.leader is not None and left["write"]:
                yield "write", node
            if replica.leader is not None and left["lag"]:
                yield "lag", node
            if self._has_something_to_ask(replica):
                yield "tick", node
            if left["flush"] and replica.log.flushed < replica.log.end:
                yield "flush", node
            if left["die"]:
                yield "kill", node
                if replica.log.flushed < replica.log.end:
                    yield "power", node

    def _has_something_to_ask(self, replica: Replica) -> bool:
        """Not while a message of it, or for it, is under way."""
        node = replica.node
        if any(node in message[:2] for message in self.pile.messages):
            return False
        if replica.leader is not None:
            sync = replica.leader.sync
            return sync is not None and sync.proposal is not None
        return replica.follower is not None and replica.follower.leader > 0

    def choose(self, choice: Choice) -> None:
        what, number = choice
        self.timeline.note(f"{what} {number}")
        match what:
            case "deliver":
                self._deliver(*self.pile.messages.pop(number))
            case "drop":
                self.left["drop"] -= 1
                del self.pile.messages[number]
            case "write":
                self.left["write"] -= 1
                self.numbers += 1
                self.replicas[number].on_produce(ClientBatch(self.numbers, CLIENT, self.numbers, 0, 0, 1))
            case "tick":
                self._tick(number)
            case "lag":
                self.left["lag"] -= 1
                self.replicas[number].standing.skew_ms += LAG_MS + 1
                self._tick(number)
            case "flush":
                self.left["flush"] -= 1
                self.replicas[number].log.flush()
            case "kill" | "power":
                self.left["die"] -= 1
                self._die(number, power=what == "power")
            case "start":
                self._start(number)
            case "gone":
                self._gone(number)
            case "came":
                self._came(number)
            case "order":
                self._order(number)
        self.promises.check(self.replicas.values())

    # ------------------------------------------------------------ brokers

    def _tick(self, node: int) -> None:
        self.timeline.advance(STEP_MS)
        self.replicas[node].tick()

    def _die(self, node: int, *, power: bool) -> None:
        self.running.discard(node)
        self.replicas[node].stop(power=power)
        self.pile.messages = [message for message in self.pile.messages if message[1] != node]

    def _start(self, node: int) -> None:
        self.running.add(node)
        self.lives[node] += 1
        self.replicas[node].standing.broker_epoch = self.lives[node]

    def _order(self, node: int) -> None:
        self.replicas[node].order(self.image.topics[TOPIC].partitions[0])

    def _deliver(self, source: int, target: int, kind: str, body: Any) -> None:
        if target == CONTROLLER:
            self._judge(source, *body)
            return
        replica = self.replicas[target]
        match kind:
            case "fetch":
                replica.on_fetch(source, *body)
            case "records":
                replica.on_records(*body)
            case "diverging":
                replica.on_diverging(*body)
            case "error":
                replica.on_fetch_error(*body)
            case "accepted":
                replica.on_accepted(*body)
            case _:
                replica.on_refused(*body)

    # ------------------------------------------------------------ controller

    def _strategies(self, topic: str) -> tuple[ElectionStrategy, bool]:
        return self.strategy, False

    def _gone(self, node: int) -> None:
        alive = [other for other, life in self.dealt.items() if other in self.running and life == self.lives[other]]
        del self.dealt[node]
        gone = election_rules.broker_gone(self.image, node, self._strategies, alive)
        self._carry_out(gone, MetadataChange(INCARNATION, str(node), None))

    def _came(self, node: int) -> None:
        self.dealt[node] = self.lives[node]
        result = election_rules.broker_started(self.image, node, self._strategies, self.dealt)
        self._carry_out(result, incarnation_change(node, self.lives[node]))

    def _carry_out(self, result: ControllerResult, incarnation: MetadataChange) -> None:
        changes = [change for change in result.changes if change.kind != "broker"]
        self._write_down([*changes, incarnation])
        for replica in self.replicas.values():
            replica.standing.live = frozenset(self.dealt)
            if replica.leader is not None:
                replica.leader.on_live_brokers(replica.standing.live)

    def _write_down(self, changes: list[MetadataChange]) -> None:
        self.image.apply_all(changes)
        self.promises.on_commit(changes)

    def _judge(self, source: int, broker_epoch: int, proposal: Any) -> None:
        row = self.image.topics[TOPIC].partitions[0]
        if self.dealt.get(source) != broker_epoch:
            return
        try:
            new = judge_proposal(source, proposal, row, self.dealt)
        except NotController:
            return
        except KafkaError as error:
            self.pile.send(CONTROLLER, source, "refused", (proposal, isinstance(error, IneligibleReplica)))
            return
        if new is not row:
            self._write_down([partition_change(TOPIC, 0, new)])
        self.pile.send(CONTROLLER, source, "accepted", (proposal, new.partition_epoch))

    # ------------------------------------------------------------ states

    def key(self) -> tuple[Any, ...]:
        row = self.image.topics[TOPIC].partitions[0]
        messages = sorted(repr(message) for message in self.pile.messages)
        return (
            tuple(self.left.values()), tuple(sorted(self.running)), tuple(sorted(self.dealt.items())),
            tuple(self.lives.values()), tuple(row.row()[2:]), tuple(row.isr), tuple(messages),
            tuple(self._replica_key(replica) for replica in self.replicas.values()),
        )  # fmt: skip

    def _replica_key(self, replica: Replica) -> tuple[Any, ...]:
        log, leader, follower = replica.log, replica.leader, replica.follower
        kept = tuple((facts.base_offset, facts.leader_epoch, facts.position) for facts in log.entries)
        role: tuple[Any, ...] = ()
        if leader is not None and leader.sync is not None:
            sync = leader.sync
            members = tuple(
                (node, one.log_end, one.broker_epoch, replica.now_ms - one.caught_up_ms > LAG_MS)
                for node, one in sync.followers.items()
            )
            role = (
                leader.leader_epoch, leader.high_watermark, tuple(sorted(sync.isr)), sync.state, sync.partition_epoch,
                repr(sync.proposal), members,
            )  # fmt: skip
        elif follower is not None:
            role = (follower.leader, follower.leader_epoch, follower.high_watermark, follower.state)
        return kept, log.start, log.end, log.flushed, log.high_watermark, log.epochs.entries, role


def explore(scope: Scope, strategy: ElectionStrategy, *, most_states: int = 10**7) -> Explored:
    """Walk every history of the scope. Raises Violation for the shortest that breaks a promise; RuntimeError where
    there are more states than `most_states`."""
    found = Explored()
    waiting: deque[tuple[Choice, ...]] = deque([()])
    seen = {SmallWorld(scope, strategy).key()}
    while waiting:
        path = waiting.popleft()
        for choice in list(_replayed(scope, strategy, path).choices()):
            found.histories += 1
            world = _replayed(scope, strategy, (*path, choice))
            key = world.key()
            if key not in seen:
                seen.add(key)
                if len(seen) > most_states:
                    raise RuntimeError(f"more than {most_states} states; make the scope smaller")
                waiting.append((*path, choice))
                found.depth = max(found.depth, len(path) + 1)
    found.states = len(seen)
    return found


def _replayed(scope: Scope, strategy: ElectionStrategy, path: tuple[Choice, ...]) -> SmallWorld:
    world = SmallWorld(scope, strategy)
    for choice in path:
        world.choose(choice)
    return world
