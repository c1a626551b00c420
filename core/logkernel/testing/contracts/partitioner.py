"""What every partitioner promises to the topics and producers that use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

from logkernel.contracts import Partitioner
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown

Step = tuple[bytes | None, bool]
"""A record's key, and whether its batch is full then."""
STEPS = st.lists(st.tuples(st.none() | st.binary(max_size=6), st.booleans()), max_size=15)
SEEDS = st.integers(0, 2**64 - 1)


class PartitionerContract(Kit[Partitioner]):
    """`logkernel.contracts.Partitioner`. `settings` are the topic's; where you override `make`, use `self.seed`."""

    kind = "partitioner"
    methods = ("partition", "on_batch_full")
    seed: int = 1
    """The seed of the next object. The kit changes it."""

    def provide(self, kernel: Kernel, name: str) -> Partitioner:
        plugin: Mapping[str, Any] = self.topic_settings.plugin
        return kernel.partitioner(name, plugin, self.seed)

    @for_all(60, seed=SEEDS, partitions=st.integers(1, 50), steps=STEPS, data=st.data())
    def test_every_answer_is_a_partition_of_the_topic(
        self, seed: int, partitions: int, steps: list[Step], data: st.DataObject
    ) -> None:
        available = sorted(data.draw(st.sets(st.integers(0, partitions - 1), min_size=1)))
        self._run(self._seeded(seed), steps, [(partitions, available)] * len(steps))

    @for_all(30, seed=SEEDS, partitions=st.integers(1, 10), steps=STEPS)
    def test_it_answers_also_while_no_partition_has_a_leader(
        self, seed: int, partitions: int, steps: list[Step]
    ) -> None:
        self._run(self._seeded(seed), steps, [(partitions, ())] * len(steps))

    @for_all(30, seed=SEEDS, grown=st.lists(st.integers(0, 3), min_size=1, max_size=10), key=st.none() | st.binary())
    def test_a_topic_may_get_more_partitions(self, seed: int, grown: list[int], key: bytes | None) -> None:
        topics = [(count, range(count)) for count in accumulate(grown, initial=1)]
        self._run(self._seeded(seed), [(key, True)] * len(topics), topics)

    @for_all(30, seed=SEEDS, partitions=st.integers(1, 20), steps=STEPS)
    def test_the_seed_is_its_only_randomness(self, seed: int, partitions: int, steps: list[Step]) -> None:
        topic = [(partitions, range(partitions))] * len(steps)
        one, two = (self._run(self._seeded(seed), steps, topic) for _ in range(2))
        if one != two:
            self.broken(f"two objects with seed {seed} chose {one} and {two}; draw from Random(seed) alone")

    @for_all(30, seed=SEEDS, partitions=st.integers(1, 20), steps=STEPS, others=STEPS)
    def test_topics_and_producers_share_no_state(
        self, seed: int, partitions: int, steps: list[Step], others: list[Step]
    ) -> None:
        topic = [(partitions, range(partitions))]
        alone = self._run(self._seeded(seed), steps, topic * len(steps))
        mine = self._seeded(seed)
        beside = []
        for number, step in enumerate(steps):
            self._run(self._seeded(seed), others[number:], topic * len(others[number:]))
            beside += self._run(mine, [step], topic)
        if alone != beside:
            self.broken(f"it chose {alone} alone, and {beside} while other objects were used; keep state in the object")

    def _seeded(self, seed: int) -> Partitioner:
        self.seed = seed
        return self.make()

    def _run(
        self, partitioner: Partitioner, steps: Sequence[Step], topics: Sequence[tuple[int, Sequence[int]]]
    ) -> list[int]:
        """The partition of each step; every one is checked."""
        found = []
        for (key, full), (partitions, available) in zip(steps, topics, strict=True):
            given_available = list(available)
            with self.calling("partition()"):
                answer = partitioner.partition(key, b"value", partitions, given_available)
            if type(answer) is not int or not 0 <= answer < partitions:
                self.broken(
                    f"partition() returned {shown(answer)} for the key {key!r} and {partitions} partitions, of which"
                    f" {list(available)} have a leader; return an int of range({partitions})"
                )
            if given_available != list(available):
                self.broken(f"partition() changed `available` to {given_available}; leave it as it is")
            if full:
                with self.calling("on_batch_full()"):
                    partitioner.on_batch_full(answer)
            found.append(answer)
        return found
