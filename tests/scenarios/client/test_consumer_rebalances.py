"""Seeded histories: members come, go and read at random; with commits of their own nothing is lost or doubled."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import logkernel
from logkernel.client.vocabulary import RebalanceListener
from logkernel.vocabulary import Record, TopicPartition

PARTITIONS = 4


class Commits(RebalanceListener):
    """Commits what was read before it goes to others."""

    def __init__(self) -> None:
        self.consumer: Any = None

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.consumer.commit()


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_doubled_over_rebalances(seed: int, strategy: str) -> None:
    random = Random(seed)
    found: list[tuple[int, int]] = []
    written = 0
    with logkernel.open(group_initial_rebalance_delay_ms=0) as log:
        log.create_topic("t", PARTITIONS)

        def join() -> Any:
            listener = Commits()
            consumer = listener.consumer = log.consumer(
                group="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=5,
                max_poll_records=random.randint(1, 20),
                partition_assignment_strategy=strategy,
            )
            consumer.subscribe(["t"], listener)
            return consumer

        members = [join()]
        for _ in range(40):
            chance = random.random()
            if chance < 0.15 and len(members) < 4:
                members.append(join())
            elif chance < 0.25 and len(members) > 1:
                members.pop(random.randrange(len(members))).close()
            elif chance < 0.6:
                for index in range(PARTITIONS):
                    log.append_many("t", [Record(None, b"v")] * 5, partition=index)
                written += 5
            for member in members:
                found += [(row.partition, row.offset) for row in member.poll(0.01)]
        for _ in range(3000):
            if len(found) >= written * PARTITIONS:
                break
            for member in members:
                found += [(row.partition, row.offset) for row in member.poll(0.01)]
        for member in members:
            found += [(row.partition, row.offset) for row in member.poll(0.01)]
    assert sorted(found) == [(index, offset) for index in range(PARTITIONS) for offset in range(written)]
