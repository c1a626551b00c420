"""The pure parts of Streams groups: numbers of partitions, a member's step towards its target."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from attrs import evolve

from logkernel.errors import FencedMemberEpoch, StreamsInvalidTopology
from logkernel.plugins.services.groups.by_epochs.steps import TRANSITIONS, Finding
from logkernel.plugins.services.groups.by_epochs.values import CurrentFacts, MemberState
from logkernel.plugins.services.groups.streams.configured import Configured, StatusCode, configure
from logkernel.plugins.services.groups.streams.reconcile import Goal, reconcile
from logkernel.plugins.services.groups.streams.records import GroupFacts, MemberFacts, Place, Role
from logkernel.plugins.services.groups.streams.state import (
    STATES,
    GroupState,
    Standing,
    StreamsGroup,
    StreamsMember,
)
from logkernel.plugins.services.groups.streams.topology import CopartitionGroup, InternalTopic, Subtopology, Topology

A, S, W = Role
TOPICS = {"in": 3, "wide": 6, "narrow": 2}


def found(*subtopologies: Subtopology, **more: int) -> Configured:
    topics = {**TOPICS, **more}
    return configure(Topology(0, subtopologies), topics.get)


def told(configured: Configured) -> tuple[StatusCode, str]:
    assert configured.problem is not None
    return configured.problem.status, configured.problem.detail


# ---------------------------------------------------------------- numbers of partitions


def test_repartition_topics_follow_from_one_to_the_next() -> None:
    """In whatever order the subtopologies stand."""
    chain = [
        Subtopology("3", (), (), (InternalTopic("log"),), (), (InternalTopic("second"),)),
        Subtopology("2", (), (), (), ("second",), (InternalTopic("first"),)),
        Subtopology("1", ("in", "wide"), (), (), ("first",)),
    ]
    for order in (chain, chain[::-1]):
        configured = found(*order)
        assert configured.partitions == {"first": 6, "second": 6, "log": 6}
        assert configured.tasks == {"1": 6, "2": 6, "3": 6}
        assert {topic.name for topic in configured.missing} == {"first", "second", "log"}
        assert told(configured)[0] is StatusCode.MISSING_INTERNAL_TOPICS
    ready = found(*chain, first=6, second=6, log=6)
    assert (ready.is_ready, ready.missing) == (True, ())


def test_a_topology_says_how_many_partitions_a_repartition_topic_has() -> None:
    reader = Subtopology("1", repartition_source_topics=(InternalTopic("r", 9),))
    assert found(Subtopology("0", ("in",), repartition_sink_topics=("r",)), reader).tasks == {"0": 3, "1": 9}


def test_topics_that_have_other_partitions_than_they_need() -> None:
    one = Subtopology("0", ("in",), state_changelog_topics=(InternalTopic("log"),))
    assert told(found(one, log=4)) == (
        StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic log has different number of partitions: expected 3, found 4",
    )


def test_many_missing_topics_are_told_shortly() -> None:
    one = Subtopology("0", tuple(f"t{number}" for number in range(5)))
    assert told(found(one)) == (
        StatusCode.MISSING_SOURCE_TOPICS,
        "Source topics t0, t1, t2 and 2 additional topics are missing.",
    )


def joined(*sources: str, repartition: tuple[InternalTopic, ...] = ()) -> tuple[Subtopology, Subtopology]:
    """A subtopology that writes the repartition topics, and one that joins them with sources."""
    writer = Subtopology("0", ("wide",), repartition_sink_topics=tuple(topic.name for topic in repartition))
    group = CopartitionGroup(tuple(range(len(sources))), (), tuple(range(len(repartition))))
    reader = Subtopology("1", sources, repartition_source_topics=repartition, copartition_groups=(group,))
    return writer, reader


def test_copartitioned_topics_have_one_number() -> None:
    assert found(*joined("in", repartition=(InternalTopic("r"),))).partitions == {"r": 3}
    flexible = (InternalTopic("r"), InternalTopic("q"))
    assert found(*joined(repartition=flexible)).partitions == {"r": 6, "q": 6}
    assert found(*joined(repartition=(InternalTopic("r", 4), InternalTopic("q")))).partitions == {"r": 4, "q": 4}


@pytest.mark.parametrize(
    ("sources", "repartition", "detail"),
    [
        (("in", "narrow"), (), "Following topics do not have the same number of partitions: [{in=3, narrow=2}]"),
        (
            (),
            (InternalTopic("r", 4), InternalTopic("q", 5)),
            "Following topics do not have the same number of partitions: [{q=5, r=4}]",
        ),
        (
            ("in",),
            (InternalTopic("r", 4),),
            "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [3] of the source"
            " topic.",
        ),
    ],
)
def test_copartitioned_topics_of_different_numbers(
    sources: tuple[str, ...], repartition: tuple[InternalTopic, ...], detail: str
) -> None:
    configured = found(*joined(*sources, repartition=repartition))
    assert told(configured) == (StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail)
    assert configured.tasks == {}


def test_a_long_chain_of_repartition_topics_takes_one_pass() -> None:
    """Each of 3,000 subtopologies waits for the one behind it."""
    last = 3_000
    chain = [
        Subtopology(str(number), (), (), (), (f"r{number}",), (InternalTopic(f"r{number + 1}"),))
        for number in range(last)
    ]
    asked: Counter[str] = Counter()

    def count(topic: str) -> int | None:
        asked[topic] += 1
        return TOPICS.get(topic)

    configured = configure(Topology(0, (*chain, Subtopology("end", ("in",), (), (), (f"r{last}",)))), count)
    assert configured.partitions["r1"] == 3
    assert max(asked.values()) < 10


def test_loops_are_refused() -> None:
    loop = Subtopology("0", (), (), (), ("r",), (InternalTopic("r"),))
    with pytest.raises(StreamsInvalidTopology, match="loops"):
        found(loop)


# ---------------------------------------------------------------- a member's step


def member(state: MemberState = MemberState.STABLE, epoch: int = 5, **more: dict[Place, int]) -> StreamsMember:
    return StreamsMember("m", MemberFacts(process_id="p"), CurrentFacts(epoch, epoch - 1, state, **more))


def goal(*target: Place, held: frozenset[Place] | None = None, **holders: dict[tuple[str, Role], str]) -> Goal:
    """`holders` by "subtopology_partition"."""
    others = {(name.split("_")[1], int(name.split("_")[2])): who for name, who in holders.items()}
    return Goal(6, frozenset(target), others, held)


ACTIVE, STANDBY = (A, "0", 0), (S, "0", 0)
WAYS = [(state, finding) for state in MemberState for finding in Finding if (state, finding) in TRANSITIONS]


@pytest.mark.parametrize(("state", "finding"), WAYS)
def test_every_way_of_the_table_is_gone(state: MemberState, finding: Finding) -> None:
    surplus = {(A, "0", 1): 4} if finding is Finding.MUST_REVOKE else {}
    before = member(state, assigned=surplus)
    others = {"t_0_0": {("other", A): "q"}} if finding is Finding.MUST_WAIT else {}
    held: frozenset[Place] = frozenset(surplus)
    after = reconcile(before, goal(ACTIVE, held=held, **others))
    assert after.state is TRANSITIONS[state, finding]
    assert after.previous_epoch == before.epoch
    if finding is Finding.SETTLED:
        assert (after.epoch, dict(after.assigned)) == (6, {ACTIVE: 6})


def test_the_table_has_no_other_way() -> None:
    with pytest.raises(RuntimeError, match="a member of a group"):
        TRANSITIONS[MemberState.UNKNOWN, Finding.MUST_REVOKE]


def test_one_in_a_state_that_is_not_known_must_begin_anew() -> None:
    with pytest.raises(FencedMemberEpoch):
        reconcile(member(MemberState.UNKNOWN), goal(ACTIVE))
    assert reconcile(member(MemberState.UNKNOWN), goal(ACTIVE, held=frozenset())).epoch == 6


def test_who_does_not_say_what_it_holds_is_waited_for() -> None:
    revoking = member(MemberState.UNREVOKED, revoking={(A, "0", 1): 4})
    assert reconcile(revoking, goal(ACTIVE)) == revoking
    assert reconcile(revoking, goal(ACTIVE, held=frozenset({(A, "0", 1)}))) == revoking
    assert dict(reconcile(revoking, goal(ACTIVE, held=frozenset())).assigned) == {ACTIVE: 6}


@pytest.mark.parametrize(
    ("wanted", "held_as", "process", "free"),
    [
        (ACTIVE, A, "p", False),
        (ACTIVE, A, "q", False),
        (ACTIVE, S, "p", False),
        (ACTIVE, S, "q", True),
        (ACTIVE, W, "p", False),
        (STANDBY, A, "p", False),
        (STANDBY, A, "q", True),
        (STANDBY, S, "p", False),
        (STANDBY, S, "q", True),
    ],
)
def test_who_keeps_a_member_from_a_task(wanted: Place, held_as: Role, process: str, free: bool) -> None:
    after = reconcile(member(), goal(wanted, held=frozenset(), t_0_0={("other", held_as): process}))
    assert (wanted in after.assigned, after.state is MemberState.STABLE) == (free, free)


def test_a_task_comes_in_another_role_one_heartbeat_after_it_was_given_up() -> None:
    revoking = member(MemberState.UNREVOKED, revoking={STANDBY: 0})
    given_up = reconcile(revoking, goal(ACTIVE, held=frozenset(), t_0_0={("m", S): "p"}))
    assert (given_up.state, given_up.epoch, dict(given_up.assigned)) == (MemberState.UNRELEASED, 6, {})
    assert reconcile(given_up, goal(ACTIVE, held=frozenset())).assigned == {ACTIVE: 6}


def test_only_active_tasks_have_an_epoch() -> None:
    after = reconcile(member(), goal(ACTIVE, (S, "0", 1), held=frozenset()))
    assert after.assigned == {ACTIVE: 6, (S, "0", 1): 0}


# ---------------------------------------------------------------- how a group stands


def test_every_standing_of_a_group() -> None:
    group = StreamsGroup()
    seen = [group.state]
    group.facts, group.recorded = GroupFacts(2), True
    seen.append(group.state)
    group.topology = Topology(0, (Subtopology("0", ("in",)),))
    group.keep_facts("m", MemberFacts(process_id="p"))
    seen.append(group.state)
    group.facts = evolve(group.facts, validated_epoch=0)
    seen.append(group.state)
    group.assignment_epoch = 2
    seen.append(group.state)
    group.keep_current("m", CurrentFacts(2, 1, MemberState.STABLE, {ACTIVE: 2}))
    seen.append(group.state)
    assert seen == [STATES[standing] for standing in Standing]
    assert list(GroupState) == [*seen[1:], seen[0]]
    assert all(one is not other for one, other in pairwise(seen))


def test_holders_follow_a_members_process() -> None:
    group = StreamsGroup()
    group.keep_facts("m", MemberFacts(process_id="p"))
    group.keep_current("m", member(assigned={ACTIVE: 2, (S, "0", 1): 0}).current)
    assert group.holders == {("0", 0): {("m", A): "p"}, ("0", 1): {("m", S): "p"}}
    group.keep_facts("m", MemberFacts(process_id="q"))
    assert group.holders == {("0", 0): {("m", A): "q"}, ("0", 1): {("m", S): "q"}}
    group.forget_current("m")
    assert group.holders == {}
