"""Partitioners that break a promise."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from wrong_plugins import Wrong, made


class First:
    """A partitioner that keeps its promises: all records go to partition 0."""

    seen = 0
    """Records, of all objects together."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.partitions: int | None = None

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        return 0

    def on_batch_full(self, partition: int) -> None:
        """Nothing sticks here."""


class OffByOne(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        return partitions if key else 0


class Unsure(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        return None


class Taker(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Any) -> Any:
        return available.pop()


class NeedsLeaders(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        return min(available)


class Settled(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        if self.partitions not in (None, partitions):
            raise ValueError("the topic has changed")
        self.partitions = partitions
        return 0


class Dice(First):
    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        return random.randrange(partitions)


class Crowd(First):
    """Its objects take turns together."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        First.seen = seed

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> Any:
        First.seen += 1
        return First.seen % partitions


WRONG = [
    Wrong(
        "test_every_answer_is_a_partition_of_the_topic", r"return an int of range\(\d+\)", made(lambda _: OffByOne())
    ),
    Wrong("test_every_answer_is_a_partition_of_the_topic", "returned None", made(lambda _: Unsure())),
    Wrong("test_every_answer_is_a_partition_of_the_topic", "changed `available`", made(lambda _: Taker())),
    Wrong(
        "test_it_answers_also_while_no_partition_has_a_leader",
        r"partition\(\) raised ValueError: .*; raise nothing there",
        made(lambda _: NeedsLeaders()),
    ),
    Wrong(
        "test_a_topic_may_get_more_partitions", "raised ValueError: the topic has changed", made(lambda _: Settled())
    ),
    Wrong("test_the_seed_is_its_only_randomness", r"draw from Random\(seed\) alone", made(lambda _: Dice())),
    Wrong("test_topics_and_producers_share_no_state", "keep state in the object", made(lambda s: Crowd(s.seed))),
]
