"""What must hold after every event: what was promised to clients, and what replicas owe one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from logkernel.attrs_lite import evolve
from logkernel.controller.image import NO_LEADER, Partition
from logkernel.partition.leader import Leader
from logkernel.testing.simulation.list_log import ListLog
from logkernel.testing.simulation.protocol.messages import Write
from logkernel.testing.simulation.protocol.timeline import Timeline


class Replica(Protocol):
    """What is looked at of a broker."""

    node: int
    log: ListLog
    leader: Leader | None


class Promises:
    def __init__(self, timeline: Timeline, row: Partition) -> None:
        self.timeline = timeline
        self.row = row
        """The partition as it was last written down."""
        self.acked: dict[int, Write] = {}
        """Number → the write that was acknowledged with acks=all."""
        self.committed: dict[int, tuple[int, int]] = {}
        """Offset → (epoch, number) as first seen below a watermark."""
        self._leaders: dict[int, int] = {}
        """Leader epoch → who led in it."""
        self._watermarks: dict[tuple[int, int], int] = {}
        self._torn: dict[int, int] = {}
        """Node → where a power cut tore its log while it was in the ISR; gone once the ISR is without it."""
        self._pardoned = 2**62
        """From this offset on records may be lost: a replica that a power cut tore stayed in the ISR as its last
        member, and leads (KIP-966: a coordination by ZooKeeper cannot mend that)."""

    # ------------------------------------------------------------ what happens

    def on_row(self, row: Partition) -> None:
        self.row = row
        self._torn = {node: end for node, end in self._torn.items() if node in row.isr}

    def on_leads(self, node: int, epoch: int) -> None:
        self.timeline.note(f"{node} leads in {epoch}")
        if self._leaders.setdefault(epoch, node) != node:
            self.timeline.fail(f"{node} and {self._leaders[epoch]} both lead in epoch {epoch}")
        if node in self._torn:
            self._pardoned = min(self._pardoned, self._torn[node])

    def on_power_cut(self, node: int, log: ListLog) -> None:
        if node in self.row.isr and log.flushed < log.end:
            self._torn[node] = log.flushed

    def on_acked(self, write: Write, offset: int) -> None:
        self.acked[write.number] = evolve(write, offset=offset)
        self.timeline.note(f"acked {write.number} at {offset}")

    def is_deposed(self, leader_epoch: int) -> bool:
        return leader_epoch < self.row.leader_epoch

    # ------------------------------------------------------------ what must hold

    def check(self, brokers: Iterable[Replica]) -> None:
        for broker in brokers:
            leader = broker.leader
            if leader is None:
                continue
            key = (broker.node, leader.leader_epoch)
            before = self._watermarks.get(key, 0)
            if leader.high_watermark < before:
                self.timeline.fail(f"the watermark of {broker.node} fell from {before} to {leader.high_watermark}")
            if leader.high_watermark > before:
                self._check_committed(broker, leader, before)
                self._watermarks[key] = leader.high_watermark

    def _check_committed(self, broker: Replica, leader: Leader, before: int) -> None:
        for facts in broker.log.read(before, 1 << 30):
            if facts.last_offset >= leader.high_watermark:
                break
            if facts.base_offset >= self._pardoned:
                break
            mark = (facts.leader_epoch, facts.position)
            known = self.committed.setdefault(facts.base_offset, mark)
            if known != mark:
                self.timeline.fail(
                    f"{facts.base_offset} of leader {broker.node} is {mark}, and was committed as {known}"
                )
        if leader.leader_epoch == self.row.leader_epoch:
            self._check_acked(broker)

    def _check_acked(self, broker: Replica) -> None:
        held = {facts.position: facts.base_offset for facts in broker.log.entries}
        if len(held) < len(broker.log.entries):
            self.timeline.fail(f"a write lies twice in the log of {broker.node}")
        for number, write in self.acked.items():
            if write.offset + write.count <= broker.log.start or write.offset >= self._pardoned:
                continue
            if held.get(number) != write.offset:
                found = held.get(number)
                self.timeline.fail(
                    f"{number} was acknowledged at {write.offset}; leader {broker.node} has it at {found}"
                )

    # ------------------------------------------------------------ at the end

    def is_whole(self, brokers: Mapping[int, Replica]) -> bool:
        """Every replica is in sync, and their logs agree."""
        row = self.row
        if row.leader == NO_LEADER or set(row.isr) != set(row.replicas):
            return False
        leader = brokers[row.leader].leader
        if leader is None or leader.leader_epoch != row.leader_epoch:
            return False
        for node in row.isr:
            self._check_agrees(brokers[node].log, brokers[row.leader].log, leader.high_watermark)
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
            self.timeline.fail(f"in-sync logs differ below {end}: {differ}")
