"""Placements that break a promise."""

from __future__ import annotations

import random
from typing import Any

from logkernel.contracts import PlacementFacts
from wrong_plugins import Wrong, made


class Right:
    """The first brokers for every partition."""

    def place(self, facts: PlacementFacts) -> Any:
        return [[node for node, _ in facts.brokers][: facts.factor]] * facts.partitions


class OneRow(Right):
    def place(self, facts: PlacementFacts) -> Any:
        return super().place(facts)[:1]


class Ring(Right):
    """It counts on brokers 0, 1, 2 …"""

    def place(self, facts: PlacementFacts) -> Any:
        size = len(facts.brokers)
        return [[(first + turn) % size for turn in range(facts.factor)] for first in range(facts.partitions)]


class BesideTheFirst(Right):
    def place(self, facts: PlacementFacts) -> Any:
        nodes = [node for node, _ in facts.brokers]
        if facts.leader_of_first is not None:
            nodes.insert(0, nodes.pop(nodes.index(facts.leader_of_first)))
        return [nodes[: facts.factor]] * facts.partitions


class Dice(Right):
    def place(self, facts: PlacementFacts) -> Any:
        nodes = [node for node, _ in facts.brokers]
        return [random.sample(nodes, facts.factor) for _ in range(facts.partitions)]


WRONG = [
    Wrong("test_each_partition_gets_its_replicas_on_live_brokers", "placed 1 partitions of", made(lambda _: OneRow())),
    Wrong(
        "test_each_partition_gets_its_replicas_on_live_brokers", "give it \\d different ones of", made(lambda _: Ring())
    ),
    Wrong("test_a_topic_may_get_more_partitions", r"place\(\) raised ValueError", made(lambda _: BesideTheFirst())),
    Wrong("test_draw_is_its_only_randomness", "use facts.draw alone", made(lambda _: Dice())),
]
