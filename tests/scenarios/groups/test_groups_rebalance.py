"""Rounds: who joins when, who is told what, and who is out. All times in ms."""

from __future__ import annotations

from typing import Any

import pytest

NONE, ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP_ID, UNKNOWN_MEMBER = 0, 22, 23, 24, 25
INVALID_SESSION, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, MAX_SIZE = 26, 27, 79, 81


def test_one_member_from_join_to_leave(world: Any) -> None:
    first = world.answers[world.join()]
    assert first.error_code == MEMBER_ID_REQUIRED
    assert first.member_id.startswith("c-")
    ticket = world.join(first.member_id)
    assert world.state == "PreparingRebalance"
    world.to(2_999)
    assert ticket not in world.answers
    world.to(3_000)
    joined = world.answers[ticket]
    assert (joined.error_code, joined.generation_id, joined.protocol_name, joined.protocol_type) == (
        NONE,
        1,
        "range",
        "consumer",
    )
    assert joined.leader == joined.member_id == first.member_id
    assert [row.member_id for row in joined.members] == [first.member_id]
    assert world.state == "CompletingRebalance"
    synced = world.answers[world.sync(first.member_id, 1, {first.member_id: b"all"})]
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (NONE, b"all", "range")
    assert world.state == "Stable"
    assert world.beat(first.member_id, 1) == NONE
    assert world.leave(first.member_id) == NONE
    assert world.state == "Empty"
    assert world.group.generation == 2


def test_an_old_client_is_in_at_once(world: Any, old: frozenset[str]) -> None:
    ticket = world.join(capabilities=old)
    world.to(3_000)
    assert world.answers[ticket].error_code == NONE


def test_the_first_round_grows_while_members_come(world: Any) -> None:
    _, first = world.enter(rebalance_ms=7_000)
    world.to(1_000)
    world.enter(rebalance_ms=7_000)
    world.to(3_000)  # one came late: 3,000 more
    world.to(5_000)
    world.enter(rebalance_ms=7_000)
    world.to(6_000)  # another: but 1,000 of the 7,000 are left
    assert first not in world.answers
    world.to(6_500)
    world.enter(rebalance_ms=7_000)
    world.to(6_999)
    assert first not in world.answers
    world.to(7_000)
    assert world.answers[first].generation_id == 1
    assert len(world.answers[first].members) == 4


def test_without_latecomers_the_first_round_is_short(world: Any) -> None:
    _, first = world.enter()
    world.to(2_000)
    _, second = world.enter()
    world.to(5_999)
    assert first not in world.answers
    world.to(6_000)
    assert world.answers[first].error_code == world.answers[second].error_code == NONE


def test_no_delay(make_world: Any) -> None:
    world = make_world({"group.initial.rebalance.delay.ms": "0"})
    _, ticket = world.enter()
    world.to(1)
    assert world.answers[ticket].generation_id == 1


def test_the_leader_alone_learns_who_is_in(world: Any) -> None:
    one, first = world.enter()
    two, second = world.enter()
    world.to(10_000)
    leader, follower = world.answers[first], world.answers[second]
    assert leader.leader == follower.leader == one
    assert {row.member_id for row in leader.members} == {one, two}
    assert follower.members == []


def test_followers_wait_for_the_leaders_assignment(world: Any) -> None:
    one, _ = world.enter()
    two, _ = world.enter()
    world.to(10_000)
    waiting = world.sync(two, 1)
    assert waiting not in world.answers
    leading = world.sync(one, 1, {one: b"1", two: b"2", "stranger": b"3"})
    assert world.answers[leading].assignment == b"1"
    assert world.answers[waiting].assignment == b"2"
    assert world.answers[world.sync(two, 1)].assignment == b"2"  # asked again: told again


def test_a_new_member_begins_a_round_that_ends_when_all_are_back(world: Any) -> None:
    (one, two), generation = world.stable(2)
    three, third = world.enter()
    assert world.beat(one, generation) == REBALANCE_IN_PROGRESS
    back = world.join(one)
    assert third not in world.answers
    assert world.answers[world.sync(two, generation)].error_code == REBALANCE_IN_PROGRESS
    again = world.join(two)
    assert {world.answers[ticket].generation_id for ticket in (third, back, again)} == {generation + 1}
    assert world.answers[back].leader == one
    assert world.beat(two, generation) == ILLEGAL_GENERATION
    assert world.beat(three, generation + 1) == NONE


