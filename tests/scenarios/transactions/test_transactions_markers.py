"""From Prepare to Complete: markers that fail, come late, or die with the broker; appends that fail."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.errors import KafkaStorageError
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.requests.transactions import (
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    WriteTxnMarkersResponse,
)
from logkernel.vocabulary import Record

CONCURRENT, FENCED, WRONG_ID, NOT_AVAILABLE, NOT_COORDINATOR = 51, 90, 49, 15, 16
ORDERS, BILLS = ("orders", 0), ("bills", 1)


def begun(world: Any, *partitions: tuple[str, int]) -> tuple[int, int]:
    who: tuple[int, int] = world.init()
    assert world.add(who, *(partitions or (ORDERS, BILLS))) == 0
    return who


@pytest.mark.parametrize("code", [6, 7, 13, 19, 20, 56, -1, 67])
def test_what_fails_is_sent_again_alone_and_ever_later(world: Any, code: int) -> None:
    who = begun(world)
    world.marker_codes[BILLS] = [code] * 9
    assert world.end(who) == 0
    assert world.marks() == [("orders-0", 0, True)]
    pauses = []
    while world.state == "PrepareCommit":
        before, due = world.mono_ms, world.machine.coordinator.endings["tx"].due_ms
        pauses.append(due - before)
        world.to(due)
    assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    assert world.marks() == [("bills-1", 0, True)]
    assert world.states()[-2:] == ["PrepareCommit", "CompleteCommit"]


@pytest.mark.parametrize("code", [43, 35, 47])
def test_what_needs_no_marker(world: Any, code: int) -> None:
    who = begun(world)
    world.marker_codes[BILLS] = [code]
    world.end(who)
    assert world.state == "CompleteCommit"


def test_a_topic_that_is_gone_needs_no_marker(world: Any) -> None:
    who = begun(world)
    del world.cluster.topics["bills"]
    world.end(who)
    assert world.marks() == [("orders-0", 0, True)]
    assert world.state == "CompleteCommit"


def test_a_topic_of_which_the_coordinator_was_not_told_yet_gets_its_marker(world: Any) -> None:
    """World seed 20243: a coordinator that was started again left the markers out of all its partitions, as it had
    heard of no topic yet; what was committed there stayed invisible."""
    who = begun(world)
    world.cluster.untold["bills"] = world.cluster.topics.pop("bills")
    world.end(who)
    assert world.state == "PrepareCommit"
    world.cluster.topics["bills"] = 2
    world.after(100)
    assert world.marks() == [("bills-1", 0, True), ("orders-0", 0, True)]
    assert world.state == "CompleteCommit"


def test_a_partition_of_which_the_coordinator_was_not_told_yet_gets_its_marker(world: Any) -> None:
    who = begun(world)
    world.cluster.untold["bills"], world.cluster.topics["bills"] = 2, 1
    world.end(who)
    assert world.state == "PrepareCommit"
    world.cluster.topics["bills"] = 2
    world.after(100)
    assert world.marks() == [("bills-1", 0, True), ("orders-0", 0, True)]


def test_a_topic_that_may_be_there_is_waited_for_until_the_coordination_answers(world: Any) -> None:
    who = begun(world)
    del world.cluster.topics["bills"]
    world.cluster.silent = KafkaStorageError("unsure")
    world.marker_codes[BILLS] = [3]
    world.end(who)
    assert world.state == "PrepareCommit"
    world.cluster.silent = None
    world.after(100)
    assert world.marks() == [("orders-0", 0, True)]
    assert world.state == "CompleteCommit"


def test_a_topic_that_goes_while_its_marker_is_on_its_way(world: Any) -> None:
    who = begun(world)
    world.hold_sends = True
    world.end(who)
    del world.cluster.topics["bills"]
    world.carry()
    assert world.state == "CompleteCommit"


def test_a_topic_that_goes_while_its_marker_waits(world: Any) -> None:
    who = begun(world)
    world.marker_codes[BILLS] = [13] * 5
    world.end(who)
    del world.cluster.topics["bills"]
    world.run(world.machine.on_topics_deleted(["bills", "nothing"], world.wall_ms, world.mono_ms))
    assert world.state == "CompleteCommit"
    assert world.machine.coordinator.endings == {}


def test_a_topic_that_is_known_and_does_not_answer_yet_is_waited_for(world: Any) -> None:
    who = begun(world)
    world.marker_codes[BILLS] = [3]
    world.end(who)
    assert world.state == "PrepareCommit"
    world.after(100)
    assert world.state == "CompleteCommit"


def test_answers_that_say_nothing_are_no_answers(world: Any) -> None:
    who = begun(world)
    world.hold_sends = True
    world.end(who)
    (token, _) = world.sends.popleft()
    world.run(world.machine.on_response(token, WriteTxnMarkersResponse(), world.wall_ms, world.mono_ms))
    assert world.state == "PrepareCommit"
    world.hold_sends = False
    world.after(100)
    assert world.state == "CompleteCommit"


def test_late_answers_change_nothing(world: Any) -> None:
    who = begun(world)
    world.hold_sends = True
    world.end(who, v2=True)
    token, request = world.sends[0]
    world.carry()
    response = world.write(request)
    for _ in range(2):
        world.run(world.machine.on_response(token, response, world.wall_ms, world.mono_ms))
        assert world.state == "CompleteCommit"
    world.add((4000, 1))
    world.end((4000, 1), committed=False, v2=True)
    world.run(world.machine.on_response(token, response, world.wall_ms, world.mono_ms))
    assert world.state == "PrepareAbort", "that was the transaction before"
    world.run(world.machine.on_response(("other", 1, 1), response, world.wall_ms, world.mono_ms))
    world.carry()
    assert world.state == "CompleteAbort"


@pytest.mark.parametrize("committed", [True, False])
def test_what_was_decided_is_carried_out_after_a_crash(world: Any, committed: bool) -> None:
    who = begun(world)
    world.hold_sends = True
    after = world.end(who, committed, v2=True)
    world.hold_sends = False
    world.crash()
    world.after(100)
    assert world.marks() == [("bills-1", 1, committed), ("orders-0", 1, committed)]
    assert world.states()[-1] == ("CompleteCommit" if committed else "CompleteAbort")
    assert world.end(who, committed, v2=True) == after


def test_a_crash_among_the_markers_writes_them_again(world: Any) -> None:
    who = begun(world)
    world.marker_codes[BILLS] = [13]
    world.end(who)
    assert world.marks() == [("orders-0", 0, True)]
    world.crash()
    world.after(100)
    assert world.marks() == [("bills-1", 0, True), ("orders-0", 0, True)]
    assert world.machine.coordinator.epoch == 1


def test_a_crash_before_the_decision_is_committed(world: Any) -> None:
    who = begun(world)
    world.hold_commits = True
    world.send(EndTxnRequest("tx", *who, True))
    assert (world.answers, world.written) == ({}, [])
    world.hold_commits = False
    world.crash(keep=0)
    assert world.state == "Ongoing"
    assert world.written == []
    assert world.end(who, committed=False) == 0


# ---------------------------------------------------------------- between an append and its commit


@pytest.mark.parametrize(
    ("code", "told"), [(19, 15), (20, 15), (7, 15), (3, 15), (6, 16), (56, 16), (10, -1), (18, -1), (87, 87)]
)
def test_an_append_that_fails_leaves_no_trace(world: Any, code: int, told: int) -> None:
    who = begun(world)
    for ask in (
        lambda: world.end(who, v2=True),
        lambda: world.add(who, ("orders", 2)),
        lambda: world.add_offsets(who, "g"),
        lambda: world.init("other"),
        lambda: world.init(),
    ):
        before = len(world.log)
        world.fail_next = code
        assert ask() == told
        assert (len(world.log), world.written) == (before, [])
        assert world.txn().partitions == {ORDERS, BILLS}
    assert world.end(who, v2=True) == (4000, 1)


def test_nobody_is_told_what_rests_on_an_append_under_way(world: Any) -> None:
    who = world.init()
    world.hold_commits = True
    added = world.send(world.adding(who), frozenset())
    again = world.send(world.adding(who), frozenset())
    assert world.answers == {}, "the second one is in the transaction only if the first is"
    world.fail(19)
    codes = [
        row.partition_error_code
        for ticket in (added, again)
        for row in world.answers.pop(ticket).results_by_transaction[0].topic_results[0].results_by_partition
    ]
    assert codes == [NOT_AVAILABLE] * 2


def test_nobody_is_fenced_by_an_append_that_fails(world: Any) -> None:
    first = world.init()
    world.hold_commits = True
    second = world.send(InitProducerIdRequest("tx", 1_000))
    end = world.send(EndTxnRequest("tx", *first, False))
    world.fail(19)
    assert (world.answers[second].error_code, world.answers[end].error_code) == (NOT_AVAILABLE, NOT_AVAILABLE)
    world.hold_commits = False
    assert world.add(first) == 0


def test_markers_wait_for_the_commit_of_the_decision(world: Any) -> None:
    who = begun(world)
    world.hold_commits = True
    ticket = world.send(EndTxnRequest("tx", *who, True))
    assert world.written == []
    world.commit()
    assert world.answers.pop(ticket).error_code == 0
    assert world.marks() == [("bills-1", 1, True), ("orders-0", 1, True)]


def test_a_complete_that_cannot_be_kept_is_carried_out_anew(world: Any) -> None:
    who = begun(world)
    world.hold_sends = True
    world.end(who)
    world.fail_next = 19
    world.hold_sends = False
    world.carry()
    assert world.state == "PrepareCommit"
    world.after(100)
    assert world.state == "CompleteCommit"
    assert world.marks() == sorted([("bills-1", 0, True), ("orders-0", 0, True)] * 2)
    assert world.states()[-2:] == ["PrepareCommit", "CompleteCommit"]


def test_a_log_that_fails_for_long_does_not_keep_the_broker_busy(world: Any) -> None:
    who = begun(world)
    world.hold_sends = True
    world.end(who)
    world.fail_all, world.hold_sends = 19, False
    world.carry()
    world.after(1_000)
    assert world.failures == 11, "at first, and every 100 ms"
    del world.cluster.topics["orders"], world.cluster.topics["bills"]
    world.after(1_000)
    assert world.failures == 21
    world.fail_all = 0
    world.after(100)
    assert world.state == "CompleteCommit"


# ---------------------------------------------------------------- for those who operate


def test_what_is_described(world: Any) -> None:
    who = begun(world, ("orders", 3), ("orders", 1), BILLS)
    started = world.wall_ms
    world.after(1_000)
    (row,) = world.ask(DescribeTransactionsRequest(["tx"])).transaction_states
    assert (row.error_code, row.transactional_id, row.transaction_state) == (0, "tx", "Ongoing")
    assert (row.producer_id, row.producer_epoch, row.transaction_timeout_ms) == (4000, 0, 60_000)
    assert row.transaction_start_time_ms == started
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("bills", [1]), ("orders", [1, 3])]
    world.marker_codes[BILLS] = [13]
    world.end(who)
    (row,) = world.ask(DescribeTransactionsRequest(["tx"])).transaction_states
    assert [(topic.topic, topic.partitions) for topic in row.topics] == [("bills", [1])], "whose marker is missing"
    for name, code in (("nobody", 105), ("", 42)):
        (row,) = world.ask(DescribeTransactionsRequest([name])).transaction_states
        assert (row.error_code, row.transactional_id) == (code, name)


def listed(world: Any, **filters: Any) -> Any:
    decision = world.machine.on_request(ListTransactionsRequest(**filters), None, 1, world.wall_ms, world.mono_ms)
    ((_, response),) = decision.answers
    return response


def names(world: Any, **filters: Any) -> list[str]:
    return sorted(row.transactional_id for row in listed(world, **filters).transaction_states)


def test_what_is_listed(world: Any) -> None:
    world.init("idle")
    world.add(world.init("old"), name="old")
    world.after(5_000)
    world.add(world.init("new"), name="new")
    assert names(world) == ["idle", "new", "old"]
    rows = {row.transactional_id: (row.producer_id, row.transaction_state) for row in listed(world).transaction_states}
    assert rows["new"] == (4002, "Ongoing")
    assert names(world, state_filters=["Ongoing"]) == ["new", "old"]
    assert names(world, producer_id_filters=[4000, 4002, 9]) == ["idle", "new"]
    assert names(world, state_filters=["Ongoing"], duration_filter=4_999) == ["old"]
    assert names(world, state_filters=["Ongoing"], duration_filter=5_000) == []
    assert names(world, transactional_id_pattern="(old|ne.)") == ["new", "old"]
    assert names(world, transactional_id_pattern="ol") == [], "the whole id"
    assert names(world, transactional_id_pattern="") == ["idle", "new", "old"]
    assert names(world, state_filters=["Dead", "PrepareEpochFence"]) == []
    odd = listed(world, state_filters=["Empty", "What"])
    assert (odd.unknown_state_filters, [row.transactional_id for row in odd.transaction_states]) == (["What"], ["idle"])


def test_a_pattern_that_is_none(world: Any) -> None:
    assert listed(world, transactional_id_pattern="(").error_code == 128


def test_a_pattern_cannot_keep_the_broker_busy(world: Any) -> None:
    world.init("a" * 5_000)
    assert names(world, transactional_id_pattern="(a|a)*(a|a)*b") == []


def test_records_of_other_kinds_are_passed_over(world: Any) -> None:
    world.machine.replay(Record(b"\0\3\0\1g", b"?"))
    world.machine.replay(Record(None, b"?"))
    world.machine.replay(Record(b"\0\0\0\1g", None))
    assert world.machine.transactions == {}
    with pytest.raises(TypeError):
        world.machine.on_request(object(), None, 1, 0, 0)
