"""What every placement promises: the replicas that were asked for, on brokers that are alive, and no hidden chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.guards.placement import judged_placement
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all

RACKS = st.none() | st.sampled_from(["a", "b", "c"])
FLEETS = st.dictionaries(st.integers(0, 1000), RACKS, min_size=1, max_size=8)


class PlacementContract(Kit[PlacementStrategy]):
    """`logkernel.contracts.PlacementStrategy`."""

    kind = "placement"
    methods = ("place",)

    def provide(self, kernel: Kernel, name: str) -> PlacementStrategy:
        return kernel.placement(name, self.topic_settings.plugin)

    @for_all(40, brokers=FLEETS, partitions=st.integers(1, 40), data=st.data())
    def test_each_partition_gets_its_replicas_on_live_brokers(
        self, brokers: dict[int, str | None], partitions: int, data: st.DataObject
    ) -> None:
        """The broker's guard says so, too, and creates nothing."""
        factor = data.draw(st.integers(1, len(brokers)))
        self._place(facts(brokers, partitions, factor, 1))

    @for_all(40, brokers=FLEETS, first=st.integers(1, 40), leader=st.integers(0, 1000), seed=st.integers(0, 99))
    def test_a_topic_may_get_more_partitions(
        self, brokers: dict[int, str | None], first: int, leader: int, seed: int
    ) -> None:
        """The first partition's leader may be a broker that is gone."""
        for factor in (1, len(brokers)):
            self._place(facts(brokers, 5, factor, seed, first, leader))

    @for_all(20, brokers=FLEETS, partitions=st.integers(1, 10), seed=st.integers(0, 99))
    def test_draw_is_its_only_randomness(self, brokers: dict[int, str | None], partitions: int, seed: int) -> None:
        factor = min(2, len(brokers))
        once, again = (self._place(facts(brokers, partitions, factor, seed)) for _ in range(2))
        if once != again:
            self.broken(f"place() returned {once}, then {again} for the same draws; use facts.draw alone")

    def _place(self, known: PlacementFacts) -> Sequence[Sequence[int]]:
        strategy = self.make()
        with self.calling("place()"):
            return judged_placement(self.name or type(strategy).__name__, known, strategy.place(known))


def facts(
    brokers: dict[int, str | None],
    partitions: int,
    factor: int,
    seed: int,
    first: int = 0,
    leader_of_first: int | None = None,
) -> PlacementFacts:
    """Facts whose draws come of `seed`."""
    rows = tuple(sorted(brokers.items()))
    return PlacementFacts(partitions, factor, rows, Random(seed).randrange, first, leader_of_first)
