"""The in-sync replicas as their leader sees them: each row of the table, and who the watermark waits for."""

import pytest
from drawn import drawn

from logkernel.contracts import FollowerFacts, IsrPolicy
from logkernel.errors import PluginError
from logkernel.partition import isr as module
from logkernel.partition.isr import TRANSITIONS, Event, InSyncReplicas, State

LAG_MS = 100
ALIVE = frozenset((1, 2, 3))


def in_sync(isr=(1, 2, 3)) -> InSyncReplicas:
    return InSyncReplicas(
        node_id=1, replicas=(1, 2, 3), isr=isr, leader_epoch=5, partition_epoch=7, lag_ms=LAG_MS, mono_ms=1000
    )


def expanding() -> InSyncReplicas:
    sync = in_sync((1, 2))
    sync.on_fetch(3, 10, 0, 10, 1000, 33)
    assert sync.propose_expansion(3, 10, 10, ALIVE, 10, 1000) is not None
    return sync


def shrinking() -> InSyncReplicas:
    sync = in_sync()
    sync.on_fetch(2, 10, 0, 10, 1100, -1)
    assert sync.propose_shrink(10, 1101) is not None
    return sync


def stuck(sync: InSyncReplicas) -> InSyncReplicas:
    sync.on_refused(sync.proposal, revert=False)
    return sync


def order(sync: InSyncReplicas) -> None:
    assert sync.on_order(6, (1, 2, 3), (1, 2), 9, 2000)


MAKE = {
    State.COMMITTED: in_sync,
    State.EXPANDING: expanding,
    State.SHRINKING: shrinking,
    State.STUCK: lambda: stuck(expanding()),
}
MOVES = {
    Event.ACCEPTED: lambda sync: sync.on_accepted(sync.proposal, 8),
    Event.REVERTED: lambda sync: sync.on_refused(sync.proposal, revert=True),
    Event.STUCK: lambda sync: sync.on_refused(sync.proposal, revert=False),
    Event.ORDER: order,
}


@pytest.mark.parametrize(("state", "event"), [row for row in TRANSITIONS if row[1] in MOVES])
def test_an_event_moves_the_set_as_its_table_says(state: State, event: Event) -> None:
    sync = MAKE[state]()
    assert sync.state is state
    MOVES[event](sync)
    assert sync.state is TRANSITIONS[state, event]


def test_the_table_that_is_drawn_is_the_table_that_runs() -> None:
    rows = {}
    for before, event, after, _ in drawn(module.__doc__, "state", "event", "next", "why"):
        for state in State if before == "any" else [State[before]]:
            rows[state, Event(event)] = State[after]
    assert rows == TRANSITIONS


def test_an_event_without_a_row_is_a_fault() -> None:
    with pytest.raises(RuntimeError, match="in-sync replicas: accepted, while committed"):
        TRANSITIONS[State.COMMITTED, Event.ACCEPTED]


def test_who_joins_counts_at_once_and_who_leaves_until_that_is_confirmed() -> None:
    sync = expanding()
    assert (sync.isr, sync.maximal) == ({1, 2}, {1, 2, 3})
    sync = shrinking()
    assert (sync.proposal.isr, sync.maximal) == ({1, 2}, {1, 2, 3})
    assert sync.on_accepted(sync.proposal, 8)
    assert (sync.isr, sync.maximal, sync.partition_epoch) == ({1, 2}, {1, 2}, 8)


def test_one_proposal_is_under_way_at_a_time() -> None:
    sync = shrinking()
    assert sync.propose_shrink(10, 5000) is None
    assert sync.propose_expansion(3, 0, 0, ALIVE, 10, 5000) is None


def test_a_proposal_names_the_generation_of_each_follower() -> None:
    assert expanding().proposal.members == ((1, -1), (2, -1), (3, 33))


