"""A replica: its log, and the machine of its role, whose effects are carried out in the order of their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from logkernel.attrs_lite import evolve
from logkernel.contracts import IsrPolicy
from logkernel.controller.image import Partition
from logkernel.errors import FencedLeaderEpoch, NotEnoughReplicas, OffsetOutOfRange
from logkernel.partition.effects import Effects, Outcome
from logkernel.partition.follower import FetchPosition, Follower
from logkernel.partition.isr import State
from logkernel.partition.leader import Leader
from logkernel.partition.replica_fetch import judge_fetch
from logkernel.testing.simulation.list_log import ListLog
from logkernel.testing.simulation.protocol.messages import NOT_LEADER, ClientBatch, Standing
from logkernel.testing.simulation.protocol.network import Network
from logkernel.testing.simulation.protocol.promises import Promises
from logkernel.testing.simulation.protocol.schedule import World
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.vocabulary import BatchFacts, IsrProposal, OffsetAndEpoch

RETRY_MS: Final = 150
PRODUCE_MS: Final = 1500
MakeIsr = Callable[[], IsrPolicy | None]
"""Gives the ISR policy of a leader that begins."""


def by_time() -> None:
    """No policy: `lag_ms` decides."""


class Replica:
    def __init__(
        self,
        timeline: Timeline,
        network: Network,
        promises: Promises,
        standing: Standing,
        world: World,
        make_isr: MakeIsr = by_time,
    ) -> None:
        self.timeline = timeline
        self.network = network
        self.promises = promises
        self.standing = standing
        self.world = world
        self._make_isr = make_isr
        self.log = ListLog()
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self._asked: FetchPosition | None = None
        self._asked_ms = 0
        self._proposed_ms = 0

    @property
    def node(self) -> int:
        return self.standing.node

    @property
    def now_ms(self) -> int:
        """By the broker's own monotonic clock."""
        return self.timeline.now_ms + self.standing.skew_ms

    # ------------------------------------------------------------ life

    def tick(self) -> None:
        timeline = self.timeline
        leader = self.leader
        if leader is not None:
            leader.min_isr = self.standing.min_isr
            self.hear_who_lives()
            if timeline.now_ms - self._proposed_ms >= RETRY_MS:
                self._proposed_ms = timeline.now_ms
                if leader.sync is not None and leader.sync.proposal is not None:
                    timeline.rare["proposal repeated"] += 1
                self._carry_out(leader.on_tick(self.now_ms))
                self._carry_out(leader.on_expired(self.now_ms))
        if self.follower is not None:
            self._fetch(self.follower)
        if timeline.random.random() < self.world.flush:
            self.log.flush()
        self._keep_watermark()

    def stop(self, *, power: bool) -> None:
        self.leader = self.follower = self._asked = None
        if power:
            self.promises.on_power_cut(self.node, self.log)
            self.log.cut_power()
        else:
            self.log.kill()

    def resign(self) -> None:
        """Its broker's session is gone: give up every role."""
        self._keep_watermark()
        leader, self.leader = self.leader, None
        self.follower = self._asked = None
        if leader is not None:
            self._carry_out(leader.on_resigned())

    def trim(self, percent: int) -> None:
        """Retention, on a leader."""
        leader, log = self.leader, self.log
        if leader is not None:
            start = log.start + (leader.high_watermark - log.start) * percent // 100
            log.advance_start(start)
            leader.on_log_start(start)

    def _keep_watermark(self) -> None:
        self.log.high_watermark = (self.leader or self.follower or self.log).high_watermark

    # ------------------------------------------------------------ orders

    @property
    def leader_epoch(self) -> int:
        """The newest that it was told, -1 for none."""
        machine = self.leader or self.follower
        return -1 if machine is None else machine.leader_epoch

    def order(self, row: Partition) -> None:
        """As LeaderAndIsr says; the leader epoch is newer than any before."""
        if row.leader == self.node:
            self._lead(row)
        else:
            self._follow(row)

    def _lead(self, row: Partition) -> None:
        log = self.log
        self._keep_watermark()
        log.begin_epoch(row.leader_epoch)
        self.promises.on_leads(self.node, row.leader_epoch, log)
        if self.leader is not None:
            effects = self.leader.on_order(row.leader_epoch, row.replicas, row.isr, row.partition_epoch, self.now_ms)
            self._carry_out(effects)
            return
        self.follower = self._asked = None
        self.leader = Leader(
            node_id=self.node, leader_epoch=row.leader_epoch, isr=row.isr, log_start=log.start, log_end=log.end,
            high_watermark=log.high_watermark, min_isr=self.standing.min_isr, producers=log.producers,
            replicas=row.replicas, partition_epoch=row.partition_epoch, lag_ms=self.world.lag_ms, mono_ms=self.now_ms,
            isr_policy=self._make_isr(),
        )  # fmt: skip
        self.hear_who_lives()

    def hear_who_lives(self) -> None:
        """Followers that live may join the in-sync replicas."""
        if self.leader is not None:
            self._carry_out(self.leader.on_live_brokers(self.standing.live, self.now_ms))

    def _follow(self, row: Partition) -> None:
        log = self.log
        self._keep_watermark()
        self._asked = None
        if self.follower is not None:
            self.follower.on_leader(row.leader, row.leader_epoch)
            return
        leader, self.leader = self.leader, None
        self.follower = Follower(
            leader=row.leader, leader_epoch=row.leader_epoch, log_start=log.start, log_end=log.end,
            high_watermark=log.high_watermark, epochs=log.epochs,
        )  # fmt: skip
        if leader is not None:
            self._carry_out(leader.on_resigned())

    # ------------------------------------------------------------ following

    def _fetch(self, follower: Follower) -> None:
        if self._asked is not None and self.timeline.now_ms - self._asked_ms < RETRY_MS:
            return
        position = follower.next_fetch(self.now_ms)
        if position is not None:
            self._asked, self._asked_ms = position, self.timeline.now_ms
            self.network.send(self.node, follower.leader, "fetch", (position, self.standing.broker_epoch))

    def on_records(self, asked: FetchPosition, batches: list[BatchFacts], watermark: int, start: int) -> None:
        follower, log = self._answered(asked), self.log
        if follower is None:
            return
        effects = follower.on_records(asked, batches)
        if effects.append:
            self.promises.on_taken(follower, self.node, asked)
            log.append(effects.append)
            for facts in effects.append:
                log.producers.replay(facts)
                self.promises.on_held(self.node, facts)
            follower.on_appended(effects.append)
        moved = follower.on_progress(asked, watermark, start)
        if moved is not None:
            log.advance_start(moved)
        if batches:
            self._fetch(follower)

    def on_diverging(self, asked: FetchPosition, known: OffsetAndEpoch) -> None:
        follower = self._answered(asked)
        if follower is not None:
            effects = follower.on_diverging(asked, known.epoch, known.offset)
            if effects.truncate is not None:
                self.timeline.rare["diverging"] += 1
            self._cut(follower, effects, asked)

    def on_fetch_error(self, asked: FetchPosition, ends: tuple[int, int] | None) -> None:
        follower = self._answered(asked)
        if follower is None:
            return
        if ends is not None:
            self.timeline.rare["out of range"] += 1
            self._cut(follower, follower.on_out_of_range(asked, *ends), asked)
        follower.on_error(asked, self.now_ms, RETRY_MS)

    def _answered(self, asked: FetchPosition) -> Follower | None:
        if self._asked == asked:
            self._asked = None
        if self.follower is not None and asked != self.follower.next_fetch(self.now_ms):
            self.timeline.rare["answer to an older fetch"] += 1
        return self.follower

    def _cut(self, follower: Follower, effects: Effects, asked: FetchPosition) -> None:
        if effects.restart is None and effects.truncate is None:
            return
        self.promises.on_taken(follower, self.node, asked)
        if effects.restart is not None:
            self.timeline.rare["restarted empty"] += 1
            self.timeline.note(f"{self.node} restarts at {effects.restart}")
            self.log.restart(effects.restart)
            follower.on_restarted(effects.restart)
        else:
            assert effects.truncate is not None
            self.timeline.note(f"{self.node} cuts to {effects.truncate}")
            if effects.truncate <= self.log.start < self.log.end:
                self.timeline.rare["full truncation"] += 1
            self.log.truncate(effects.truncate)
            follower.on_truncated(self.log.end)
        self.promises.on_cut(self.node, self.log)

    # ------------------------------------------------------------ leading

    def on_fetch(self, source: int, asked: FetchPosition, broker_epoch: int) -> None:
        leader, log, rare = self.leader, self.log, self.timeline.rare
        if leader is None:
            self.network.send(self.node, source, "error", (asked, None))
            return
        is_replica = leader.sync is not None and source in leader.sync.followers
        verdict = judge_fetch(
            asked, is_replica=is_replica, leader_epoch=leader.leader_epoch, log_start=log.start, log_end=log.end,
            epochs=log.epochs,
        )  # fmt: skip
        if isinstance(verdict.error, OffsetOutOfRange):
            self.network.send(self.node, source, "error", (asked, (log.start, log.end)))
        elif verdict.error is not None:
            rare["fenced fetch" if isinstance(verdict.error, FencedLeaderEpoch) else "unknown epoch"] += 1
            self.network.send(self.node, source, "error", (asked, None))
        elif verdict.diverging is not None:
            self.network.send(self.node, source, "diverging", (asked, verdict.diverging))
        else:
            effects = leader.on_fetch(source, asked.offset, asked.log_start, self.now_ms, broker_epoch)
            self.promises.on_counted(self.node, leader, source, asked)
            self._carry_out(effects)
            most = 50 if self.timeline.healing else self.timeline.random.randint(1, self.world.batches)
            batches = log.read(asked.offset, most)
            body = (asked, [evolve(facts) for facts in batches], leader.high_watermark, log.start)
            self.network.send(self.node, source, "records", body)

    def on_accepted(self, proposal: IsrProposal, partition_epoch: int) -> None:
        leader = self.leader
        if leader is not None:
            before = len(leader.isr)
            self._carry_out(leader.on_isr_accepted(proposal, partition_epoch))
            if len(leader.isr) != before:
                self.timeline.rare["expanded" if len(leader.isr) > before else "shrunk"] += 1

    def on_refused(self, proposal: IsrProposal, revert: bool) -> None:
        leader = self.leader
        if leader is None or leader.sync is None:
            return
        before = leader.sync.proposal
        leader.on_isr_refused(proposal, revert=revert)
        if leader.sync.state is State.STUCK:
            self.timeline.rare["stuck proposal"] += 1
        elif before is not None:
            name = "reverted proposal" if leader.sync.proposal is None else "refusal of an older attempt"
            self.timeline.rare[name] += 1

    def on_produce(self, write: ClientBatch) -> None:
        leader, log, timeline = self.leader, self.log, self.timeline
        if leader is None:
            self.network.send(self.node, write.client, "outcome", (write, NOT_LEADER, -1))
            return
        facts = BatchFacts(
            position=write.number, size=100, base_offset=0, last_offset=write.count - 1, leader_epoch=-1, magic=2,
            attributes=0, base_timestamp_ms=0, max_timestamp_ms=0, producer_id=write.producer,
            producer_epoch=write.epoch, base_sequence=write.sequence, count=write.count,
        )  # fmt: skip
        if self.promises.is_deposed(leader.leader_epoch):
            timeline.rare["zombie write"] += 1
        effects = leader.on_produce([facts], -1, write)
        if effects.append:
            log.append(effects.append)
            self.promises.on_held(self.node, facts)
            effects = leader.on_appended(effects.append, -1, write, 0, self.now_ms + PRODUCE_MS)
        elif effects.answer and effects.answer[0][1].error_code == 0:
            timeline.rare["duplicate"] += 1
        self._carry_out(effects)

    def _carry_out(self, effects: Effects) -> None:
        """In the order of the fields; what appends is done by `on_produce`."""
        if effects.propose is not None:
            self._proposed_ms = self.timeline.now_ms
            body = (self.standing.broker_epoch, effects.propose)
            self.network.send(self.node, self.standing.controller_id, "proposal", body)
        for write, outcome in effects.answer:
            self._answer(write, outcome)

    def _answer(self, write: ClientBatch, outcome: Outcome) -> None:
        if outcome.error_code == 0:
            leader = self.leader
            assert leader is not None
            self.promises.on_acknowledged(self.node, write, outcome.base_offset, leader)
        elif outcome.error_code == NotEnoughReplicas.code:
            self.timeline.rare["too few in sync"] += 1
        body = (write, outcome.error_code, outcome.base_offset)
        self.network.send(self.node, write.client, "outcome", body)