def test_who_does_not_come_back_in_time_is_out(world: Any) -> None:
    (one, two), generation = world.stable(2, session_ms=100_000, rebalance_ms=20_000)
    _, third = world.enter(rebalance_ms=20_000)
    at = world.mono_ms
    back = world.join(two, session_ms=100_000, rebalance_ms=20_000)
    world.to(at + 19_999)
    assert back not in world.answers
    world.to(at + 20_000)
    assert world.answers[back].generation_id == generation + 1
    assert world.answers[back].leader == two, "the leader did not come back: another leads"
    assert one not in world.group.members
    assert world.answers[third].error_code == NONE
    assert world.beat(one, generation) == UNKNOWN_MEMBER


def test_without_heartbeats_a_member_is_gone(world: Any) -> None:
    (one, two), generation = world.stable(2)
    for _ in range(5):
        world.after(9_000)
        assert world.beat(one, world.group.generation) in (NONE, REBALANCE_IN_PROGRESS)
    assert list(world.group.members) == [one]
    assert world.state == "PreparingRebalance"
    assert world.beat(two, generation) == UNKNOWN_MEMBER
    assert world.answers[world.join(one)].generation_id == generation + 1
    world.after(60_000)  # it does not sync either
    assert world.state == "Empty"
    assert world.group.generation == generation + 2


def test_who_waits_is_not_gone(world: Any) -> None:
    (one, two), generation = world.stable(2, session_ms=10_000, rebalance_ms=50_000)
    back = world.join(one, rebalance_ms=50_000)
    for _ in range(4):
        world.after(9_000)
        assert world.beat(two, generation) == REBALANCE_IN_PROGRESS
    assert one in world.group.members
    world.join(two)
    assert world.answers[back].generation_id == generation + 1


def test_an_id_that_was_given_out_is_waited_for_until_its_session_ends(world: Any) -> None:
    (one,), generation = world.stable(1)
    pending = world.answers[world.join(session_ms=6_000)].member_id
    back = world.join(one)  # the leader forces a round
    assert back not in world.answers
    world.after(5_999)
    assert back not in world.answers
    world.after(1)
    assert world.answers[back].generation_id == generation + 1
    assert world.answers[world.join(pending)].error_code == UNKNOWN_MEMBER


def test_a_group_of_nothing_but_an_id_is_forgotten(world: Any) -> None:
    world.join(session_ms=6_000)
    world.to(5_999)
    assert world.state == "Empty"
    world.to(6_000)
    assert world.group is None
    assert world.log == []
    pending = world.answers[world.join()].member_id
    assert world.leave(pending) == NONE
    assert world.group is None


def test_who_does_not_sync_in_time_is_out(world: Any) -> None:
    one, first = world.enter(session_ms=100_000, rebalance_ms=20_000)
    two, second = world.enter(session_ms=100_000, rebalance_ms=20_000)
    world.to(6_000)
    assert world.answers[first].error_code == world.answers[second].error_code == NONE
    waiting = world.sync(two, 1)
    world.to(25_999)
    assert waiting not in world.answers
    world.to(26_000)
    assert world.answers[waiting].error_code == REBALANCE_IN_PROGRESS
    assert one not in world.group.members
    assert world.answers[world.join(two)].leader == two


def test_a_new_member_that_never_sees_a_generation_ends_with_its_request(world: Any) -> None:
    (one, _), generation = world.stable(2, session_ms=1_000_000, rebalance_ms=1_000_000)
    _, third = world.enter(session_ms=6_000, rebalance_ms=6_000)
    world.after(299_999)
    assert third not in world.answers
    world.after(1)
    assert (world.answers[third].error_code, world.answers[third].member_id) == (UNKNOWN_MEMBER, "")
    assert world.beat(one, generation) == REBALANCE_IN_PROGRESS


def test_a_member_that_changes_its_mind_begins_a_round_and_one_that_repeats_itself_does_not(
    world: Any, subscribe: Any
) -> None:
    (one, two), generation = world.stable(2)
    same = world.answers[world.join(two)]
    assert (same.error_code, same.generation_id, same.leader, same.members) == (NONE, generation, one, [])
    assert world.state == "Stable"
    other = world.join(two, protocols={"range": subscribe("other")})
    assert other not in world.answers
    assert world.state == "PreparingRebalance"
    world.join(one)
    assert world.answers[other].generation_id == generation + 1


