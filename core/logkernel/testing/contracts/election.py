"""What every election strategy promises: a leader that may lead, and nothing acknowledged is lost by a clean one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from logkernel.contracts import Candidates, Elected, ElectionStrategy
from logkernel.guards.election import judged_election
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all
from logkernel.testing.simulation.simulate import SimulationFailed, simulate

SEEDS = 6
"""Simulated histories; each takes some 25 ms."""


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    """Any state that a partition of one to six replicas may be in when it has lost its leader."""
    assignment = tuple(draw(st.permutations(range(1, 7)))[: draw(st.integers(1, 6))])
    isr = tuple(draw(st.permutations(assignment))[: draw(st.integers(0, len(assignment)))])
    alive = draw(st.frozensets(st.sampled_from([*assignment, 99])))
    return Candidates(assignment, isr, alive, draw(st.booleans()))


class ElectionContract(Kit[ElectionStrategy]):
    """`logkernel.contracts.ElectionStrategy`."""

    kind = "election"
    methods = ("elect",)

    def provide(self, kernel: Kernel, name: str) -> ElectionStrategy:
        return kernel.election(name, self.topic_settings.plugin)

    @for_all(60, known=candidates())
    def test_the_leader_is_alive_and_a_replica(self, known: Candidates) -> None:
        """The broker's guard says so, too, and refuses the election."""
        self._elect(known)

    @for_all(40, known=candidates())
    def test_a_clean_election_adds_nobody_to_the_isr(self, known: Candidates) -> None:
        """A replica that was not in sync may lack acknowledged records."""
        elected = self._elect(known)
        if elected is not None and elected.clean and not set(elected.isr) <= set(known.isr):
            added = sorted(set(elected.isr) - set(known.isr))
            self.broken(
                f"elect() put {added} into the ISR, which was {known.isr}; name only replicas that were in sync, or say"
                f" Elected(..., clean=False)"
            )

    @for_all(40, known=candidates())
    def test_equal_candidates_give_equal_results(self, known: Candidates) -> None:
        """A new controller repeats an election that its predecessor may have begun."""
        once, again = self._elect(known), self._elect(known)
        if once != again:
            self.broken(f"elect() returned {once}, then {again} for {known}; depend on the candidates alone")

    @for_all(20, assignment=st.permutations(range(1, 5)), count=st.integers(1, 4))
    def test_a_healthy_partition_gets_a_leader(self, assignment: list[int], count: int) -> None:
        replicas = tuple(assignment[:count])
        if self._elect(Candidates(replicas, replicas, frozenset(replicas))) is None:
            self.broken(f"elect() returned None though {replicas} are all alive and in sync; elect one of them")

    def test_a_simulated_cluster_keeps_its_promises(self) -> None:
        name, plugins = self.as_plugins()
        try:
            simulate(self.tries(SEEDS), election=name, plugins=plugins)
        except SimulationFailed as error:
            self.broken(f"a simulated cluster under faults breaks a promise: {error}")

    def _elect(self, known: Candidates) -> Elected | None:
        strategy = self.make()
        with self.calling("elect()"):
            found: Any = strategy.elect(known)
            return judged_election(self.name or type(strategy).__name__, known, found)
