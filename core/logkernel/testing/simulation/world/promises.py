"""What no event may break, checked after each of them against the brokers' own logs and the coordination's facts.

- One leader an epoch. The watermark of a leader never falls, never passes its log's end, and never parts a batch.
- What a watermark has passed is committed: every leader that comes after, and every replica that is in sync, has the
  same batches there. Two losses are lawful, and told to the history: what an election loses that was allowed to, and
  what a log that a power cut tore loses when it leads as the only member of its in-sync replicas (rule 30).
- No sequence of a producer is committed twice, or before an earlier one.
- A fact of the controller never goes back.
- Whoever begins to lead does it by settings that the topic has or had, never by defaults.

Logs that are compacted may differ in what compaction took; of them, only the order is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple
from uuid import UUID

from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.contracts import MetadataChange
from logkernel.controller.image import ClusterImage, Partition
from logkernel.record.batch import parse_header
from logkernel.storage.log import Log
from logkernel.testing.simulation.world.processes import Process
from logkernel.testing.simulation.world.stage import Stage
from logkernel.vocabulary import TopicPartition

MOST_BYTES: Final = 1 << 24
CRC_AT: Final = 17
"""Where a batch's header has its checksum."""
Key = tuple[UUID, int]
"""(topic id, partition)."""


class Mark(NamedTuple):
    """What a batch is known by."""

    base: int
    last: int
    epoch: int
    producer: tuple[int, int, int]
    """(id, epoch, first sequence)."""
    crc: int


def marks(log: Log, start: int, end: int) -> list[Mark]:
    """The batches of a log that lie in `start <= offset < end`."""
    found: list[Mark] = []
    offset = max(start, log.start_offset)
    end = min(end, log.end_offset)
    while offset < end:
        part = log.read(offset, MOST_BYTES, None)
        if part is None:
            break
        data, position = part.read(), 0
        while position < len(data):
            facts = parse_header(data, position)
            if facts.base_offset >= end:
                return found
            if facts.last_offset >= start:
                producer = (facts.producer_id, facts.producer_epoch, facts.base_sequence)
                crc = int.from_bytes(data[position + CRC_AT : position + CRC_AT + 4], "big")
                found.append(Mark(facts.base_offset, facts.last_offset, facts.leader_epoch, producer, crc))
            position += facts.size
            offset = facts.last_offset + 1
    return found


class _Known:
    """What is known of one partition."""

    def __init__(self) -> None:
        self.committed: list[Mark] = []
        self.end = 0
        """All below it was committed."""
        self.leaders: dict[int, int] = {}
        """Epoch → who led in it."""
        self.unclean = -1
        """The last epoch that began with an unclean election: who led before may commit on, until it hears of that."""
        self.torn: dict[int, int] = {}
        """Node whose log a power cut may have shortened, and that has not been in sync again since → below which offset
        all was synced."""
        self.sequences: dict[int, tuple[int, int]] = {}
        """Producer id → its last committed (epoch, sequence)."""

    def cut(self, offset: int, start: int) -> None:
        """A leader lost what lies from `offset` on. What lay before its log's `start` may be of another history."""
        self.end = offset
        self.committed = [mark for mark in self.committed if start <= mark.base and mark.last < offset]
        self.sequences.clear()
        for mark in self.committed:
            self.sequences[mark.producer[0]] = mark.producer[1:]


