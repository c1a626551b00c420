"""What must hold after every event: what was promised to clients, and what replicas owe one another.

| promise | looked at |
|---|---|
| a write of the controller makes the partition epoch larger, and no leader epoch smaller | when it is kept |
| one leader an epoch, and in one life of it | when a broker begins to lead |
| a leader's watermark never falls | after every event |
| an offset below a watermark holds the same record everywhere, for ever | when a watermark rises, on any replica |
| whoever the controller wrote down as in sync is waited for by the leader of that epoch | after every event |
| whoever is written down as in sync holds what is committed | when a watermark rises, an ISR is written, a log is cut |
| whoever joins an ISR is alive, as far as the controller has dealt with it | when an ISR is written |
| a leader counts fetches of its own epoch, and none of an earlier life of the follower | when it counts one |
| a follower takes answers of the leader epoch that it is in | when it appends or cuts |
| as many replicas as `min.insync.replicas` asks for have held what is committed | when a leader's watermark rises |
| an acknowledged write was below the watermark | when the answer leaves |
| an acknowledged write lies in the log of every later leader, at its offset | when one begins to lead, at the end |
| no write lies twice, a producer's writes lie in its order | the same |
| log start <= watermark <= log end, on any replica | after every event |
| in-sync logs agree, every client makes progress | when the cluster was healed |

Two losses are lawful. An election that calls itself unclean may lose whatever its winner lacks. And a replica that lost
unsynced bytes in a power cut, stayed in the ISR as its only member and leads again, may lack what lay behind its last
flush (rule 30, KIP-966: a coordination by ZooKeeper cannot mend that).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from logkernel.contracts import MetadataChange
from logkernel.controller.image import NO_LEADER, ClusterImage, Partition
from logkernel.partition.follower import FetchPosition, Follower
from logkernel.partition.leader import Leader
from logkernel.testing.simulation.list_log import ListLog
from logkernel.testing.simulation.protocol.messages import INCARNATION, TOPIC, ClientBatch
from logkernel.testing.simulation.protocol.timeline import Timeline
from logkernel.vocabulary import BatchFacts

Mark = tuple[int, int]
"""(leader epoch, number) of a batch."""


class Looked(Protocol):
    """What is looked at of a replica."""

    log: ListLog
    leader: Leader | None
    follower: Follower | None

    @property
    def node(self) -> int: ...


class Promises:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.acknowledged: dict[int, tuple[ClientBatch, int]] = {}
        """Number → the write that was acknowledged with acks=all, and its offset."""
        self.lost = 0
        """Acknowledged writes that were lost lawfully."""
        self.declared: set[tuple[int, tuple[int, ...]]] = set()
        """(leader, ISR) of elections that call themselves unclean."""
        self._image = ClusterImage()
        self._rows: dict[int, Partition] = {}
        """Leader epoch → the partition as it was first written down in it."""
        self._unclean: set[int] = set()
        """Leader epochs that begin with an unclean election, and whose losses are not counted yet."""
        self._forgiven = -1
        """What leaders of older epochs call committed may be lost."""
        self._committed: dict[int, Mark] = {}
        """Offset → the batch there, as first seen below a watermark."""
        self._leaders: dict[int, int] = {}
        self._watermarks: dict[tuple[int, int, bool], int] = {}
        """(node, leader epoch, does it lead?) → the last watermark."""
        self._holders: dict[tuple[int, Mark], set[int]] = {}
        """(offset, batch) → who has ever held it."""
        self.leads: Callable[[int], None] = lambda _: None
        """Told of each broker that begins to lead."""
        self.replicas: Mapping[int, Looked] = {}
        """Node → replica; who is running or not, each has its log."""
        self._dealt: set[int] = set()
        """Brokers that are alive, as far as the controller has dealt with them."""
        self._lives: dict[tuple[int, int, int], int] = {}
        """(leader, leader epoch, follower) → the newest broker epoch of a fetch that was counted."""
        self._torn: dict[int, int] = {}
        """Node → where a power cut tore its log; gone once the controller has dealt with that life of it, and the ISR
        is without it."""

    @property
    def row(self) -> Partition:
        """The partition as it was last written down."""
        return self._image.topics[TOPIC].partitions[0]

    # ------------------------------------------------------------ what happens

    def on_commit(self, changes: Sequence[MetadataChange]) -> None:
        before = self._image.topics[TOPIC].partitions[0] if TOPIC in self._image.topics else None
        for change in changes:
            if change.kind in ("topic", "partition"):
                self._image.apply(change)
        row = self.row
        for change in changes:
            if change.kind == INCARNATION:
                self._on_dealt(int(change.key), came=change.value is not None)
        if row == before:
            return
        self.timeline.note(
            f"written: leader {row.leader} epoch {row.leader_epoch} isr {row.isr} version {row.partition_epoch}"
        )
        if before is not None and not _follows(row, before):
            self.timeline.fail(f"{row} is written over {before}")
        joined = set(row.isr) - set(before.isr) if before is not None and row.leader == before.leader else set()
        if not joined <= self._dealt:
            self.timeline.fail(f"{sorted(joined - self._dealt)} join the ISR, and are gone")
        if row.leader == NO_LEADER:
            self.timeline.rare["offline partition"] += 1
        if row.leader_epoch not in self._rows:
            self._rows[row.leader_epoch] = row
            if before is not None and row.leader != NO_LEADER and row.leader not in before.isr:
                self.timeline.rare["unclean election"] += 1
                if (row.leader, row.isr) in self.declared:
                    self._unclean.add(row.leader_epoch)
        self._check_members(row.isr, self._committed.items())

    def _on_dealt(self, node: int, *, came: bool) -> None:
        if came:
            self._dealt.add(node)
            return
        self._dealt.discard(node)
        if node not in self.row.isr:
            self._torn.pop(node, None)

    def on_counted(self, node: int, leader: Leader, source: int, asked: FetchPosition) -> None:
        """A leader counted a follower's fetch."""
        if asked.leader_epoch != leader.leader_epoch:
            self.timeline.fail(f"{node} leads in {leader.leader_epoch}, and counts a fetch of {asked.leader_epoch}")
        assert leader.sync is not None
        key, life = (node, leader.leader_epoch, source), leader.sync.followers[source].broker_epoch
        if life < self._lives.setdefault(key, life):
            self.timeline.fail(f"{node} counts a fetch of {source} in life {life}, and knows of {self._lives[key]}")
        self._lives[key] = life

    def on_taken(self, follower: Follower, node: int, asked: FetchPosition) -> None:
        """A follower appends or cuts as an answer says."""
        if asked.leader_epoch != follower.leader_epoch:
            self.timeline.fail(f"{node} follows in {follower.leader_epoch}, and obeys one of {asked.leader_epoch}")

    def on_power_cut(self, node: int, log: ListLog) -> None:
        if log.flushed < log.end:
            # A log that began anew within a batch of the leader's has that batch from its base on.
            within = (each.base_offset for each in log.entries if each.base_offset < log.flushed <= each.last_offset)
            flushed = next(within, log.flushed)
            self._torn[node] = min(flushed, self._torn.get(node, flushed))

    def on_cut(self, node: int, log: ListLog) -> None:
        """A follower's log was cut."""
        if node in self.row.isr:
            self._check_members((node,), [(at, mark) for at, mark in self._committed.items() if at >= log.end])

    def on_held(self, node: int, facts: BatchFacts) -> None:
        self._holders.setdefault((facts.base_offset, _mark(facts)), set()).add(node)

    def on_leads(self, node: int, epoch: int, log: ListLog) -> None:
        self.timeline.note(f"{node} leads in {epoch}")
        self.leads(node)
        if epoch in self._leaders:
            self.timeline.fail(f"{node} leads in epoch {epoch}, in which {self._leaders[epoch]} has led")
        self._leaders[epoch] = node
        unclean = {other for other in self._unclean if other <= epoch}
        if unclean:
            self._unclean -= unclean
            self._forgiven = max(self._forgiven, *unclean)
            self._forgive(log, 0)
        elif node in self._torn and self._rows[epoch].isr == (node,):
            self.timeline.rare["torn leader"] += 1
            self._forgiven = max(self._forgiven, epoch)
            self._forgive(log, self._torn.pop(node))
        if epoch == self.row.leader_epoch:
            self._check_log(node, log)

    def _forgive(self, log: ListLog, offset: int) -> None:
        """What the log lacks from `offset` on is lost lawfully."""
        held = {facts.position: facts.base_offset for facts in log.entries}
        marks = {facts.base_offset: _mark(facts) for facts in log.entries}
        for number, (write, at) in list(self.acknowledged.items()):
            if at >= offset and at + write.count > log.start and held.get(number) != at:
                del self.acknowledged[number]
                self.lost += 1
                self.timeline.rare["lawful loss"] += 1
        for at, mark in list(self._committed.items()):
            if at >= offset and marks.get(at) != mark:
                del self._committed[at]

    def on_acknowledged(self, node: int, write: ClientBatch, offset: int, leader: Leader) -> None:
        self.timeline.note(f"{node} acknowledges {write.number} at {offset}")
        if leader.high_watermark < offset + write.count:
            self.timeline.fail(
                f"{node} acknowledges {write.number} at {offset}, and its watermark is {leader.high_watermark}"
            )
        if leader.leader_epoch >= self._forgiven:
            log = self.replicas[node].log
            _, known = self.acknowledged.get(write.number, (write, offset))
            trimmed = known + write.count <= log.start  # and with it, where all records went, what told of its producer
            if known != offset and not (trimmed and log.forgot):
                self.timeline.fail(f"{write.number} is acknowledged at {offset}, and was before at {known}")
            self.acknowledged[write.number] = (write, offset)

    def is_deposed(self, leader_epoch: int) -> bool:
        return leader_epoch < self.row.leader_epoch

    # ------------------------------------------------------------ what must hold

    def check(self, replicas: Iterable[Looked]) -> None:
        for replica in replicas:
            machine = replica.leader or replica.follower
            if machine is None:
                continue
            watermark = machine.high_watermark
            leads = replica.leader is not None
            if replica.leader is not None:
                self._check_waits(replica.node, replica.leader)
            key = (replica.node, machine.leader_epoch, leads)
            before = self._watermarks.get(key, -1)
            if watermark == before:
                continue
            self._watermarks[key] = watermark
            if not replica.log.start <= watermark <= replica.log.end:
                self.timeline.fail(
                    f"the watermark of {replica.node} is {watermark}, its log {replica.log.start} to {replica.log.end}"
                )
            if watermark < before and leads:
                self.timeline.fail(f"the watermark of {replica.node} fell from {before} to {watermark}")
            if watermark > before and machine.leader_epoch >= self._forgiven and (leads or before >= 0):
                self._check_committed(replica, before, watermark)

    def _check_waits(self, node: int, leader: Leader) -> None:
        row, sync = self.row, leader.sync
        if leader.leader_epoch == row.leader_epoch and sync is not None and not sync.maximal.issuperset(row.isr):
            self.timeline.fail(f"{node} waits for {sorted(sync.maximal)}, and {sorted(row.isr)} are written down")

    def _check_committed(self, replica: Looked, before: int, watermark: int) -> None:
        leader, risen = replica.leader, []
        for facts in replica.log.read(max(before, 0), 1 << 30):
            if facts.last_offset >= watermark:
                break
            mark = _mark(facts)
            known = self._committed.setdefault(facts.base_offset, mark)
            if known != mark:
                self.timeline.fail(f"{facts.base_offset} is {mark} at {replica.node}, and was committed as {known}")
            if leader is not None and before >= 0:
                risen.append((facts.base_offset, mark))
                holders = sorted(self._holders[facts.base_offset, mark])
                wanted = min(leader.min_isr, len(self.row.replicas))
                if len(holders) < wanted:
                    self.timeline.fail(
                        f"{replica.node} commits {facts.base_offset}, which {holders} hold, and {wanted} have to"
                    )
        if leader is not None and leader.leader_epoch == self.row.leader_epoch:
            self._check_members(self.row.isr, risen)

    def _check_members(self, isr: Iterable[int], committed: Collection[tuple[int, Mark]]) -> None:
        """Whoever is in sync holds what is committed, but for what a power cut took and the controller has not dealt
        with yet."""
        if self._unclean or not committed:
            return
        for node in isr:
            log = self.replicas[node].log
            if node in self._torn:
                continue
            held = {facts.base_offset: _mark(facts) for facts in log.entries} if len(committed) > 8 else None
            for offset, mark in committed:
                if offset < log.start:
                    continue
                found = held.get(offset) if held is not None else _mark_at(log, offset)
                if found != mark:
                    self.timeline.fail(f"{node} is in sync, and has {found} at {offset}, where {mark} is committed")

    def _check_log(self, node: int, log: ListLog) -> None:
        held: dict[int, int] = {}
        last: dict[int, tuple[int, int]] = {}
        for facts in log.entries:
            if facts.position in held:
                self.timeline.fail(f"{facts.position} lies twice in the log of {node}")
            held[facts.position] = facts.base_offset
            place = (facts.producer_epoch, facts.base_sequence)
            if place <= last.get(facts.producer_id, (-1, -1)) and not log.forgot:
                self.timeline.fail(f"{facts.position} lies at {node} behind a later write of its producer")
            last[facts.producer_id] = place
        for number, (write, offset) in self.acknowledged.items():
            if offset + write.count > log.start and held.get(number) != offset:
                self.timeline.fail(f"{number} was acknowledged at {offset}; leader {node} has it at {held.get(number)}")

    # ------------------------------------------------------------ at the end

    def is_whole(self, replicas: Mapping[int, Looked]) -> bool:
        """Every replica is in sync, and their logs agree."""
        row = self.row
        if row.leader == NO_LEADER or set(row.isr) != set(row.replicas):
            return False
        leads = replicas[row.leader]
        leader = leads.leader
        if leader is None or leader.leader_epoch != row.leader_epoch or set(leader.isr) != set(row.isr):
            return False
        self._check_log(row.leader, leads.log)
        for node in row.isr:
            self._check_agrees(replicas[node].log, leads.log, leader.high_watermark)
        return True

    def _check_agrees(self, one: ListLog, other: ListLog, end: int) -> None:
        start = max(one.start, other.start)
        logs = [
            [(facts.base_offset, _mark(facts)) for facts in log.entries
             if start <= facts.base_offset and facts.last_offset < end]
            for log in (one, other)
        ]  # fmt: skip
        if logs[0] != logs[1]:
            differ = next((pair for pair in zip(*logs, strict=False) if pair[0] != pair[1]), "one is shorter")
            self.timeline.fail(f"in-sync logs differ below {end}: {differ}")


def _follows(row: Partition, before: Partition) -> bool:
    return row.partition_epoch > before.partition_epoch and row.leader_epoch >= before.leader_epoch


def _mark_at(log: ListLog, offset: int) -> Mark | None:
    found = log.read(offset, 1)
    return _mark(found[0]) if found and found[0].base_offset == offset else None


def _mark(facts: BatchFacts) -> Mark:
    return facts.leader_epoch, facts.position
