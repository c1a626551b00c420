"""Random histories of transactional producers from a seed, over restarts, late batches, repeated and stale markers.

Whatever happens: below the last stable offset exactly the records of committed transactions are seen, in their order;
that offset never falls, and stops at the first record that is not decided; no record is stored twice.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import define, field

import logkernel

SEEDS = range(12)
STEPS = 160
PARTITIONS = (0, 1)


@define(eq=False)
class Producer:
    """A producer of transactions v2: an epoch a transaction, sequences from 0 in each partition."""

    number: int
    epoch: int = 0
    transaction: int = 0
    sequences: dict[int, int] = field(factory=dict)
    late: list[tuple[int, int, int, bytes]] = field(factory=list)
    """(epoch, sequence, partition, value) of batches that the network may deliver again."""
    markers: list[tuple[int, bool]] = field(factory=list)
    """(epoch, committed) of markers that may come again."""


class History:
    def __init__(self, path: Any, make_world: Any, seed: int) -> None:
        self.chance = random.Random(seed)
        self.path = path
        self.make_world = make_world
        self.log = logkernel.open(path)
        self.log.create_topic("t", partitions=len(PARTITIONS))
        self.world = make_world(self.log)
        self.producers = [Producer(number) for number in range(1, 5)]
        self.written: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
        """(producer, transaction) → (partition, value) that were acknowledged."""
        self.fates: dict[tuple[int, int], bool] = {}
        self.stable = dict.fromkeys(PARTITIONS, 0)

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
            self.check_stable()
        self.check()
        for producer in self.producers:
            self.end(producer, committed=True)
        self.check_stable()
        self.check()
        self.log.close()

    def step(self) -> None:
        dice = self.chance.random()
        producer = self.chance.choice(self.producers)
        if dice < 0.6:
            self.write(producer)
        elif dice < 0.8:
            self.end(producer, committed=self.chance.random() < 0.6)
        elif dice < 0.88 and producer.late:
            self.deliver_again(producer)
        elif dice < 0.96 and producer.markers:
            self.mark_again(producer)
        elif dice > 0.985:
            self.restart()

    def write(self, producer: Producer) -> None:
        partition = self.chance.choice(PARTITIONS)
        sequence = producer.sequences.get(partition, 0)
        value = b"%d.%d.%d.%d" % (producer.number, producer.transaction, partition, sequence)
        held = self.world.coordinator.held = self.chance.random() < 0.3
        answer = self.world.send(
            sequence, value, producer=producer.number, epoch=producer.epoch, partitions=(partition,)
        )
        if held and not answer:
            self.world.coordinator.speak()
        self.world.coordinator.held = False
        assert self.world.codes(answer) == [0]
        producer.sequences[partition] = sequence + 1
        producer.late.append((producer.epoch, sequence, partition, value))
        self.written.setdefault((producer.number, producer.transaction), []).append((partition, value))

    def end(self, producer: Producer, *, committed: bool) -> None:
        """As a coordinator does: to each partition that takes part, with the next epoch."""
        partitions = tuple(producer.sequences)
        if not partitions:
            return
        producer.epoch += 1
        codes = self.world.mark(
            committed=committed, producer=producer.number, epoch=producer.epoch, version=2, partitions=partitions
        )
        assert set(codes) == {0}
        producer.markers.append((producer.epoch, committed))
        self.fates[producer.number, producer.transaction] = committed
        producer.transaction += 1
        producer.sequences.clear()

    def deliver_again(self, producer: Producer) -> None:
        """The network had a batch twice, or very late; its coordinator confirms the present epoch alone."""
        epoch, sequence, partition, value = self.chance.choice(producer.late)
        self.world.coordinator.code = 0 if epoch == producer.epoch and partition in producer.sequences else 90
        self.world.send(sequence, value, producer=producer.number, epoch=epoch, partitions=(partition,))
        self.world.coordinator.code = 0

    def mark_again(self, producer: Producer) -> None:
        epoch, committed = self.chance.choice(producer.markers)
        flipped = committed if epoch == producer.epoch else not committed
        partition = self.chance.choice(PARTITIONS)
        self.world.mark(committed=flipped, producer=producer.number, epoch=epoch, version=2, partitions=(partition,))

    def restart(self) -> None:
        if self.chance.random() < 0.5:
            self.log.close()
        else:
            self.log.broker.logs.abandon()
        self.log = logkernel.open(self.path)
        self.world = self.make_world(self.log)

    def check_stable(self) -> None:
        for partition in PARTITIONS:
            leader = self.log.broker.replicas.led["t", partition].leader
            stable = leader.last_stable_offset()
            assert self.stable[partition] <= stable <= leader.high_watermark
            self.stable[partition] = stable

    def check(self) -> None:
        """What is committed and lies below the last stable offset is seen, and nothing else."""
        for partition in PARTITIONS:
            stored = list(self.log.read("t", partition))
            values = [record.value for record in stored]
            assert len(set(values)) == len(values), "a record is stored twice"
            acknowledged = {v: key for key, rows in self.written.items() for p, v in rows if p == partition}
            assert set(values) == set(acknowledged)
            stable = self.stable[partition]
            decided = [record.value for record in stored if record.offset < stable]
            wanted = [value for value in decided if self.fates.get(acknowledged[value])]
            assert self.world.values("read_committed", partition) == wanted
            undecided = [record.offset for record in stored if acknowledged[record.value] not in self.fates]
            assert all(offset >= stable for offset in undecided)
            assert undecided or stable == self.log.end_offset("t", partition)


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_are_seen_all_or_none(seed: int, tmp_path: Any, make_world: Any) -> None:
    History(tmp_path, make_world, seed).run()