def test_joining_again_while_completing(world: Any, subscribe: Any) -> None:
    one, _ = world.enter()
    two, _ = world.enter()
    world.to(6_000)
    told = world.answers[world.join(one)]
    assert (told.generation_id, len(told.members)) == (1, 2)
    waiting = world.sync(one, 1) if world.group.leader != one else world.sync(two, 1)
    changed = world.join(one, protocols={"range": subscribe("other")})
    assert world.answers[waiting].error_code == REBALANCE_IN_PROGRESS
    world.join(two)
    assert world.answers[changed].generation_id == 2


def test_a_request_sent_again_takes_the_place_of_the_first(world: Any) -> None:
    one, first = world.enter()
    again = world.join(one)
    assert world.answers[first].error_code == REBALANCE_IN_PROGRESS
    world.enter()
    world.to(6_000)
    assert world.answers[again].generation_id == 1
    two = next(member for member in world.group.members if member != one)
    waiting = world.sync(two, 1)
    repeated = world.sync(two, 1)
    assert world.answers[waiting].error_code == REBALANCE_IN_PROGRESS
    world.sync(one, 1, {two: b"2"})
    assert world.answers[repeated].assignment == b"2"


def test_leaving_in_every_state(world: Any) -> None:
    one, _ = world.enter()
    two, second = world.enter()
    assert world.leave(one) == NONE  # PreparingRebalance, first round
    world.to(10_000)
    assert world.answers[second].leader == two
    three, third = world.enter()
    back = world.join(two)
    assert world.answers[back].generation_id == world.answers[third].generation_id == 2
    waiting = world.sync(three, 2)
    assert world.leave(two) == NONE  # CompletingRebalance
    assert world.answers[waiting].error_code == REBALANCE_IN_PROGRESS
    again = world.join(three)
    assert (world.answers[again].leader, world.answers[again].generation_id) == (three, 3)
    assert world.leave(three) == NONE
    assert (world.state, world.group.generation) == ("Empty", 4)
    assert world.leave(three) == UNKNOWN_MEMBER


def test_a_parked_join_is_answered_when_its_member_is_removed(world: Any) -> None:
    one, first = world.enter()
    world.leave(one)
    assert (world.answers[first].error_code, world.answers[first].member_id) == (UNKNOWN_MEMBER, "")


def test_generations_grow_over_empty_times_and_crashes(world: Any) -> None:
    seen = []
    for _ in range(3):
        (one,), generation = world.stable(1)
        seen.append(generation)
        world.leave(one)
        world.crash()
    assert seen == [1, 3, 5]


def test_after_a_crash_members_go_on_as_if_nothing_had_been(world: Any) -> None:
    (one, two), generation = world.stable(2)
    world.crash()
    assert world.state == "Stable"
    assert world.beat(two, generation) == NONE
    assert world.answers[world.sync(two, generation)].assignment == two.encode()
    world.after(9_999)
    assert world.beat(one, generation) == NONE, "sessions began anew"
    world.crash()
    world.after(10_000)
    assert world.state == "Empty"


def test_an_assignment_that_cannot_be_kept_holds_for_nobody(world: Any) -> None:
    (one, two), generation = world.stable(2)
    back, again = world.join(one), world.join(two)
    assert world.answers[back].generation_id == world.answers[again].generation_id == generation + 1
    waiting = world.sync(two, generation + 1)
    world.fail_next = 19
    leading = world.sync(one, generation + 1, {one: b"new"})
    assert world.answers[waiting].error_code == world.answers[leading].error_code == 15
    assert (world.state, world.group.generation) == ("Stable", generation)
    assert world.beat(one, generation + 1) == ILLEGAL_GENERATION
    assert world.answers[world.sync(one, generation)].assignment == one.encode()


def test_a_full_group(make_world: Any, old: frozenset[str]) -> None:
    world = make_world({"group.max.size": 2})
    _, first = world.enter()
    world.enter()
    refused = world.answers[world.join(capabilities=old)]
    assert (refused.error_code, refused.member_id) == (MAX_SIZE, "")
    world.to(10_000)
    assert len(world.answers[first].members) == 2
    assert world.answers[world.join()].error_code == MAX_SIZE