class Promises:
    def __init__(self, stage: Stage, processes: Mapping[int, Process]) -> None:
        self.stage = stage
        self.image = ClusterImage()
        self.processes = processes
        self.on_lawful_loss: Callable[[TopicPartition, int, str], None] = lambda name, offset, why: None
        self.declared: set[tuple[int, tuple[int, ...]]] = set()
        """(leader, ISR) of elections that were unclean."""
        self._known: dict[Key, _Known] = {}
        self._settings: dict[UUID, list[Mapping[str, str]]] = {}
        """Topic id → what was set for it, ever."""
        self._watermarks: dict[int, tuple[LeaderReplica, int, int]] = {}
        """id of a led replica → it, its leader epoch and watermark as last seen."""

    # ------------------------------------------------------------ facts

    def on_commit(self, changes: Sequence[MetadataChange]) -> None:
        for change in changes:
            before = self._row(change)
            self.image.apply(change)
            row = self._row(change)
            if before is not None and row is not None:
                self._check_fact(change.key, before, row)
            if row is not None and change.kind == "partition":
                topic, _, index = change.key.rpartition(":")
                self._on_row(self.known((self.image.topics[topic].id, int(index))), before, row)
        for change in changes:
            topic = change.key.removeprefix("topic:")
            if change.kind in ("topic", "config") and topic in self.image.topics:
                self._settings.setdefault(self.image.topics[topic].id, []).append(dict(self.image.topic_config(topic)))

    def _row(self, change: MetadataChange) -> Partition | None:
        if change.kind != "partition":
            return None
        topic, _, index = change.key.rpartition(":")
        found = self.image.topics.get(topic)
        return found.partitions[int(index)] if found is not None and int(index) < len(found.partitions) else None

    def _check_fact(self, key: str, before: Partition, row: Partition) -> None:
        if row.leader_epoch < before.leader_epoch or row.partition_epoch <= before.partition_epoch:
            self.stage.fail(f"the fact of {key} goes back: {before} → {row}")

    def _on_row(self, known: _Known, before: Partition | None, row: Partition) -> None:
        rare = self.stage.rare
        earlier = before.isr if before is not None else ()
        for node in set(row.isr) - set(earlier):
            if row.leader != node and self.processes[node].broker is not None:
                known.torn.pop(node, None)  # else it was proposed before the power was cut, and decided after
        rare["expanded"] += len(row.isr) > len(earlier)
        rare["shrunk"] += len(row.isr) < len(earlier)
        rare["offline partition"] += row.leader < 0

    def known(self, key: Key) -> _Known:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _Known()
        return found

    def on_power_cut(self, node: int, logs: Iterable[tuple[UUID | None, TopicPartition, Log]]) -> None:
        """The disk of `node` is about to forget what was not synced."""
        for topic_id, name, log in logs:
            if topic_id is None and name.topic in self.image.topics:
                topic_id = self.image.topics[name.topic].id
            if topic_id is not None and log.end_offset > log.recovery_point:
                torn = self.known((topic_id, name.partition)).torn
                torn[node] = min(log.recovery_point, torn.get(node, log.recovery_point))

    # ------------------------------------------------------------ after every event

    def look(self) -> None:
        seen = self._watermarks
        for process in self.processes.values():
            broker = process.broker
            if broker is None:
                continue
            for replica in broker.replicas.led.values():
                leader = replica.leader
                before = seen.get(id(replica))
                if before is None or before[1] != leader.leader_epoch or before[2] != leader.high_watermark:
                    with ExitStack() as stack:
                        for each in self.processes.values():
                            stack.enter_context(each.disk.unharmed())
                        self._changed(process.node, replica, before)

    def _changed(self, node: int, replica: LeaderReplica, before: tuple[LeaderReplica, int, int] | None) -> None:
        if replica.log.failure is not None:
            return  # a directory that failed shows nothing
        if before is None or before[1] != replica.leader.leader_epoch:
            self._began(node, replica)
        else:
            self._moved(node, replica, before[2])

    def _began(self, node: int, replica: LeaderReplica) -> None:
        key, leader = (replica.topic_id, replica.name.partition), replica.leader
        known, epoch = self.known(key), leader.leader_epoch
        other = known.leaders.setdefault(epoch, node)
        if other != node:
            self.stage.fail(f"{replica.name} has two leaders in epoch {epoch}: {other} and {node}")
        mark = leader.high_watermark
        self.stage.note(f"{node} leads {replica.name} in epoch {epoch} from {replica.log.end_offset}, watermark {mark}")
        self._watermarks[id(replica)] = (replica, epoch, mark)
        self._check_settings(node, replica)
        if epoch < max(known.leaders):
            return  # it was told late: others lead already
        self._check_committed(node, replica, known)
        self._commit(node, replica, known, began=True)

    def _check_settings(self, node: int, replica: LeaderReplica) -> None:
        broker, given = self.processes[node].broker, self._settings.get(replica.topic_id)
        if broker is None or given is None:
            return
        if not any(broker.runtime.config.topic_settings(each) == replica.settings for each in given):
            self.stage.fail(f"{node} begins to lead {replica.name} by settings that its topic never had")

    def _check_committed(self, node: int, replica: LeaderReplica, known: _Known) -> None:
        """Whoever begins to lead has what was committed."""
        log = replica.log
        if (node, tuple(replica.leader.isr)) in self.declared:
            known.unclean = max(known.unclean, replica.leader.leader_epoch)
        if self._is_compacted(replica):
            lost = known.end if log.end_offset >= known.end else log.end_offset
        else:
            lost = self._first_difference(log, known.committed, known.end)
        if lost >= known.end:
            known.torn.pop(node, None)
            return
        lost = min(lost, log.end_offset)  # of what others have trimmed nothing is known any more
        isr = tuple(replica.leader.isr)
        what = f"{node} leads {replica.name} in epoch {replica.leader.leader_epoch} without {lost} to {known.end - 1}"
        if (node, isr) in self.declared:
            why = "an unclean election"
        elif isr == (node,) and lost >= known.torn.get(node, known.end):
            why = "a power cut on the last in-sync replica"
        else:
            self.stage.fail(f"{what}, which was committed; it was elected from {isr}")
        self.stage.note(f"{what}: {why}")
        self.stage.rare["lawful loss"] += 1
        self.on_lawful_loss(replica.name, lost, why)
        known.torn.pop(node, None)
        known.cut(lost, log.start_offset)

    @staticmethod
    def _first_difference(log: Log, committed: Sequence[Mark], end: int) -> int:
        """The first committed offset below `end` that the log does not hold as it was committed; `end` for none."""
        held = {mark.base: mark for mark in marks(log, 0, end)}
        for mark in committed:
            if mark.last >= log.start_offset and held.get(mark.base) != mark:
                return mark.base
        return end

    def _moved(self, node: int, replica: LeaderReplica, before: int) -> None:
        leader = replica.leader
        if leader.high_watermark < before:
            self.stage.fail(f"the watermark of {replica.name} at {node} falls from {before} to {leader.high_watermark}")
        if leader.high_watermark > replica.log.end_offset:
            self.stage.fail(f"the watermark of {replica.name} at {node} passes its log's end")
        self._watermarks[id(replica)] = (replica, leader.leader_epoch, leader.high_watermark)
        known = self.known((replica.topic_id, replica.name.partition))
        if leader.leader_epoch < known.unclean:
            self.on_lawful_loss(replica.name, before, "a leader that an unclean election deposed")
        else:
            self._commit(node, replica, known)

    def _commit(self, node: int, replica: LeaderReplica, known: _Known, *, began: bool = False) -> None:
        """What the watermark has passed is committed, for ever. One that a leader `began` with was noted in an earlier
        life, maybe of a longer log: nobody had to count replicas for it."""
        end = replica.leader.high_watermark
        if end <= known.end:
            return
        new = marks(replica.log, known.end, end)
        if new and new[-1].last >= end:
            self.stage.fail(f"the watermark of {replica.name} at {node} stands at {end}, within {new[-1]}")
        compacted = self._is_compacted(replica)
        for mark in new:
            self._check_sequence(replica, known, mark, compacted=compacted)
        known.committed += new
        known.end = end
        if not compacted:
            self._check_members(node, replica, known, new, began=began)

    def _check_sequence(self, replica: LeaderReplica, known: _Known, mark: Mark, *, compacted: bool) -> None:
        producer, epoch, sequence = mark.producer
        if producer < 0 or sequence < 0 or compacted:
            return
        before = known.sequences.get(producer)
        if before is not None and (epoch, sequence) <= before:
            self.stage.fail(
                f"{replica.name}@{mark.base}: sequence {sequence} of producer {producer} in epoch {epoch} "
                f"is committed after {before}"
            )
        known.sequences[producer] = (epoch, sequence)

    def _check_members(
        self, node: int, replica: LeaderReplica, known: _Known, new: Sequence[Mark], *, began: bool
    ) -> None:
        topic = self.image.topics.get(replica.name.topic)
        if topic is None or topic.id != replica.topic_id or replica.name.partition >= len(topic.partitions):
            return
        row = topic.partitions[replica.name.partition]
        if not new or row.leader != node or row.leader_epoch != replica.leader.leader_epoch:
            return
        holders = 0
        for member in row.replicas:
            log = self._log_of(member, replica)
            if log is None or member in known.torn:
                holders += 1  # nobody can tell
                continue
            held = {mark.base: mark for mark in marks(log, new[0].base, known.end)}
            lacks = [mark for mark in new if mark.last >= log.start_offset and held.get(mark.base) != mark]
            holders += not lacks
            if lacks and member in row.isr:
                self.stage.fail(
                    f"{member} is in sync with {node}, and has {held.get(lacks[0].base)} where {lacks[0]} of "
                    f"{replica.name} is committed"
                )
        wanted = min(replica.leader.min_isr, len(row.replicas))
        if holders < wanted and not began:
            self.stage.fail(
                f"{node} commits {new[0].base} of {replica.name}, which {holders} hold, and {wanted} have to"
            )

    def _log_of(self, node: int, replica: LeaderReplica) -> Log | None:
        broker = self.processes[node].broker
        found = None if broker is None else broker.replicas.find(replica.name)
        if found is None or found.topic_id != replica.topic_id or found.log.failure is not None:
            return None
        return found.log

    @staticmethod
    def _is_compacted(replica: LeaderReplica) -> bool:
        return "compact" in replica.settings.cleanup_policy

    # ------------------------------------------------------------ when all is healed

    def unhealed(self) -> str | None:
        """Why the cluster is not whole yet; None where it is: every replica in sync, all logs alike."""
        for process in self.processes.values():
            if process.state != "running":
                return f"broker {process.node} is {process.state}"
            broker: Any = process.broker
            if set(broker.metadata.image.nodes) != set(self.processes):
                return f"broker {process.node} knows {sorted(broker.metadata.image.nodes)}"
        for topic in self.image.topics.values():
            for index, row in enumerate(topic.partitions):
                why = self._unhealed_partition(TopicPartition(topic.name, index), topic.id, row)
                if why is not None:
                    return f"{topic.name}-{index} {why}: {row}"
        return None

    def _unhealed_partition(self, name: TopicPartition, topic_id: UUID, row: Partition) -> str | None:
        if row.leader < 0:
            return "has no leader"
        if row.adding or row.removing:
            return "moves"
        if set(row.isr) != set(row.replicas):
            return "is not in sync"
        broker = self.processes[row.leader].broker
        led = None if broker is None else broker.replicas.led.get(name)
        if led is None or led.leader.leader_epoch != row.leader_epoch or led.topic_id != topic_id:
            return f"is not led by {row.leader}"
        if led.leader.high_watermark != led.log.end_offset:
            return f"has its watermark at {led.leader.high_watermark}, its end at {led.log.end_offset}"
        for node in row.replicas:
            log = self._log_of(node, led)
            if log is None:
                return f"is not at {node}"
            if log.end_offset != led.log.end_offset:
                return f"ends at {log.end_offset} at {node}, at {led.log.end_offset} at its leader"
            start = max(log.start_offset, led.log.start_offset)
            if not self._is_compacted(led) and marks(log, start, log.end_offset) != marks(
                led.log, start, log.end_offset
            ):
                self.stage.fail(f"{name} differs at {node} and at its leader {row.leader}, though both are in sync")
        return None