@pytest.mark.parametrize(
    ("end", "watermark", "epoch_start", "alive", "joins"),
    [
        (10, 10, 10, ALIVE, True),
        (9, 10, 0, ALIVE, False),
        (9, 9, 10, ALIVE, False),
        (10, 10, 10, frozenset((1, 2)), False),
    ],
    ids=["caught up", "below the watermark", "below the epoch's start", "not alive"],
)
def test_who_may_join(end: int, watermark: int, epoch_start: int, alive: frozenset[int], joins: bool) -> None:
    sync = in_sync((1, 2))
    sync.on_fetch(3, end, 0, 20, 1000, -1)
    assert (sync.propose_expansion(3, watermark, epoch_start, alive, 20, 1000) is not None) is joins


def test_a_refusal_counts_for_the_last_attempt_alone_and_an_acceptance_for_any() -> None:
    sync = expanding()
    first = sync.proposal
    assert sync.repeat().attempt == 1
    assert not sync.on_refused(first, revert=True)
    assert sync.state is State.EXPANDING
    assert sync.on_accepted(first, 8)
    assert sync.isr == {1, 2, 3}


def test_a_stuck_set_waits_for_an_order_alone() -> None:
    sync = stuck(expanding())
    assert sync.repeat() is None
    assert not sync.on_accepted(sync.proposal, 8)
    assert sync.maximal == {1, 2, 3}
    assert not sync.on_order(5, (1, 2, 3), (1,), 9, 2000)
    order(sync)
    assert sync.maximal == {1, 2}


def test_a_member_has_the_lag_to_show_itself_and_lags_after_it() -> None:
    sync = in_sync()
    assert sync.lagging(10, 1100) == frozenset()
    assert sync.lagging(10, 1101) == {2, 3}


def test_who_fetches_from_where_the_leader_ended_at_its_last_fetch_had_caught_up_then() -> None:
    sync = in_sync()
    sync.on_fetch(2, 5, 0, 10, 1050, -1)
    assert sync.followers[2].caught_up_ms == 1000
    sync.on_fetch(2, 10, 0, 20, 1090, -1)
    assert sync.followers[2].caught_up_ms == 1050


def test_the_watermark_waits_for_members_and_for_those_about_to_join() -> None:
    sync = in_sync((1, 2))
    sync.on_fetch(2, 10, 0, 10, 1000, -1)
    sync.on_fetch(3, 10, 0, 10, 1000, -1)
    sync.on_fetch(3, 10, 0, 12, 1010, -1)
    assert sorted(sync.holding(12, 1020, ALIVE)) == [10, 10]
    assert sorted(sync.holding(12, 1020, frozenset((1, 2)))) == [10]
    assert sorted(sync.holding(12, 2000, ALIVE)) == [10]