def test_a_group_that_is_too_large_when_it_is_loaded_shrinks(world: Any) -> None:
    (one, two, three), generation = world.stable(3)
    world.settings = {"group.max.size": 2}
    world.crash()
    assert world.beat(one, generation) == REBALANCE_IN_PROGRESS
    two_back, three_back = world.join(two), world.join(three)
    assert world.answers[world.join(one)].error_code == MAX_SIZE
    assert world.answers[two_back].generation_id == world.answers[three_back].generation_id == generation + 1


def test_protocols_and_types_must_agree(world: Any) -> None:
    assert world.answers[world.join(kind="")].error_code == INCONSISTENT_PROTOCOL
    assert world.group is None
    world.enter()
    assert world.answers[world.join(protocols={"other": b""})].error_code == INCONSISTENT_PROTOCOL
    assert world.answers[world.join(kind="connect")].error_code == INCONSISTENT_PROTOCOL


def test_the_protocol_of_a_sync_must_be_the_groups(world: Any) -> None:
    from logkernel.requests.groups import SyncGroupRequest

    (one,), generation = world.stable(1)
    for kind, name in (("connect", "range"), ("consumer", "sticky")):
        request = SyncGroupRequest("g", generation, one, [], None, kind, name)
        assert world.ask(request).error_code == INCONSISTENT_PROTOCOL
    assert world.ask(SyncGroupRequest("g", generation, one)).error_code == NONE


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_session_timeouts_have_bounds(world: Any, session_ms: int) -> None:
    assert world.answers[world.join(session_ms=session_ms)].error_code == INVALID_SESSION


def test_who_is_not_known_is_told_so(world: Any) -> None:
    assert world.answers[world.join("ghost")].error_code == UNKNOWN_MEMBER
    assert world.answers[world.sync("ghost", 1)].error_code == UNKNOWN_MEMBER
    assert world.beat("ghost", 1) == world.leave("ghost") == UNKNOWN_MEMBER
    (one,), generation = world.stable(1)
    assert world.answers[world.join("ghost")].error_code == UNKNOWN_MEMBER
    assert world.answers[world.sync("ghost", generation)].error_code == UNKNOWN_MEMBER
    assert world.answers[world.sync(one, generation + 1)].error_code == ILLEGAL_GENERATION
    world.group_id = ""
    codes = [world.answers[world.join()].error_code, world.answers[world.sync("m", 1)].error_code, world.beat("m", 1)]
    assert codes == [INVALID_GROUP_ID] * 3


def test_what_cannot_be_kept_is_refused(world: Any) -> None:
    assert world.answers[world.join(instance="i" * 9_000)].error_code == 42
    assert world.answers[world.join(protocols={"p" * 40_000: b""})].error_code == 42


def test_an_idle_shard_wants_no_timer(world: Any) -> None:
    assert world.machine.next_deadline() is None


def test_a_rebalance_timeout_of_0_does_not_spin(world: Any) -> None:
    ticket = world.join(instance="i", rebalance_ms=0)
    world.join(instance="j", rebalance_ms=0)
    world.after(10_000)
    member = world.answers[ticket].member_id
    world.sync(member, 1, {})
    turns = 0
    while world.group.members and turns < 60:
        turns += 1
        due = world.machine.next_deadline()
        world.to(due)
    assert turns < 60


def test_who_waited_for_the_assignment_has_a_whole_session_from_then_on(world: Any) -> None:
    one, _ = world.enter()
    two, _ = world.enter()
    world.to(6_000)
    world.sync(two, 1)
    world.to(15_500)
    world.beat(one, 1)
    world.sync(one, 1, {})
    world.to(25_499)
    assert two in world.group.members


def test_who_is_sent_back_from_waiting_has_a_whole_session_to_rejoin(world: Any) -> None:
    one, _ = world.enter()
    two, _ = world.enter()
    world.to(6_000)
    world.sync(two, 1)
    world.to(15_500)
    assert world.leave(one) == NONE
    world.to(25_499)
    assert two in world.group.members
    world.to(25_500)
    assert world.state == "Empty"


def test_a_group_that_empties_while_more_ends_in_the_same_turn_says_so_once(world: Any) -> None:
    (one,), generation = world.stable(1)
    world.beat(one, generation)
    world.after(1)
    world.join()  # an id whose time is up 1 ms after the member's, with the round that follows
    kept = len(world.log)
    world.after(10_000)
    assert (world.state, world.group.generation) == ("Empty", generation + 1)
    assert len(world.log) == kept + 1
