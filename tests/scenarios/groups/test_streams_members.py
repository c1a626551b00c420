"""Members of a Streams group: who comes, stays and goes, by which epoch, and what they know of one another."""

from __future__ import annotations

from typing import Any

import pytest
from streams_members import (
    ALL,
    DELAYED,
    FENCED_EPOCH,
    MAX_SIZE,
    SHUTDOWN,
    UNKNOWN_MEMBER,
    beat,
    make_topics,
    settle,
    stateful,
    status,
    told,
)

from logkernel.requests.streams_groups import (
    Endpoint,
)

# ---------------------------------------------------------------- members


def test_one_member_from_join_to_leave(world: Any) -> None:
    answer = beat(world, "m1", 0)
    assert (answer.error_code, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (
        0, "m1", 2, 5_000,
    )  # fmt: skip
    assert (told(answer.active_tasks), answer.standby_tasks, answer.warmup_tasks) == (ALL, [], [])
    assert answer.status == []
    assert world.state == "Stable"
    size = len(world.log)
    again = beat(world, "m1", 2, active=ALL)
    assert (again.active_tasks, again.status) == (None, [])
    assert len(world.log) == size, "a heartbeat that changes nothing is not kept"
    gone = beat(world, "m1", -1)
    assert (gone.member_epoch, gone.status) == (-1, [])
    assert world.state == "Empty"
    assert world.group.streams.epoch == 3


def test_tasks_move_when_they_are_given_up_and_not_before(world: Any) -> None:
    beat(world, "m1", 0)
    second = beat(world, "m2", 0)
    assert (second.member_epoch, told(second.active_tasks), status(second)) == (2, [], [DELAYED])
    world.after(1_000)
    second = beat(world, "m2", 2, active=[])
    assert (second.member_epoch, second.active_tasks) == (3, None)
    assert world.state == "Reconciling"
    first = beat(world, "m1", 2, active=ALL)
    assert first.member_epoch == 2, "it still holds what it is to give up"
    kept = told(first.active_tasks)
    assert kept is not None
    assert len(kept) == 2
    assert beat(world, "m2", 3).active_tasks is None
    assert beat(world, "m1", 2, active=kept).member_epoch == 3
    second = beat(world, "m2", 3)
    assert sorted([*kept, *(told(second.active_tasks) or [])]) == ALL
    assert world.state == "Stable"


def test_a_member_that_does_not_give_up_in_time_is_removed(world: Any) -> None:
    beat(world, "m1", 0)
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2, active=[])
    beat(world, "m1", 2)
    for _ in range(3):
        world.after(20_000)
        beat(world, "m1", 2)
        beat(world, "m2", 3)
    assert list(world.group.streams.members) == ["m2"]
    assert beat(world, "m1", 2).error_code == UNKNOWN_MEMBER


def test_a_member_without_a_sign_of_life_is_removed(world: Any) -> None:
    settle(world, "m1", "m2")
    world.after(40_000)
    epoch = world.group.streams.members["m2"].epoch
    beat(world, "m2", epoch)
    world.after(6_000)
    assert list(world.group.streams.members) == ["m2"]
    world.crash()
    assert told(beat(world, "m2", epoch).active_tasks) == ALL
    world.after(46_000)
    assert world.state == "Empty"


def test_epochs_guard_what_a_member_says(world: Any) -> None:
    beat(world, "m1", 0)
    assert beat(world, "m1", 3).error_code == FENCED_EPOCH
    assert beat(world, "m1", 1).error_code == FENCED_EPOCH, "it does not say what it holds"
    member = world.group.streams.members["m1"]
    assert member.previous_epoch == 0
    beat(world, "m2", 0)
    world.after(1_000)
    beat(world, "m2", 2)
    kept = told(beat(world, "m1", 2).active_tasks)
    beat(world, "m1", 2, active=kept)
    assert beat(world, "m1", 2, active=kept).member_epoch == 3, "the answer with its new epoch was lost"
    assert beat(world, "m1", 2, active=ALL).error_code == FENCED_EPOCH
    assert beat(world, "m9", 1).error_code == UNKNOWN_MEMBER


def test_a_member_that_lost_an_answer_is_told_its_tasks_again(world: Any) -> None:
    settle(world, "m1")
    epoch = world.group.streams.epoch
    beat(world, "m2", 0)
    first = told(beat(world, "m1", epoch, active=ALL).active_tasks) or []
    beat(world, "m1", epoch, active=first)
    lost = beat(world, "m2", epoch + 1)
    assert sorted([*first, *(told(lost.active_tasks) or [])]) == ALL
    again = beat(world, "m2", epoch + 1, active=[])
    assert again.active_tasks == lost.active_tasks
    assert beat(world, "m2", epoch + 1, active=told(lost.active_tasks)).active_tasks is None


