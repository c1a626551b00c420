"""The protocol of replication under a seed: pure machines over list-logs, a controller, a network that fails.

    client ──▶ Leader ◀── fetch ── Follower          one partition; virtual time; one queue of events
                 │ proposal    ▲ order
                 ▼             │
              controller: elections, judge_proposal, over the cluster's image

Everything that decides is what a broker runs: `partition.leader`, `partition.follower`, `partition.replica_fetch`,
`controller.elections`, `controller.alter_partition`. This file is only the world around them: who is alive, which
message arrives when, and what must hold after each event. Messages between two nodes keep their order while they are
on one connection; orders and lists of live brokers carry versions besides.

    history = Protocol(seed).run()
    history.trace         the same for the same seed
    history.rare          how often each rare state was seen

Raises Violation, which names the seed and the last events.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from logkernel.attrs_lite import evolve, field, mutable
from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.controller import elections
from logkernel.controller.alter_partition import judge_proposal
from logkernel.controller.image import NO_LEADER, ClusterImage, Node, Partition, Topic, node_change, partition_change
from logkernel.errors import FencedLeaderEpoch, IneligibleReplica, KafkaError, OffsetOutOfRange
from logkernel.partition.effects import Effects
from logkernel.partition.follower import FetchPosition, Follower
from logkernel.partition.leader import Leader
from logkernel.partition.replica_fetch import judge_fetch
from logkernel.testing.simulation.list_log import ListLog
from logkernel.vocabulary import BatchFacts, IsrProposal

TOPIC: Final = "t"
CONTROLLER: Final = 0
LAG_MS: Final = 400
SESSION_MS: Final = 600
FETCH_MS: Final = 20
RETRY_MS: Final = 150

RARE: Final = (
    "diverging", "fenced fetch", "unknown epoch", "reverted proposal", "stuck proposal", "expanded", "shrunk",
    "restarted empty", "zombie write", "duplicate", "session lost", "bounced", "controller died",
    "no leader", "proposal repeated", "answer to an older fetch",
)  # fmt: skip
"""States that a run of many seeds has to reach, each of them."""


class Violation(AssertionError):
    """An invariant does not hold. Says the seed that shows it."""


class PreferInSync:
    """The election that loses nothing: the first of the assignment that is alive and in sync."""

    def elect(self, candidates: Candidates) -> Elected | None:
        for node in candidates.assignment:
            if node in candidates.isr and node in candidates.alive:
                return Elected(node, tuple(member for member in candidates.isr if member in candidates.alive))
        return None


@mutable
class Order:
    """LeaderAndIsr and UpdateMetadata in one: what the controller says of the partition."""

    broker_epoch: int
    version: int
    row: Partition
    live: frozenset[int]


@mutable
class Broker:
    node: int
    log: ListLog = field(factory=ListLog)
    running: bool = True
    paused: bool = False
    broker_epoch: int = 0
    heard: int = -1
    """The version of the last order."""
    live: frozenset[int] = frozenset()
    leader: Leader | None = None
    follower: Follower | None = None
    asked: FetchPosition | None = None
    asked_ms: int = 0
    held: list[tuple[str, Any]] = field(factory=list)
    """Messages that wait for the end of a pause."""
    proposed_ms: int = 0
    torn: int | None = None
    """Where a power cut tore its log while it was in the ISR; None again once the ISR is without it."""


@mutable
class Write:
    """A client's batch on its way: `number` is what it writes."""

    number: int
    producer: int
    sequence: int
    count: int
    offset: int = -1


@mutable
class Odds:
    """How likely each fault is in this seed (swarm: about half of them are off)."""

    drop: float
    slow: float
    cut: float
    isolate: float
    kill: float
    power: float
    pause: float
    bounce: float
    retention: float
    controller: float
    flush: float


