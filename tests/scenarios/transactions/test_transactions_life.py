"""Transactions from begin to end, of v1 and v2; who is fenced, when; timeouts, retries, expiry."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.errors import CoordinatorLoadInProgress
from logkernel.requests.producers import InitProducerIdRequest

CONCURRENT, INVALID_TIMEOUT, INVALID_STATE, WRONG_ID, FENCED = 51, 50, 48, 49, 90
INVALID_REQUEST, UNKNOWN_TOPIC, NOT_ATTEMPTED, TOPIC_FORBIDDEN, ABORTABLE = 42, 3, 55, 29, 120
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def test_a_transaction_of_v1(world: Any) -> None:
    who = world.init()
    assert who == (4000, 0)
    assert world.add(who, ("orders", 0), ("orders", 3)) == 0
    assert world.add(who, ("bills", 1)) == 0
    assert world.end(who) == 0
    assert world.marks() == [("bills-1", 0, True), ("orders-0", 0, True), ("orders-3", 0, True)]
    assert world.states() == ["Empty", "Ongoing", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert world.add(who) == 0
    assert world.end(who, committed=False) == 0
    assert world.marks() == [("orders-0", 0, False)]
    assert world.state == "CompleteAbort"


def test_a_transaction_of_v2_bumps_the_epoch_at_each_end(world: Any) -> None:
    who = world.init()
    assert world.add(who, internal=True) == 0
    who = world.end(who, v2=True)
    assert who == (4000, 1)
    assert world.marks() == [("orders-0", 1, True)]
    assert world.written == []
    world.add(who, internal=True)
    assert world.end(who, committed=False, v2=True) == (4000, 2)
    assert world.marks() == [("orders-0", 2, False)]


def test_markers_name_their_coordinator_and_version(world: Any) -> None:
    world.cluster.epoch = 6
    who = world.init()
    world.add(who)
    world.end(who)
    (mark,) = world.written
    assert (mark.producer_id, mark.coordinator_epoch, mark.version) == (4000, 6, 0)
    world.written.clear()
    world.add(who)
    world.end(who, v2=True)
    (mark,) = world.written
    assert (mark.epoch, mark.version) == (1, 2)


def test_nothing_to_commit(world: Any) -> None:
    who = world.init()
    assert world.end(who) == world.end(who, committed=False) == INVALID_STATE
    assert world.end(who, v2=True) == INVALID_STATE
    assert world.end(who, committed=False, v2=True) == (4000, 1)
    assert world.states() == ["Empty", "PrepareAbort", "CompleteAbort"]
    assert world.end((4000, 1), committed=False, v2=True) == (4000, 2)
    assert world.marks() == []


def test_who_is_not_known(world: Any) -> None:
    assert world.add((1, 0)) == world.end((1, 0)) == world.add_offsets((1, 0), "g") == WRONG_ID
    assert world.add((1, 0), verify=True) == WRONG_ID
    assert world.add((1, 0), name="") == world.end((1, 0), name="") == INVALID_REQUEST
    assert world.add_offsets((1, 0), "g", name="") == world.init("") == INVALID_REQUEST
    assert world.init("x" * 40_000) == INVALID_REQUEST


# ---------------------------------------------------------------- who may speak


def test_the_second_producer_fences_the_first(world: Any) -> None:
    first = world.init()
    second = world.init()
    assert second == (4000, 1)
    assert world.add(first) == world.end(first) == world.add_offsets(first, "g") == FENCED
    assert world.add((9, 1)) == world.end((9, 1)) == WRONG_ID
    assert world.add(second) == 0
    assert world.end(first) == world.end(first, v2=True) == FENCED
    assert world.state == "Ongoing"


def test_the_second_producer_settles_what_the_first_has_begun(world: Any) -> None:
    first = world.init()
    world.add(first, ("orders", 0), ("orders", 1))
    world.hold_sends = True
    assert world.init() == CONCURRENT
    assert world.init() == CONCURRENT, "the markers are not written"
    assert world.end(first) == FENCED
    world.carry()
    assert world.marks() == [("orders-0", 1, False), ("orders-1", 1, False)]
    assert world.init() == (4000, 2)
    assert world.init("tx", *first) == world.end(first, False, v2=True) == FENCED
    assert world.states() == ["Empty", "Ongoing", "PrepareAbort", "CompleteAbort", "Empty"]


def test_without_the_feature_too(world: Any) -> None:
    world.cluster.level = 1
    first = world.init()
    world.add(first)
    assert world.init() == CONCURRENT
    assert world.marks() == [("orders-0", 1, False)]
    assert world.init() == (4000, 2)


def test_a_producer_goes_on_after_an_error(world: Any) -> None:
    who = world.init()
    assert world.init("tx", *who) == (4000, 1)
    assert world.init("tx", *who) == (4000, 1), "it did not hear the answer"
    assert world.init("tx", 4000, 1) == (4000, 2)
    assert world.init("tx", *who) == FENCED
    assert world.init("tx", 4001, 2) == FENCED
    assert world.init() == (4000, 3)
    assert world.init("tx", 4000, 2) == FENCED, "another one came meanwhile"


def test_a_producer_of_v2_whose_end_was_not_heard_goes_on(world: Any) -> None:
    who = world.init()
    world.add(who, internal=True)
    world.end(who, v2=True)
    assert world.init("tx", *who) == (4000, 1)


def test_a_fenced_producer_does_not_abort_its_successors_transaction(world: Any) -> None:
    first = world.init()
    second = world.init()
    world.add(second)
    assert world.init("tx", *first) == FENCED
    assert world.state == "Ongoing"
    assert world.end(second) == 0


def test_its_owner_may_abort_it_by_asking_for_the_next_epoch(world: Any) -> None:
    who = world.init()
    world.add(who)
    assert world.init("tx", *who) == CONCURRENT
    assert world.marks() == [("orders-0", 1, False)]
    assert world.init("tx", *who) == (4000, 1), "it asks again, as it is told to"


def test_half_an_identity_is_none(world: Any) -> None:
    assert world.init("tx", 4000) == world.init("tx", -1, 5) == INVALID_REQUEST
    answer = world.ask(InitProducerIdRequest(None, 0, 4000, -1))
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (INVALID_REQUEST, -1, -1)


def test_an_unknown_id_is_given_to_whoever_names_one(world: Any) -> None:
    assert world.init("tx", 17, 5) == (4000, 0)


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, 50), (-1, 50), (900_001, 50), (900_000, None), (1, None)])
def test_timeouts_are_bounded(world: Any, timeout_ms: int, code: int | None) -> None:
    assert world.init(timeout_ms=timeout_ms) == (code or (4000, 0))


def test_two_phase_commit_is_refused(world: Any) -> None:
    assert world.ask(InitProducerIdRequest("tx", 1_000, enable2_pc=True)).error_code == 53
    assert world.ask(InitProducerIdRequest("tx", 1_000, keep_prepared_txn=True)).error_code == 35


def test_plain_idempotent_producers(world: Any) -> None:
    answers = [world.ask(InitProducerIdRequest()) for _ in range(3)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in answers] == [
        (0, 4000, 0), (0, 4001, 0), (0, 4002, 0),
    ]  # fmt: skip
    assert world.log == []


def test_no_producer_ids_to_be_had(world: Any, use_up: Any) -> None:
    who = world.init()
    world.add(who)
    use_up(world)
    world.cluster.ids_fail = CoordinatorLoadInProgress()
    assert world.end((4000, 32_766), v2=True) == 14
    assert world.init("other") == 14
    assert world.ask(InitProducerIdRequest()).error_code == 14
    assert world.init() == 14
    assert world.state == "Ongoing"


# ---------------------------------------------------------------- epochs that are used up


def test_a_new_producer_id_follows_the_last_epoch(world: Any, use_up: Any) -> None:
    world.init()
    use_up(world)
    assert world.init() == (4001, 0)
    assert world.add((4000, 32_766)) == WRONG_ID


def test_its_owner_asks_twice(world: Any, use_up: Any) -> None:
    world.init()
    use_up(world)
    assert world.init("tx", 4000, 32_766) == (4001, 0)
    assert world.init("tx", 4000, 32_766) == (4001, 0)
    assert world.init("tx", 4000, 32_765) == FENCED
    assert world.init("tx", 4001, 0) == (4001, 1)
    assert world.init("tx", 4000, 32_766) == FENCED


def test_a_stranger_at_the_last_epoch_is_fenced(world: Any, use_up: Any) -> None:
    world.init()
    use_up(world)
    assert world.init("tx", 4000, 5) == FENCED


def test_v2_goes_on_with_a_new_id(world: Any, use_up: Any) -> None:
    who = world.init()
    world.add(who, internal=True)
    use_up(world)
    world.hold_sends = True
    assert world.end((4000, 32_766), v2=True) == (4001, 0)
    assert world.end((4000, 32_766), v2=True) == CONCURRENT
    assert world.add((4001, 0)) == CONCURRENT, "the transaction before is ending"
    world.carry()
    assert world.marks() == [("orders-0", 32_767, True)]
    assert world.end((4000, 32_766), v2=True) == (4001, 0), "a retry"
    world.crash()
    assert world.end((4000, 32_766), v2=True) == (4001, 0), "a retry after a restart"
    assert world.add((4001, 0)) == 0
    assert world.end((4000, 32_766), v2=True) == WRONG_ID


def test_fencing_at_the_last_epoch(world: Any, use_up: Any) -> None:
    world.init()
    world.add((4000, 0))
    use_up(world)
    assert world.init() == CONCURRENT
    assert world.marks() == [("orders-0", 32_767, False)]
    assert world.init() == (4001, 1), "epoch 0 was never given out"


def test_fencing_at_the_last_epoch_without_the_feature(world: Any, use_up: Any) -> None:
    world.cluster.level = 0
    world.init()
    world.add((4000, 0))
    use_up(world)
    assert world.init() == CONCURRENT
    assert world.marks() == [("orders-0", 32_767, False)]
    assert world.init() == (4001, 0)


# ---------------------------------------------------------------- what takes part


def test_one_bad_partition_keeps_the_others_out(world: Any) -> None:
    who = world.init()
    assert world.add(who, ("orders", 0), ("nothing", 0)) == [NOT_ATTEMPTED, UNKNOWN_TOPIC]
    assert world.add(who, ("orders", 4), ("orders", 0)) == [UNKNOWN_TOPIC, NOT_ATTEMPTED]
    assert world.add(who, ("orders", -1)) == UNKNOWN_TOPIC
    assert world.add(who, ("__consumer_offsets", 0)) == TOPIC_FORBIDDEN
    assert world.state == "Empty"
    assert world.add(who, ("__consumer_offsets", 0), internal=True) == 0


def test_offsets_take_part_where_their_group_is_kept(world: Any) -> None:
    who = world.init()
    assert world.add_offsets(who, "my-group") == 0
    world.end(who)
    assert world.marks() == [("__consumer_offsets-12", 0, True)]


def test_offsets_topic_that_is_not_there_yet(world: Any) -> None:
    del world.cluster.topics["__consumer_offsets"]
    who = world.init()
    assert world.add_offsets(who, "my-group") == 0
    assert world.end(who) == 0
    assert world.state == "CompleteCommit", "nothing was written, so nothing is marked"
    assert world.add(who, ("__consumer_offsets", 12), internal=True) == 0, "its first record may be this one's"
    assert world.add(who, ("__consumer_offsets", 50), internal=True) == UNKNOWN_TOPIC
    world.cluster.topics["__consumer_offsets"] = 50
    assert world.end(who) == 0
    assert world.marks() == [("__consumer_offsets-12", 0, True)]


def test_what_takes_part_already_is_not_written_again(world: Any) -> None:
    who = world.init()
    world.add(who)
    before = len(world.log)
    assert world.add(who) == 0
    assert len(world.log) == before


def test_a_partition_is_verified_only_while_it_is_in_the_transaction(world: Any) -> None:
    who = world.init()
    assert world.add(who, verify=True) == ABORTABLE
    assert world.state == "Empty"
    world.add(who)
    assert world.add(who, ("orders", 0), ("orders", 1), verify=True, internal=True) == [0, ABORTABLE]
    assert world.add((4000, 1), verify=True) == FENCED
    world.hold_sends = True
    world.end(who)
    assert world.add(who, verify=True) == CONCURRENT
    world.carry()
    assert world.add(who, verify=True) == ABORTABLE


def test_the_next_transaction_waits_for_the_end_of_the_last(world: Any) -> None:
    who = world.init()
    world.add(who, internal=True)
    world.hold_sends = True
    who = world.end(who, v2=True)
    assert world.add(who, internal=True) == CONCURRENT
    assert world.init() == CONCURRENT
    world.carry()
    assert world.add(who, internal=True) == 0


# ---------------------------------------------------------------- retries of EndTxn


@pytest.mark.parametrize("committed", [True, False])
def test_v1_repeats_its_end(world: Any, committed: bool) -> None:
    who = world.init()
    world.add(who)
    world.hold_sends = True
    assert world.end(who, committed) == 0
    assert world.end(who, committed) == world.end(who, not committed) == CONCURRENT
    world.carry()
    assert world.end(who, committed) == 0
    assert world.end(who, not committed) == INVALID_STATE
    assert len(world.marks()) == 1


@pytest.mark.parametrize("committed", [True, False])
def test_v2_repeats_its_end(world: Any, committed: bool) -> None:
    who = world.init()
    world.add(who)
    world.hold_sends = True
    after = world.end(who, committed, v2=True)
    assert world.end(who, committed, v2=True) == world.end(who, not committed, v2=True) == CONCURRENT
    world.carry()
    assert world.end(who, committed, v2=True) == after
    assert world.end(who, not committed, v2=True) == INVALID_STATE
    world.crash()
    assert world.end(who, committed, v2=True) == after
    assert len(world.marks()) == 1
    assert world.add(after) == 0
    assert world.end(who, committed, v2=True) == FENCED


# ---------------------------------------------------------------- time


def test_a_transaction_that_takes_too_long_is_aborted(world: Any) -> None:
    who = world.init(timeout_ms=25 * SECOND)
    world.after(3 * SECOND)
    world.add(who)
    world.after(20 * SECOND)
    world.add(who, ("orders", 1))
    assert world.state == "Ongoing"
    world.after(10 * SECOND)
    assert world.state == "CompleteAbort"
    assert world.marks() == [("orders-0", 1, False), ("orders-1", 1, False)]
    assert world.end(who) == world.end(who, False) == world.add(who) == FENCED


def test_a_producer_goes_on_after_its_transaction_took_too_long(world: Any) -> None:
    """KIP-588: what it hears depends on how it asks; whoever followed it has ended that."""
    who = world.init(timeout_ms=SECOND)
    world.add(who, internal=True)
    world.after(20 * SECOND)
    assert world.end(who, v2=True) == INVALID_STATE
    assert world.end(who, False, v2=True) == (4000, 1)
    assert world.init("tx", *who, timeout_ms=SECOND) == (4000, 1)
    world.add((4000, 1))
    world.after(20 * SECOND)
    assert world.init("tx", 4000, 1) == (4000, 2), "one that adds partitions itself"
    world.add((4000, 2))
    assert world.init() == CONCURRENT
    assert world.init() == (4000, 4)
    assert world.init("tx", 4000, 2) == world.end((4000, 2), False, v2=True) == FENCED


def test_without_the_feature_a_producer_whose_transaction_took_too_long_is_fenced(world: Any) -> None:
    world.cluster.level = 1
    who = world.init(timeout_ms=SECOND)
    world.add(who)
    world.after(20 * SECOND)
    assert world.state == "CompleteAbort"
    assert world.end(who) == world.end(who, False) == world.init("tx", *who) == FENCED


def test_nothing_is_aborted_before_its_time_or_when_it_has_ended(world: Any) -> None:
    who = world.init(timeout_ms=MINUTE)
    world.add(who)
    world.end(who)
    world.after(10 * MINUTE)
    assert world.state == "CompleteCommit"


def test_what_cannot_be_aborted_for_want_of_a_producer_id_is_aborted_later(world: Any, use_up: Any) -> None:
    world.add(world.init(timeout_ms=SECOND))
    use_up(world)
    world.cluster.ids_fail = CoordinatorLoadInProgress()
    world.after(20 * SECOND)
    assert world.state == "Ongoing"
    world.cluster.ids_fail = None
    world.after(10 * SECOND)
    assert (world.state, world.txn().producer_id) == ("CompleteAbort", 4001)


def test_many_are_aborted_in_turns(make_world: Any) -> None:
    world = make_world()
    world.check = lambda: None
    for number in range(1_100):
        who = world.init(f"t{number}", timeout_ms=SECOND)
        world.add(who, name=f"t{number}")
    world.to(world.machine.next_deadline())
    assert sum(txn.state.value == "Ongoing" for txn in world.machine.transactions.values()) == 100
    world.after(1)
    assert not world.machine.coordinator.ongoing


def test_an_unused_id_expires(make_world: Any) -> None:
    world = make_world({"transactional.id.expiration.ms": DAY})
    world.init("unused")
    who = world.init("used")
    world.add(who, name="used")
    world.after(23 * HOUR)
    assert set(world.machine.transactions) == {"unused", "used"}
    world.init("open", timeout_ms=900_000)
    world.after(2 * HOUR)
    assert set(world.machine.transactions) == {"open"}
    assert [record.value for record in world.log[-2:]] == [None, None]
    assert world.init("unused")[0] not in (4000, 4001), "a forgotten id starts over"
    world.after(30 * DAY)
    assert world.machine.transactions == {}
    world.after(2 * HOUR)
    assert world.machine.next_deadline() is None, "nothing to look through, so no timer"
    world.states()


def test_many_expire_in_turns(make_world: Any) -> None:
    world = make_world({"transactional.id.expiration.ms": DAY})
    world.check = lambda: None
    for number in range(1_100):
        world.init(f"t{number}")
    world.to(DAY)
    while len(world.machine.transactions) == 1_100:
        world.to(world.machine.next_deadline())
    assert len(world.machine.transactions) == 100
    world.after(1)
    assert world.machine.transactions == {}