def test_a_member_that_begins_anew_has_what_it_had(world: Any) -> None:
    beat(world, "m1", 0)
    again = beat(world, "m1", 0)
    assert (again.member_epoch, told(again.active_tasks)) == (2, ALL)


def test_a_group_that_is_full(make_world: Any) -> None:
    world = make_world({"group.streams.max.size": "1"})
    beat(world, "m1", 0)
    assert beat(world, "m2", 0).error_code == MAX_SIZE
    assert beat(world, "m1", 0).error_code == 0


def test_the_first_assignment_waits_for_more_members(world: Any) -> None:
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    first = beat(world, "m1", 0)
    assert (first.member_epoch, told(first.active_tasks), status(first)) == (1, [], [DELAYED])
    assert world.state == "Assigning"
    beat(world, "m2", 0)
    world.after(3_000)
    assert len(world.group.streams.targets) == 2, "it waits for no heartbeat"
    shares = [told(beat(world, name, 1, active=[]).active_tasks) for name in ("m1", "m2")]
    assert [len(share or []) for share in shares] == [2, 2]
    assert world.state == "Stable"


def test_a_first_assignment_without_a_second_heartbeat_waits_for_one(world: Any) -> None:
    """As at Kafka, which knows the topics of a topology from the heartbeat after the one that brought it. Here the
    timer looked at them itself: its target was one for an older epoch, and another one followed a second later."""
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    beat(world, "m1", 0, topology=stateful())
    make_topics(world)
    world.after(3_000)
    assert world.group.streams.assignment_epoch == 1
    answer = beat(world, "m1", 1)
    assert (answer.member_epoch, status(answer)) == (3, [])
    assert len(told(answer.active_tasks) or []) == 8


def test_a_first_assignment_is_for_the_topics_that_a_heartbeat_saw(world: Any) -> None:
    """The timer looked at them again, and the group kept the hash of the old ones."""
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    beat(world, "m1", 0)
    beat(world, "m1", 1)
    world.topics.partitions["orders"] = 6
    world.run(world.machine.on_topics_changed(["orders"], world.wall_ms, world.mono_ms))
    world.after(3_000)
    first = beat(world, "m1", 1)
    assert (first.member_epoch, told(first.active_tasks), status(first)) == (2, ALL, [DELAYED])
    world.after(1_000)
    second = beat(world, "m1", 2)
    assert (second.member_epoch, len(told(second.active_tasks) or [])) == (3, 6)


def test_a_group_that_is_empty_again_before_its_first_assignment(world: Any) -> None:
    world.topics.group_settings["g", "streams.initial.rebalance.delay.ms"] = 3_000
    beat(world, "m1", 0)
    beat(world, "m1", -1)
    assert ("streams-initial", "g") not in world.machine.coordinator.timers


# ---------------------------------------------------------------- shutdown and endpoints


@pytest.mark.parametrize("epoch", [2, -1])
def test_one_member_shuts_the_whole_application_down(world: Any, epoch: int) -> None:
    settle(world, "m1", "m2")
    member = world.group.streams.members["m1"]
    beat(world, "m1", -1 if epoch < 0 else member.epoch, shutdown_application=True)
    answer = beat(world, "m2", world.group.streams.members["m2"].epoch)
    assert SHUTDOWN in status(answer)
    detail = next(row.status_detail for row in answer.status if row.status_code == SHUTDOWN)
    assert detail.startswith("Streams group member m1 encountered a fatal error")
    for name in list(world.group.streams.members):
        beat(world, name, -1)
    assert SHUTDOWN not in status(beat(world, "m3", 0)), "it ends with the group's last member"


def test_members_know_one_anothers_endpoints(world: Any) -> None:
    beat(world, "m1", 0, user_endpoint=Endpoint("one", 1))
    answer = beat(world, "m1", 2)
    assert answer.endpoint_information_epoch == 0
    beat(world, "m2", 0, user_endpoint=Endpoint("two", 2))
    answer = beat(world, "m1", 2, endpoint_information_epoch=0)
    rows = {row.user_endpoint.host: row for row in answer.partitions_by_user_endpoint}
    assert set(rows) == {"one", "two"}
    assert [(row.topic, row.partitions) for row in rows["one"].active_partitions] == [("orders", [0, 1, 2, 3])]
    assert answer.endpoint_information_epoch == 1
    assert beat(world, "m1", 2, endpoint_information_epoch=1).partitions_by_user_endpoint is None