class Protocol:
    """One history. `strategy` decides elections; `nodes` is the number of brokers (drawn by default)."""

    def __init__(
        self, seed: int, *, strategy: ElectionStrategy | None = None, steps: int = 700, nodes: int | None = None
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.strategy = strategy or PreferInSync()
        self.steps = steps
        count = nodes or self.random.choice((2, 3, 3, 3, 4))
        factor = count if count < 4 else self.random.choice((3, 4))
        self.min_isr = self.random.randint(1, min(2, factor))
        self.odds = self._draw()
        self.now_ms = 1000
        self.queue: list[tuple[int, int, Callable[[], None]]] = []
        self.serial = 0
        self.rare: Counter[str] = Counter()
        self.trace: list[str] = []
        self.cuts: set[tuple[int, int]] = set()
        self.last_arrival: dict[tuple[int, int], int] = {}
        self.connection: Counter[tuple[int, int]] = Counter()
        self.brokers = {node: Broker(node) for node in range(1, count + 1)}
        # the controller
        self.image = ClusterImage()
        self.sessions: dict[int, int] = {}
        """Node → broker epoch, of those whose session lives."""
        self.next_broker_epoch = 1
        self.version = 0
        self.acknowledged_orders: dict[int, int] = {}
        self.controller_up = True
        replicas = tuple(self.random.sample(sorted(self.brokers), factor))
        for node in self.brokers:
            self.image.apply(node_change(Node(node, {})))
        topic = Topic(TOPIC, UUID(int=1), [Partition(replicas, replicas, replicas[0], 0, 0)])
        self.image.apply(topic.change())
        for broker in self.brokers.values():
            self._register(broker)
        # what was promised
        self.acked: dict[int, Write] = {}
        """Number → the write that was acknowledged with acks=all."""
        self.committed: dict[int, tuple[int, int]] = {}
        """Offset → (epoch, number) as first seen below a watermark."""
        self.leaders: dict[int, int] = {}
        """Leader epoch → who led in it."""
        self.watermarks: dict[tuple[int, int], int] = {}
        self.pardoned = 2**62
        """From this offset on records may be lost: a replica that a power cut tore stayed in the ISR as its last
        member, and leads (KIP-966: a coordination by ZooKeeper cannot mend that)."""
        self.numbers = 0
        self.clients = [self._client(producer) for producer in range(1, 3)]
        self.healing = False

    def _draw(self) -> Odds:
        chance = self.random

        storm = chance.choice((1, 1, 3))

        def maybe(most: float) -> float:
            return chance.random() * most * storm if chance.random() < 0.5 else 0.0

        return Odds(
            drop=maybe(0.1), slow=maybe(0.3), cut=maybe(0.02), isolate=maybe(0.03), kill=maybe(0.015),
            power=maybe(0.008),
            pause=maybe(0.015), bounce=maybe(0.01), retention=maybe(0.03), controller=maybe(0.01), flush=maybe(0.1),
        )  # fmt: skip

    # ------------------------------------------------------------ time and messages

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.serial += 1
        heapq.heappush(self.queue, (self.now_ms + delay_ms, self.serial, action))

    def send(self, source: int, target: int, kind: str, body: Any) -> None:
        """Messages of one connection arrive in order or not at all; a lost one breaks the connection."""
        link = (source, target)
        if link in self.cuts or self.random.random() < (0 if self.healing else self.odds.drop):
            self.connection[link] += 1
            return
        delay = self.random.randint(1, 8)
        if not self.healing and self.random.random() < self.odds.slow:
            delay += self.random.randint(20, 300)
        arrival = max(self.now_ms + delay, self.last_arrival.get(link, 0) + 1)
        self.last_arrival[link] = arrival
        age = self.connection[link]
        self.later(arrival - self.now_ms, lambda: self._arrive(link, age, kind, body))

    def _arrive(self, link: tuple[int, int], age: int, kind: str, body: Any) -> None:
        source, target = link
        if age != self.connection[link]:
            return
        if target == CONTROLLER:
            if self.controller_up:
                self.note(f"{kind} {source}→controller")
                self._at_controller(source, kind, body)
            return
        broker = self.brokers[target]
        if broker.running and broker.paused:
            broker.held.append((kind, (source, body)))
        elif broker.running:
            self.note(f"{kind} {source}→{target}")
            self._at_broker(broker, kind, source, body)

    def note(self, text: str) -> None:
        self.trace.append(f"{self.now_ms} {text}")

    # ------------------------------------------------------------ the run

    def run(self) -> Protocol:
        for broker in self.brokers.values():
            self._tick(broker)
        self._controller_tick()
        for start in self.clients:
            start()
        self.later(50, self._fault)
        for _ in range(self.steps):
            self._step()
        self._heal()
        return self

    def _step(self) -> None:
        due, _, action = heapq.heappop(self.queue)
        self.now_ms = max(self.now_ms, due)
        action()
        self._check()

    def _heal(self) -> None:
        """No more faults: everybody comes back, all logs become one, and clients make progress."""
        self.healing = True
        self.note("heal")
        self.cuts.clear()
        self.controller_up = True
        for broker in self.brokers.values():
            if not broker.running:
                self._start(broker)
            if broker.paused:
                self._resume(broker)
        written = len(self.acked)
        deadline = self.now_ms + 30_000
        while self.now_ms < deadline:
            self._step()
            if len(self.acked) > written + 3 and self._is_whole():
                return
        self.fail(f"healed, but not whole: {self.row}, {[(b.node, b.log.end) for b in self.brokers.values()]}")

    def _is_whole(self) -> bool:
        row = self.row
        if row.leader == NO_LEADER or set(row.isr) != set(row.replicas):
            return False
        leader = self.brokers[row.leader].leader
        if leader is None or leader.leader_epoch != row.leader_epoch:
            return False
        for node in row.isr:
            self._check_agrees(self.brokers[node].log, self.brokers[row.leader].log, leader.high_watermark)
        return True

    def _check_agrees(self, one: ListLog, other: ListLog, end: int) -> None:
        """In-sync replicas hold the same below the watermark."""
        start = max(one.start, other.start)
        logs = [
            [(facts.base_offset, facts.leader_epoch, facts.position) for facts in log.entries
             if start <= facts.base_offset and facts.last_offset < end]
            for log in (one, other)
        ]  # fmt: skip
        if logs[0] != logs[1]:
            differ = next((pair for pair in zip(*logs, strict=False) if pair[0] != pair[1]), "one is shorter")
            self.fail(f"in-sync logs differ below {end}: {differ}")

    @property
    def row(self) -> Partition:
        return self.image.topics[TOPIC].partitions[0]

    # ------------------------------------------------------------ brokers

    def _tick(self, broker: Broker) -> None:
        if broker.running and not broker.paused:
            if broker.leader is not None and self.now_ms - broker.proposed_ms >= RETRY_MS:
                broker.proposed_ms = self.now_ms
                if broker.leader.sync is not None and broker.leader.sync.proposal is not None:
                    self.rare["proposal repeated"] += 1
                self._carry_out(broker, broker.leader.on_tick(self.now_ms))
                if broker.leader is not None:
                    self._carry_out(broker, broker.leader.on_expired(self.now_ms))
            if broker.follower is not None:
                self._fetch(broker)
            if self.random.random() < self.odds.flush:
                broker.log.flush()
            broker.log.high_watermark = (broker.leader or broker.follower or broker.log).high_watermark
        self.later(FETCH_MS, lambda: self._tick(broker))

    def _fetch(self, broker: Broker) -> None:
        follower = broker.follower
        if follower is None or (broker.asked is not None and self.now_ms - broker.asked_ms < RETRY_MS):
            return
        position = follower.next_fetch(self.now_ms)
        if position is not None:
            broker.asked, broker.asked_ms = position, self.now_ms
            self.send(broker.node, follower.leader, "fetch", (position, broker.broker_epoch))

    def _at_broker(self, broker: Broker, kind: str, source: int, body: Any) -> None:
        match kind:
            case "order":
                self._take_order(broker, body)
            case "fetch":
                self._answer_fetch(broker, source, *body)
            case "records" | "diverging" | "error":
                self._take_answer(broker, kind, *body)
            case "accepted":
                if broker.leader is not None:
                    before = broker.leader.isr
                    self._carry_out(broker, broker.leader.on_isr_accepted(*body))
                    if len(broker.leader.isr) > len(before):
                        self.rare["expanded"] += 1
                    elif len(broker.leader.isr) < len(before):
                        self.rare["shrunk"] += 1
            case "refused":
                if broker.leader is not None:
                    proposal, revert = body
                    self.rare["reverted proposal" if revert else "stuck proposal"] += 1
                    broker.leader.on_isr_refused(proposal, revert=revert)
            case _:
                self._produce(broker, *body)

    def _take_order(self, broker: Broker, order: Order) -> None:
        if order.broker_epoch != broker.broker_epoch:
            return
        self.send(broker.node, CONTROLLER, "told", order.version)
        if order.version < broker.heard:
            return
        broker.heard = order.version
        broker.live = order.live
        if broker.leader is not None:
            broker.leader.on_live_brokers(order.live)
        row = order.row
        if broker.node not in row.replicas:
            return
        if row.leader == broker.node:
            self._lead(broker, row)
        else:
            self._follow(broker, row)

    def _lead(self, broker: Broker, row: Partition) -> None:
        log = broker.log
        if broker.leader is not None:
            if row.leader_epoch > broker.leader.leader_epoch:
                log.begin_epoch(row.leader_epoch)
                self._led(broker.node, row.leader_epoch)
            effects = broker.leader.on_order(row.leader_epoch, row.replicas, row.isr, row.partition_epoch, self.now_ms)
            self._carry_out(broker, effects)
            return
        known = -1 if broker.follower is None else broker.follower.leader_epoch
        if row.leader_epoch <= known:
            return
        watermark = log.high_watermark if broker.follower is None else broker.follower.high_watermark
        broker.follower = broker.asked = None
        log.begin_epoch(row.leader_epoch)
        self._led(broker.node, row.leader_epoch)
        broker.leader = Leader(
            node_id=broker.node, leader_epoch=row.leader_epoch, isr=row.isr, log_start=log.start, log_end=log.end,
            high_watermark=watermark, min_isr=self.min_isr, producers=log.producers, replicas=row.replicas,
            partition_epoch=row.partition_epoch, lag_ms=LAG_MS, mono_ms=self.now_ms,
        )  # fmt: skip
        broker.leader.on_live_brokers(broker.live)

    def _led(self, node: int, epoch: int) -> None:
        self.note(f"{node} leads in {epoch}")
        if self.leaders.setdefault(epoch, node) != node:
            self.fail(f"{node} and {self.leaders[epoch]} both lead in epoch {epoch}")
        torn = self.brokers[node].torn
        if torn is not None:
            self.pardoned = min(self.pardoned, torn)

    def _follow(self, broker: Broker, row: Partition) -> None:
        log = broker.log
        if broker.leader is not None:
            if row.leader_epoch <= broker.leader.leader_epoch:
                return
            watermark = broker.leader.high_watermark
            self._carry_out(broker, broker.leader.on_resigned())
            broker.leader = None
        elif broker.follower is not None:
            if broker.follower.on_leader(row.leader, row.leader_epoch):
                broker.asked = None
            return
        else:
            watermark = log.high_watermark
        broker.asked = None
        broker.follower = Follower(
            leader=row.leader, leader_epoch=row.leader_epoch, log_start=log.start, log_end=log.end,
            high_watermark=watermark, epochs=log.epochs,
        )  # fmt: skip

    def _answer_fetch(self, broker: Broker, source: int, asked: FetchPosition, broker_epoch: int) -> None:
        leader, log = broker.leader, broker.log
        if leader is None:
            self.send(broker.node, source, "error", (asked, None))
            return
        is_replica = leader.sync is not None and source in leader.sync.followers
        verdict = judge_fetch(
            asked, is_replica=is_replica, leader_epoch=leader.leader_epoch, log_start=log.start, log_end=log.end,
            epochs=log.epochs,
        )  # fmt: skip
        if verdict.error is not None:
            if isinstance(verdict.error, FencedLeaderEpoch):
                self.rare["fenced fetch"] += 1
            elif not isinstance(verdict.error, OffsetOutOfRange):
                self.rare["unknown epoch"] += 1
            ends = (log.start, log.end) if isinstance(verdict.error, OffsetOutOfRange) else None
            self.send(broker.node, source, "error", (asked, ends))
        elif verdict.diverging is not None:
            self.send(broker.node, source, "diverging", (asked, verdict.diverging))
        else:
            self._carry_out(broker, leader.on_fetch(source, asked.offset, asked.log_start, self.now_ms, broker_epoch))
            batches = log.read(asked.offset, self.random.randint(1, 4))
            body = (asked, [evolve(facts) for facts in batches], leader.high_watermark, log.start)
            self.send(broker.node, source, "records", body)

    def _take_answer(self, broker: Broker, kind: str, asked: FetchPosition, *body: Any) -> None:
        follower, log = broker.follower, broker.log
        if broker.asked == asked:
            broker.asked = None
        if follower is None:
            return
        if asked != follower.next_fetch(self.now_ms):
            self.rare["answer to an older fetch"] += 1
        if kind == "records":
            batches, watermark, start = body
            effects = follower.on_records(asked, batches)
            if effects.append:
                log.append(effects.append)
                for facts in effects.append:
                    log.producers.replay(facts)
                follower.on_appended(effects.append)
            moved = follower.on_progress(asked, watermark, start)
            if moved is not None:
                log.advance_start(moved)
        elif kind == "diverging":
            self._cut(broker, follower.on_diverging(asked, body[0].epoch, body[0].offset), "diverging")
        elif body[0] is not None:
            effects = follower.on_out_of_range(asked, *body[0])
            self._cut(broker, effects, "out of range")
            follower.on_error(asked, self.now_ms, RETRY_MS)
        else:
            follower.on_error(asked, self.now_ms, RETRY_MS)

    def _cut(self, broker: Broker, effects: Effects, why: str) -> None:
        follower = broker.follower
        if follower is None:
            return
        if effects.restart is not None:
            self.rare["restarted empty"] += 1
            broker.log.restart(effects.restart)
            follower.on_restarted(effects.restart)
        elif effects.truncate is not None:
            self.rare[why] += 1
            self.note(f"{broker.node} cuts to {effects.truncate}")
            broker.log.truncate(effects.truncate)
            follower.on_truncated(broker.log.end)

    def _carry_out(self, broker: Broker, effects: Effects) -> None:
        """In the order of the fields; what appends is done by `_produce`."""
        if effects.propose is not None:
            broker.proposed_ms = self.now_ms
            self.send(broker.node, CONTROLLER, "proposal", effects.propose)
        for ticket, outcome in effects.answer:
            write, answer = ticket
            answer(write, outcome.error_code, outcome.base_offset)

    def _produce(self, broker: Broker, write: Write, answer: Callable[[Write, int, int], None]) -> None:
        leader, log = broker.leader, broker.log
        if leader is None:
            return answer(write, -1, -1)
        facts = BatchFacts(
            position=write.number, size=100, base_offset=0, last_offset=write.count - 1, leader_epoch=-1, magic=2,
            attributes=0, base_timestamp_ms=0, max_timestamp_ms=0, producer_id=write.producer, producer_epoch=0,
            base_sequence=write.sequence, count=write.count,
        )  # fmt: skip
        if leader.leader_epoch < self.row.leader_epoch:
            self.rare["zombie write"] += 1
        ticket = (write, answer)
        effects = leader.on_produce([facts], -1, ticket)
        if effects.append:
            log.append(effects.append)
            self._carry_out(broker, leader.on_appended(effects.append, -1, ticket, 0, self.now_ms + 1500))
        else:
            if effects.answer and effects.answer[0][1].error_code == 0:
                self.rare["duplicate"] += 1
                if effects.answer[0][1].base_offset + write.count > leader.high_watermark:
                    return answer(write, -1, -1)  # Kafka parks it; the client asks again
            self._carry_out(broker, effects)
        return None

    # ------------------------------------------------------------ clients

    def _client(self, producer: int) -> Callable[[], None]:
        state = {"producer": producer, "sequence": 0, "target": self.row.leader}

        def begin() -> None:
            self.numbers += 1
            write = Write(self.numbers, state["producer"], state["sequence"], self.random.randint(1, 3))
            attempt(write, 0)

        def attempt(write: Write, tries: int) -> None:
            target = state["target"]  # until it refuses, or does not answer
            done = [False]

            def answer(back: Write, code: int, offset: int) -> None:
                if done[0]:
                    return
                if self.random.random() < (0 if self.healing else self.odds.drop):
                    return  # lost on its way back
                done[0] = True
                if code == 0:
                    state["sequence"] += write.count
                    self.acked[write.number] = evolve(write, offset=offset)
                    self.note(f"acked {write.number} at {offset}")
                    self.later(self.random.randint(1, 60), begin)
                else:
                    self.later(self.random.randint(20, 200), again)

            def again() -> None:
                known = self.row.leader if self.random.random() < 0.8 else self.random.choice(sorted(self.brokers))
                state["target"] = known
                if tries > 40:  # another life: nothing is known of the last write
                    state["producer"] += 10
                    state["sequence"] = 0
                    begin()
                else:
                    attempt(write, tries + 1)

            def timeout() -> None:
                if not done[0]:
                    done[0] = True
                    again()

            self.later(2000, timeout)
            broker = self.brokers.get(target)
            if broker is not None and broker.running:
                if broker.paused:
                    broker.held.append(("produce", (0, (write, answer))))
                else:
                    self.later(self.random.randint(1, 5), lambda: self._ask(broker, write, answer))

        return begin

    def _ask(self, broker: Broker, write: Write, answer: Callable[[Write, int, int], None]) -> None:
        if broker.running and not broker.paused:
            self._produce(broker, write, answer)

    # ------------------------------------------------------------ the controller

    def _strategies(self, topic: str) -> tuple[ElectionStrategy, bool]:
        return self.strategy, False

    def _commit(self, result: Any) -> None:
        for change in result.changes:
            if change.kind != "broker":
                self.image.apply(change)
        self._changed()

    def _changed(self) -> None:
        self.version += 1
        row = self.row
        for broker in self.brokers.values():
            if broker.node not in row.isr:
                broker.torn = None
        self.note(f"row leader {row.leader} epoch {row.leader_epoch} isr {row.isr}")
        if row.leader == NO_LEADER:
            self.rare["no leader"] += 1

    def _register(self, broker: Broker) -> None:
        """A new incarnation: whatever the last one led is elected anew (a bounce is a failure, then a start)."""
        node = broker.node
        if node in self.sessions:
            self.rare["bounced"] += 1
            del self.sessions[node]
            self._commit(elections.broker_gone(self.image, node, self._strategies, self.sessions.keys()))
        broker.broker_epoch = self.sessions[node] = self.next_broker_epoch
        self.next_broker_epoch += 1
        broker.heard = -1
        self.acknowledged_orders[node] = -1
        self._commit(elections.broker_started(self.image, node, self._strategies, self.sessions.keys()))

    def _lose_session(self, node: int, broker_epoch: int, notice_ms: int = 100) -> None:
        """The broker itself learns of it within `notice_ms`."""
        if self.sessions.get(node) == broker_epoch:
            self.rare["session lost"] += 1
            self.note(f"{node} lost its session")
            del self.sessions[node]
            self._commit(elections.broker_gone(self.image, node, self._strategies, self.sessions.keys()))
            broker = self.brokers[node]
            if broker.running and not broker.paused and broker.broker_epoch == broker_epoch:
                self.later(self.random.randint(5, notice_ms), lambda: self._rejoin(broker))

    def _controller_tick(self) -> None:
        if self.controller_up:
            live = frozenset(self.sessions)
            for node, epoch in self.sessions.items():
                if self.acknowledged_orders[node] < self.version:
                    self.send(CONTROLLER, node, "order", Order(epoch, self.version, evolve(self.row), live))
        self.later(40, self._controller_tick)

    def _at_controller(self, source: int, kind: str, body: Any) -> None:
        if kind == "told":
            if source in self.acknowledged_orders:
                self.acknowledged_orders[source] = max(self.acknowledged_orders[source], body)
            return
        proposal: IsrProposal = body
        try:
            new = judge_proposal(source, proposal, self.row, self.sessions)
        except IneligibleReplica:
            self.send(CONTROLLER, source, "refused", (proposal, True))
        except KafkaError:
            self.send(CONTROLLER, source, "refused", (proposal, False))
        else:
            if new is not self.row:
                self.image.apply(partition_change(TOPIC, 0, new))
                self._changed()
            self.send(CONTROLLER, source, "accepted", (proposal, new.partition_epoch))

    # ------------------------------------------------------------ faults

    def _fault(self) -> None:
        if self.healing:
            return
        chance, odds = self.random, self.odds
        for broker in self.brokers.values():
            if broker.running and chance.random() < odds.kill:
                self._stop(broker, power=False)
            if broker.running and chance.random() < odds.power:
                self._stop(broker, power=True)
            if broker.running and not broker.paused and chance.random() < odds.pause:
                self._pause(broker)
            if broker.running and chance.random() < odds.bounce:
                self._stop(broker, power=False, soon=True)
            if broker.leader is not None and broker.running and chance.random() < odds.retention:
                start = chance.randint(broker.log.start, broker.leader.high_watermark)
                broker.log.advance_start(start)
                broker.leader.on_log_start(start)
        if chance.random() < odds.cut:
            nodes = [CONTROLLER, *self.brokers]
            one, other = chance.sample(nodes, 2)
            self.note(f"cut {one}→{other}")
            links = {(one, other)} if chance.random() < 0.4 else {(one, other), (other, one)}
            self.cuts |= links
            for link in links:
                self.connection[link] += 1
            self.later(chance.randint(100, 2500), lambda: self.cuts.difference_update(links))
        leaders = [broker.node for broker in self.brokers.values() if broker.leader is not None]
        if leaders and chance.random() < odds.isolate:
            self._isolate(chance.choice(leaders))
        if self.controller_up and chance.random() < odds.controller:
            self.rare["controller died"] += 1
            self.controller_up = False
            self.later(chance.randint(100, 800), self._next_controller)
        self.later(chance.randint(30, 120), self._fault)

    def _isolate(self, node: int) -> None:
        """A leader that only its clients reach: its session ends, and it goes on believing."""
        self.note(f"isolate {node}")
        others = [other for other in (CONTROLLER, *self.brokers) if other != node]
        links = {(node, other) for other in others} | {(other, node) for other in others}
        self.cuts |= links
        for link in links:
            self.connection[link] += 1
        epoch = self.brokers[node].broker_epoch
        length = self.random.randint(200, 2500)
        if length > SESSION_MS:
            self.later(SESSION_MS, lambda: self._lose_session(node, epoch, notice_ms=length))
        self.later(length, lambda: self.cuts.difference_update(links))

    def _next_controller(self) -> None:
        """Another one takes over: it knows what was written, and not whom its predecessor told."""
        self.controller_up = True
        for node in self.brokers:
            for link in ((node, CONTROLLER), (CONTROLLER, node)):
                self.connection[link] += 1
            self.acknowledged_orders[node] = -1
        self._changed()

    def _stop(self, broker: Broker, *, power: bool, soon: bool = False) -> None:
        self.note(f"{'power cut' if power else 'kill'} {broker.node}")
        broker.running = broker.paused = False
        broker.held.clear()
        broker.leader = broker.follower = broker.asked = None
        for other in (CONTROLLER, *self.brokers):
            self.connection[broker.node, other] += 1
            self.connection[other, broker.node] += 1
        if power:
            if broker.node in self.row.isr and broker.log.flushed < broker.log.end:
                broker.torn = broker.log.flushed
            broker.log.cut_power()
        else:
            broker.log.kill()
        epoch = broker.broker_epoch
        if not soon:
            self.later(self.random.randint(SESSION_MS // 2, SESSION_MS), lambda: self._lose_session(broker.node, epoch))
        away = self.random.randint(20, 100) if soon else self.random.randint(100, 3000)
        self.later(away, lambda: self._start(broker))

    def _start(self, broker: Broker) -> None:
        if not broker.running:
            self.note(f"start {broker.node}")
            broker.running = True
            self._register(broker)

    def _pause(self, broker: Broker) -> None:
        self.note(f"pause {broker.node}")
        broker.paused = True
        epoch = broker.broker_epoch
        length = self.random.randint(50, 1500)
        if length > SESSION_MS:
            self.later(SESSION_MS, lambda: self._lose_session(broker.node, epoch))
        self.later(length, lambda: self._resume(broker))

    def _resume(self, broker: Broker) -> None:
        """It goes on with what it believes; if its session is gone, it registers anew a while later."""
        if not (broker.running and broker.paused):
            return
        self.note(f"resume {broker.node}")
        broker.paused = False
        for kind, (source, body) in broker.held:
            if broker.running:
                self._at_broker(broker, kind, source, body)
        broker.held.clear()
        if self.sessions.get(broker.node) != broker.broker_epoch:
            self.later(self.random.randint(5, 100), lambda: self._rejoin(broker))

    def _rejoin(self, broker: Broker) -> None:
        if broker.running and self.sessions.get(broker.node) != broker.broker_epoch:
            if broker.leader is not None:
                broker.log.high_watermark = broker.leader.high_watermark
                self._carry_out(broker, broker.leader.on_resigned())
            elif broker.follower is not None:
                broker.log.high_watermark = broker.follower.high_watermark
            broker.leader = broker.follower = broker.asked = None
            self._register(broker)

    # ------------------------------------------------------------ what must hold

    def _check(self) -> None:
        for broker in self.brokers.values():
            leader = broker.leader
            if leader is None:
                continue
            key = (broker.node, leader.leader_epoch)
            before = self.watermarks.get(key, 0)
            if leader.high_watermark < before:
                self.fail(f"the watermark of {broker.node} fell from {before} to {leader.high_watermark}")
            if leader.high_watermark > before:
                self._note_committed(broker, leader, before)
                self.watermarks[key] = leader.high_watermark

    def _note_committed(self, broker: Broker, leader: Leader, before: int) -> None:
        for facts in broker.log.read(before, 1 << 30):
            if facts.last_offset >= leader.high_watermark:
                break
            if facts.base_offset >= self.pardoned:
                break
            mark = (facts.leader_epoch, facts.position)
            if self.committed.setdefault(facts.base_offset, mark) != mark:
                known = self.committed[facts.base_offset]
                self.fail(f"{facts.base_offset} of leader {broker.node} is {mark}, and was committed as {known}")
        if leader.leader_epoch == self.row.leader_epoch:
            self._check_acked(broker, leader)

    def _check_acked(self, broker: Broker, leader: Leader) -> None:
        held = {facts.position: facts.base_offset for facts in broker.log.entries}
        if len(held) < len(broker.log.entries):
            self.fail(f"a write lies twice in the log of {broker.node}")
        for number, write in self.acked.items():
            if write.offset + write.count <= broker.log.start or write.offset >= self.pardoned:
                continue
            if held.get(number) != write.offset:
                found = held.get(number)
                self.fail(f"{number} was acknowledged at {write.offset}; leader {broker.node} has it at {found}")

    def fail(self, text: str) -> None:
        recent = "\n".join(deque(self.trace, 60))
        raise Violation(f"seed {self.seed}: {text}\n{recent}")