def test_a_follower_with_nothing_to_ask_for_had_caught_up_at_each_look() -> None:
    sync = in_sync((1, 2))
    sync.on_fetch(2, 10, 0, 10, 1001, -1)
    for now_ms in range(1050, 2000, LAG_MS // 2):
        assert sync.propose_shrink(10, now_ms) is None
    assert sync.propose_shrink(11, 2000) is None, "the leader wrote just now"
    assert sync.propose_shrink(11, 2050) is None
    assert sync.propose_shrink(11, 2051).isr == {1}, "so long after the last look at which it held all"


def test_a_late_fetch_of_an_earlier_life_counts_for_nothing() -> None:
    """It moved the watermark over records that a power cut had taken from the follower meanwhile."""
    sync = in_sync()
    sync.on_fetch(2, 10, 0, 10, 1000, 33)
    sync.on_fetch(2, 4, 0, 10, 1010, 34)
    assert sync.on_fetch(2, 10, 0, 10, 1020, 33).log_end == 4
    assert sync.followers[2].broker_epoch == 34
    assert sync.on_fetch(2, 5, 0, 10, 1030, -1).log_end == 5, "who names no epoch is believed"


@pytest.mark.parametrize("how", ["gone", "order"])
def test_nor_does_it_count_when_all_else_of_the_follower_is_forgotten(how: str) -> None:
    """Found by the protocol's seed 71923."""
    sync = in_sync((1, 3))
    sync.on_fetch(2, 10, 0, 10, 1000, 34)
    if how == "gone":
        sync.on_gone([2])
    else:
        assert sync.on_order(sync.leader_epoch + 1, (1, 2, 3), (1, 3), sync.partition_epoch + 1, 1005)
    assert sync.followers[2].log_end == -1
    assert sync.on_fetch(2, 10, 0, 10, 1010, 33).log_end == -1
    assert sync.on_fetch(2, 4, 0, 10, 1020, 34).log_end == 4


# ---------------------------------------------------------------- a policy


class Within:
    """Counts in sync whoever lags by at most so many records."""

    def __init__(self, records: int) -> None:
        self.records = records
        self.asked: list[FollowerFacts] = []

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        self.asked.append(follower)
        return follower.lag_records is not None and follower.lag_records <= self.records


class Broken:
    def is_in_sync(self, follower: FollowerFacts) -> bool:
        raise PluginError("as a guard raises it")


def judged_by(policy: IsrPolicy, isr=(1, 2, 3)) -> InSyncReplicas:
    sync = in_sync(isr)
    sync.take_policy(policy)
    return sync


def test_a_member_leaves_when_the_topics_policy_says_so_however_short_its_lag() -> None:
    sync = judged_by(Within(3))
    sync.on_fetch(2, 17, 0, 20, 1000, -1)
    sync.on_fetch(3, 16, 0, 20, 1000, -1)
    proposal = sync.propose_shrink(20, 1001)
    assert proposal is not None
    assert proposal.isr == {1, 2}


def test_a_policy_is_told_ages_and_a_lag() -> None:
    policy = Within(0)
    sync = judged_by(policy)
    sync.on_fetch(2, 20, 0, 20, 1010, -1)
    sync.on_fetch(2, 15, 0, 25, 1040, -1)
    sync.lagging(25, 1050)
    assert policy.asked == [
        FollowerFacts(2, True, 10, caught_up_ms=40, fetched_ms=10, lag_time_max_ms=LAG_MS),
        FollowerFacts(3, True, None, caught_up_ms=50, fetched_ms=50, lag_time_max_ms=LAG_MS),
    ]


def test_the_watermark_waits_for_a_member_that_is_to_leave_and_not_for_one_that_was_refused() -> None:
    sync = judged_by(Within(3))
    sync.on_fetch(2, 20, 0, 20, 1000, -1)
    sync.on_fetch(3, 10, 0, 20, 1000, -1)
    proposal = sync.propose_shrink(20, 1001)
    assert sorted(sync.holding(20, 1001, ALIVE)) == [10, 20], "the controller has not confirmed that it leaves"
    assert sync.on_accepted(proposal, 8)
    assert sorted(sync.holding(20, 1001, ALIVE)) == [20], "it was caught up just now, and is refused all the same"


def test_a_replica_joins_when_the_policy_lets_it_and_it_holds_what_is_committed() -> None:
    sync = judged_by(Within(3), isr=(1, 2))
    for end, watermark, joins in (15, 10, False), (17, 18, False), (17, 17, True):
        sync.on_fetch(3, end, 0, 20, 1000, -1)
        assert (sync.propose_expansion(3, watermark, 10, ALIVE, 20, 1000) is not None) is joins


def test_a_replica_that_was_refused_counts_again_when_its_policy_or_its_lag_changed() -> None:
    sync = judged_by(Within(0), isr=(1, 2))
    sync.on_fetch(3, 19, 0, 20, 1000, -1)
    assert sync.propose_expansion(3, 20, 0, ALIVE, 20, 1000) is None
    assert sync.followers[3].refused
    sync.take_policy(Within(1))
    assert not sync.followers[3].refused
    sync.take_policy(Within(0))
    assert sync.propose_expansion(3, 20, 0, ALIVE, 20, 1000) is None
    sync.on_fetch(3, 20, 0, 20, 1000, -1)
    assert sync.propose_expansion(3, 21, 0, ALIVE, 20, 1000) is None, "it is behind the watermark still"
    assert not sync.followers[3].refused


def test_where_a_policy_errs_time_decides() -> None:
    sync = judged_by(Broken())
    assert sync.lagging(10, 1100) == frozenset()
    assert sync.lagging(10, 1101) == {2, 3}
    sync = judged_by(Broken(), isr=(1, 2))
    sync.on_fetch(3, 10, 0, 20, 1000, -1)
    assert sync.propose_expansion(3, 10, 10, ALIVE, 20, 1000) is not None
