"""What every ISR policy promises: it answers by the facts, keeps who keeps up, and lets go of who is dead."""

from __future__ import annotations

from hypothesis import strategies as st

from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.guards.isr import judged_in_sync
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all
from logkernel.testing.simulation.simulate import SimulationFailed, simulate

LAG_MS = 30_000
LONG_AGO = 10**9
SEEDS = 6
"""Simulated histories; each takes some 25 ms."""
AGES = st.integers(0, LONG_AGO)
FACTS = st.builds(
    FollowerFacts,
    node=st.integers(0, 10**6),
    is_member=st.booleans(),
    lag_records=st.none() | st.integers(0, 2**40),
    caught_up_ms=AGES,
    fetched_ms=AGES,
    lag_time_max_ms=st.integers(1, 10**6),
)


class IsrContract(Kit[IsrPolicy]):
    """`logkernel.contracts.IsrPolicy`. `settings` are the topic's."""

    kind = "isr"
    methods = ("is_in_sync",)

    def provide(self, kernel: Kernel, name: str) -> IsrPolicy:
        return kernel.isr(name, self.topic_settings.plugin)

    @for_all(60, known=FACTS)
    def test_it_says_true_or_false_to_any_follower(self, known: FollowerFacts) -> None:
        self._asked(self.make(), known)

    @for_all(40, known=FACTS, between=FACTS)
    def test_equal_facts_give_equal_answers(self, known: FollowerFacts, between: FollowerFacts) -> None:
        """A leader asks again and again; each change of the answer is a write of the controller."""
        policy = self.make()
        once = self._asked(policy, known)
        self._asked(policy, between)
        again, other = self._asked(policy, known), self._asked(self.make(), known)
        if not once == again == other:
            self.broken(f"is_in_sync() returned {once}, then {again}, and {other} of a new object for {known}")

    @for_all(25, age_ms=AGES, member=st.booleans())
    def test_a_follower_with_all_records_is_in_sync(self, age_ms: int, member: bool) -> None:
        """An idle partition has no news to fetch, so that ages grow there."""
        if member and not self._asked(self.make(), facts(0, age_ms)):
            self.broken(f"is_in_sync() lets a member go that has all records, {age_ms} ms after its last fetch")
        if not member and not self._asked(self.make(), facts(0, 0, is_member=False)):
            self.broken("is_in_sync() keeps a follower out that has just fetched all records; nothing would let it in")

    def test_a_member_that_is_just_behind_stays(self) -> None:
        """Every record puts all followers behind for a moment."""
        if not self._asked(self.make(), facts(1, 0)):
            self.broken("is_in_sync() lets a member go that lacks one record since now; wait lag_time_max_ms")

    @for_all(25, lag=st.none() | st.integers(1, 2**40), lag_ms=st.integers(1, 10**6))
    def test_a_member_that_is_dead_leaves(self, lag: int | None, lag_ms: int) -> None:
        """`acks=all` waits for every member: one that never answers would stop the partition for good."""
        known = FollowerFacts(2, True, lag, LONG_AGO * 10, LONG_AGO * 10, lag_ms)
        if self._asked(self.make(), known):
            self.broken(
                f"is_in_sync() keeps a member that lacks records ({lag}) and was last heard of {LONG_AGO * 10} ms ago;"
                f" acks=all would wait for it for ever"
            )

    def test_a_simulated_cluster_becomes_whole_again(self) -> None:
        name, plugins = self.as_plugins()
        try:
            simulate(self.tries(SEEDS), isr=name, plugins=plugins, settings=self.settings)
        except SimulationFailed as error:
            self.broken(f"a simulated cluster under faults does not recover: {error}")

    def _asked(self, policy: IsrPolicy, known: FollowerFacts) -> bool:
        with self.calling("is_in_sync()"):
            return judged_in_sync(self.name or type(policy).__name__, policy.is_in_sync(known))


def facts(lag_records: int | None, age_ms: int, *, is_member: bool = True) -> FollowerFacts:
    """A follower whose ages are equal."""
    return FollowerFacts(2, is_member, lag_records, age_ms, age_ms, LAG_MS)
