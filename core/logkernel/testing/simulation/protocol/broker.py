"""A broker with one replica: its log, and the machine of its role, whose effects are carried out in their order."""

from __future__ import annotations

from typing import Any, Final

from logkernel.attrs_lite import evolve
from logkernel.controller.image import Partition
from logkernel.errors import FencedLeaderEpoch, OffsetOutOfRange
from logkernel.partition.effects import Effects
from logkernel.partition.follower import FetchPosition, Follower
from logkernel.partition.leader import Leader
from logkernel.partition.replica_fetch import judge_fetch
from logkernel.testing.simulation.list_log import ListLog
from logkernel.testing.simulation.protocol.messages import Answer, Order, Write
from logkernel.testing.simulation.protocol.network import CONTROLLER, Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.vocabulary import BatchFacts

LAG_MS: Final = 400
FETCH_MS: Final = 20
RETRY_MS: Final = 150


class Broker:
    def __init__(
        self, node: int, timeline: Timeline, network: Network, promises: Promises, *, min_isr: int, flush: float
    ) -> None:
        """`flush` is how likely the log is flushed at each tick."""
        self.node = node
        self.timeline = timeline
        self.network = network
        self.promises = promises
        self.min_isr = min_isr
        self.flush = flush
        self.log = ListLog()
        self.running = True
        self.paused = False
        self.broker_epoch = 0
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self._heard = -1
        """The version of the last order."""
        self._live: frozenset[int] = frozenset()
        self._asked: FetchPosition | None = None
        self._asked_ms = 0
        self._held: list[tuple[str, int, Any]] = []
        """Messages that wait for the end of a pause."""
        self._proposed_ms = 0

    # ------------------------------------------------------------ life

    def tick(self) -> None:
        timeline = self.timeline
        if self.running and not self.paused:
            if self.leader is not None and timeline.now_ms - self._proposed_ms >= RETRY_MS:
                self._proposed_ms = timeline.now_ms
                if self.leader.sync is not None and self.leader.sync.proposal is not None:
                    timeline.rare["proposal repeated"] += 1
                self._carry_out(self.leader.on_tick(timeline.now_ms))
                if self.leader is not None:
                    self._carry_out(self.leader.on_expired(timeline.now_ms))
            if self.follower is not None:
                self._fetch(self.follower)
            if timeline.random.random() < self.flush:
                self.log.flush()
            self.log.high_watermark = (self.leader or self.follower or self.log).high_watermark
        timeline.later(FETCH_MS, self.tick)

    def registered(self, broker_epoch: int) -> None:
        """A new session: orders begin anew."""
        self.broker_epoch = broker_epoch
        self._heard = -1

    def stop(self, *, power: bool) -> None:
        self.running = self.paused = False
        self._held.clear()
        self.leader = self.follower = self._asked = None
        if power:
            self.log.cut_power()
        else:
            self.log.kill()

    def resume(self) -> None:
        """Go on with what it believes."""
        self.paused = False
        for kind, source, body in self._held:
            if self.running:
                self._take(kind, source, body)
        self._held.clear()

    def resign(self) -> None:
        """Its session is gone: give up every role."""
        if self.leader is not None:
            self.log.high_watermark = self.leader.high_watermark
            self._carry_out(self.leader.on_resigned())
        elif self.follower is not None:
            self.log.high_watermark = self.follower.high_watermark
        self.leader = self.follower = self._asked = None

    def trim(self, start: int) -> None:
        """Retention, on a leader."""
        self.log.advance_start(start)
        if self.leader is not None:
            self.leader.on_log_start(start)

    # ------------------------------------------------------------ messages

    def arrive(self, kind: str, source: int, body: Any) -> None:
        if self.running and self.paused:
            self._held.append((kind, source, body))
        elif self.running:
            self.timeline.note(f"{kind} {source}→{self.node}")
            self._take(kind, source, body)

    def _take(self, kind: str, source: int, body: Any) -> None:
        match kind:
            case "order":
                self._take_order(body)
            case "fetch":
                self._answer_fetch(source, *body)
            case "records" | "diverging" | "error":
                self._take_answer(kind, *body)
            case "accepted":
                self._take_accepted(*body)
            case "refused":
                if self.leader is not None:
                    proposal, revert = body
                    self.timeline.rare["reverted proposal" if revert else "stuck proposal"] += 1
                    self.leader.on_isr_refused(proposal, revert=revert)
            case _:
                self._produce(*body)

    def _take_accepted(self, *accepted: Any) -> None:
        if self.leader is None:
            return
        before = self.leader.isr
        self._carry_out(self.leader.on_isr_accepted(*accepted))
        if len(self.leader.isr) > len(before):
            self.timeline.rare["expanded"] += 1
        elif len(self.leader.isr) < len(before):
            self.timeline.rare["shrunk"] += 1

    # ------------------------------------------------------------ orders

    def _take_order(self, order: Order) -> None:
        if order.broker_epoch != self.broker_epoch:
            return
        self.network.send(self.node, CONTROLLER, "told", order.version)
        if order.version < self._heard:
            return
        self._heard = order.version
        self._live = order.live
        if self.leader is not None:
            self.leader.on_live_brokers(order.live)
        row = order.row
        if self.node not in row.replicas:
            return
        if row.leader == self.node:
            self._lead(row)
        else:
            self._follow(row)

    def _lead(self, row: Partition) -> None:
        log, now_ms = self.log, self.timeline.now_ms
        if self.leader is not None:
            if row.leader_epoch > self.leader.leader_epoch:
                log.begin_epoch(row.leader_epoch)
                self.promises.on_leads(self.node, row.leader_epoch)
            effects = self.leader.on_order(row.leader_epoch, row.replicas, row.isr, row.partition_epoch, now_ms)
            self._carry_out(effects)
            return
        known = -1 if self.follower is None else self.follower.leader_epoch
        if row.leader_epoch <= known:
            return
        watermark = log.high_watermark if self.follower is None else self.follower.high_watermark
        self.follower = self._asked = None
        log.begin_epoch(row.leader_epoch)
        self.promises.on_leads(self.node, row.leader_epoch)
        self.leader = Leader(
            node_id=self.node, leader_epoch=row.leader_epoch, isr=row.isr, log_start=log.start, log_end=log.end,
            high_watermark=watermark, min_isr=self.min_isr, producers=log.producers, replicas=row.replicas,
            partition_epoch=row.partition_epoch, lag_ms=LAG_MS, mono_ms=now_ms,
        )  # fmt: skip
        self.leader.on_live_brokers(self._live)

    def _follow(self, row: Partition) -> None:
        log = self.log
        if self.leader is not None:
            if row.leader_epoch <= self.leader.leader_epoch:
                return
            watermark = self.leader.high_watermark
            self._carry_out(self.leader.on_resigned())
            self.leader = None
        elif self.follower is not None:
            if self.follower.on_leader(row.leader, row.leader_epoch):
                self._asked = None
            return
        else:
            watermark = log.high_watermark
        self._asked = None
        self.follower = Follower(
            leader=row.leader, leader_epoch=row.leader_epoch, log_start=log.start, log_end=log.end,
            high_watermark=watermark, epochs=log.epochs,
        )  # fmt: skip

    # ------------------------------------------------------------ following

    def _fetch(self, follower: Follower) -> None:
        now_ms = self.timeline.now_ms
        if self._asked is not None and now_ms - self._asked_ms < RETRY_MS:
            return
        position = follower.next_fetch(now_ms)
        if position is not None:
            self._asked, self._asked_ms = position, now_ms
            self.network.send(self.node, follower.leader, "fetch", (position, self.broker_epoch))

    def _answer_fetch(self, source: int, asked: FetchPosition, broker_epoch: int) -> None:
        leader, log, rare = self.leader, self.log, self.timeline.rare
        if leader is None:
            self.network.send(self.node, source, "error", (asked, None))
            return
        is_replica = leader.sync is not None and source in leader.sync.followers
        verdict = judge_fetch(
            asked, is_replica=is_replica, leader_epoch=leader.leader_epoch, log_start=log.start, log_end=log.end,
            epochs=log.epochs,
        )  # fmt: skip
        if verdict.error is not None:
            if isinstance(verdict.error, FencedLeaderEpoch):
                rare["fenced fetch"] += 1
            elif not isinstance(verdict.error, OffsetOutOfRange):
                rare["unknown epoch"] += 1
            ends = (log.start, log.end) if isinstance(verdict.error, OffsetOutOfRange) else None
            self.network.send(self.node, source, "error", (asked, ends))
        elif verdict.diverging is not None:
            self.network.send(self.node, source, "diverging", (asked, verdict.diverging))
        else:
            now_ms = self.timeline.now_ms
            self._carry_out(leader.on_fetch(source, asked.offset, asked.log_start, now_ms, broker_epoch))
            batches = log.read(asked.offset, self.timeline.random.randint(1, 4))
            body = (asked, [evolve(facts) for facts in batches], leader.high_watermark, log.start)
            self.network.send(self.node, source, "records", body)

    def _take_answer(self, kind: str, asked: FetchPosition, *body: Any) -> None:
        follower, log, now_ms = self.follower, self.log, self.timeline.now_ms
        if self._asked == asked:
            self._asked = None
        if follower is None:
            return
        if asked != follower.next_fetch(now_ms):
            self.timeline.rare["answer to an older fetch"] += 1
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
            self._cut(follower, follower.on_diverging(asked, body[0].epoch, body[0].offset), "diverging")
        elif body[0] is not None:
            self._cut(follower, follower.on_out_of_range(asked, *body[0]), "out of range")
            follower.on_error(asked, now_ms, RETRY_MS)
        else:
            follower.on_error(asked, now_ms, RETRY_MS)

    def _cut(self, follower: Follower, effects: Effects, why: str) -> None:
        rare = self.timeline.rare
        if effects.restart is not None:
            rare["restarted empty"] += 1
            self.log.restart(effects.restart)
            follower.on_restarted(effects.restart)
        elif effects.truncate is not None:
            rare[why] += 1
            self.timeline.note(f"{self.node} cuts to {effects.truncate}")
            self.log.truncate(effects.truncate)
            follower.on_truncated(self.log.end)

    # ------------------------------------------------------------ leading

    def produce(self, write: Write, answer: Answer) -> None:
        if self.running and not self.paused:
            self._produce(write, answer)

    def hold(self, write: Write, answer: Answer) -> None:
        """A produce request that waits for the end of a pause."""
        self._held.append(("produce", 0, (write, answer)))

    def _produce(self, write: Write, answer: Answer) -> None:
        leader, log, timeline = self.leader, self.log, self.timeline
        if leader is None:
            return answer(write, -1, -1)
        facts = BatchFacts(
            position=write.number, size=100, base_offset=0, last_offset=write.count - 1, leader_epoch=-1, magic=2,
            attributes=0, base_timestamp_ms=0, max_timestamp_ms=0, producer_id=write.producer, producer_epoch=0,
            base_sequence=write.sequence, count=write.count,
        )  # fmt: skip
        if self.promises.is_deposed(leader.leader_epoch):
            timeline.rare["zombie write"] += 1
        ticket = (write, answer)
        effects = leader.on_produce([facts], -1, ticket)
        if effects.append:
            log.append(effects.append)
            self._carry_out(leader.on_appended(effects.append, -1, ticket, 0, timeline.now_ms + 1500))
        else:
            if effects.answer and effects.answer[0][1].error_code == 0:
                timeline.rare["duplicate"] += 1
                if effects.answer[0][1].base_offset + write.count > leader.high_watermark:
                    return answer(write, -1, -1)  # Kafka parks it; the client asks again
            self._carry_out(effects)
        return None

    def _carry_out(self, effects: Effects) -> None:
        """In the order of the fields; what appends is done by `_produce`."""
        if effects.propose is not None:
            self._proposed_ms = self.timeline.now_ms
            self.network.send(self.node, CONTROLLER, "proposal", effects.propose)
        for ticket, outcome in effects.answer:
            write, answer = ticket
            answer(write, outcome.error_code, outcome.base_offset)
