"""The leader's table of events: each row names the effects that its event can have, and the checks that can refuse."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from attrs import fields
from drawn import drawn

from logkernel.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaStorageError,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from logkernel.partition import leader as module
from logkernel.partition.effects import Effects
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates
from logkernel.record.control import EndTxnMarker
from logkernel.vocabulary import BatchFacts

TABLE = {event: (checks, effects) for event, checks, effects in drawn(module.__doc__, "event", "checks", "effects")}
ABORT = EndTxnMarker(False, 3)
NO_EFFECTS = Effects()


def batch(epoch: int = 1, sequence: int = 0, *, transactional: bool = False, producer: int = 7) -> BatchFacts:
    return BatchFacts(0, 100, 0, 0, -1, 2, 0x10 if transactional else 0, 0, 0, producer, epoch, sequence, 1)


def leader(*, min_isr: int = 1, flush_messages: int = 2**63 - 1, followers: bool = True) -> Leader:
    """Node 1 of three replicas leads; node 2 is in sync, node 3 is not."""
    made = Leader(
        node_id=1, leader_epoch=4, isr=(1, 2) if followers else (1,), log_start=0, log_end=0, high_watermark=0,
        min_isr=min_isr, flush_messages=flush_messages, producers=ProducerStates(),
        replicas=(1, 2, 3) if followers else (1,), partition_epoch=6, lag_ms=100, mono_ms=1000,
    )  # fmt: skip
    made.on_live_brokers(frozenset((1, 2, 3)))
    return made


def append(machine: Leader, facts: BatchFacts, guard: int | None = None) -> Effects:
    """Write with acks=all; the effects of the append."""
    judged = machine.on_produce([facts], -1, "t", guard)
    assert judged.append is not None, judged
    return machine.on_appended(judged.append, -1, "t", 0, 5000)


def waiting() -> Leader:
    """A write waits for node 2, which holds nothing yet."""
    machine = leader()
    append(machine, batch())
    assert machine.parked
    return machine


def in_transaction() -> Leader:
    machine = leader(followers=False)
    append(machine, batch(transactional=True), machine.on_verification(7, 1, 0, False, 5))
    return machine


def marked(machine: Leader, *, epoch: int = 1, coordinator_epoch: int = 3) -> Effects:
    marker = EndTxnMarker(False, coordinator_epoch)
    return machine.on_marker(batch(epoch, -1), marker, 1, "m")


def mark(machine: Leader) -> Leader:
    decided = marked(machine)
    assert decided.append is not None
    machine.on_appended(decided.append, -1, "m", 0, 5000, ABORT)
    return machine


def refused(effects: Effects, error: type) -> Effects:
    ((_, outcome),) = effects.answer
    assert outcome.error_code == error.code  # type: ignore[attr-defined]
    return effects


def repeated_batch() -> Effects:
    machine = leader()
    append(machine, batch())
    return machine.on_produce([batch()], 1, "again")


def persisted() -> Effects:
    machine = leader(flush_messages=1)
    return append(machine, batch())


def flushed() -> Effects:
    machine = leader(flush_messages=1, followers=False)
    append(machine, batch())
    return machine.on_flushed(1)


def expanding() -> Effects:
    machine = leader()
    effects = machine.on_fetch(3, 0, 0, 1001)
    assert effects.propose is not None
    return effects


def shrinking(machine: Leader) -> Effects:
    machine.on_fetch(2, 0, 0, 1001)
    effects = machine.on_tick(1200)
    assert effects.propose is not None
    return effects


def on_accepted() -> Effects:
    machine = waiting()
    proposal = shrinking(machine).propose
    assert proposal is not None
    return machine.on_isr_accepted(proposal, 7)


def accepted_before_another_joins() -> Effects:
    machine = leader()
    machine.on_order(5, (1, 2, 3), (1,), 8, 1001)
    proposal = machine.on_fetch(2, 0, 0, 1002).propose
    assert proposal is not None
    assert machine.on_fetch(3, 0, 0, 1003).propose is None
    return machine.on_isr_accepted(proposal, 9)


def alive_after_it_caught_up() -> Effects:
    machine = leader()
    machine.on_live_brokers(frozenset((1, 2)))
    assert machine.on_fetch(3, 0, 0, 1001).propose is None
    return machine.on_live_brokers(frozenset((1, 2, 3)))


def dead_before_it_joined() -> Effects:
    """Node 3 had caught up, and was waited for as long as it was alive."""
    machine = leader()
    machine.on_order(5, (1, 2, 3), (1,), 8, 1001)
    machine.on_fetch(3, 0, 0, 1002)
    machine.on_live_brokers(frozenset((1, 3)))
    machine.on_isr_refused(machine.sync.proposal, revert=True)  # type: ignore[union-attr, arg-type]
    append(machine, batch())
    assert machine.parked
    return machine.on_live_brokers(frozenset((1,)))


def on_refused() -> Effects:
    machine = waiting()
    proposal = shrinking(machine).propose
    assert proposal is not None
    machine.on_isr_refused(proposal, revert=True)
    return NO_EFFECTS


def joining_replica_stays_behind() -> Effects:
    """Node 3 is waited for as long as it may join next; once it lags, the watermark passes what it lacks."""
    machine = leader()
    machine.on_order(5, (1, 2, 3), (1,), 8, 1001)
    assert machine.on_fetch(2, 0, 0, 1002).propose is not None
    machine.on_fetch(3, 0, 0, 1003)
    append(machine, batch())
    machine.on_fetch(2, 1, 0, 1004)
    assert machine.parked
    return machine.on_tick(1200)


def nothing(call: Callable[[Leader], object]) -> Callable[[], Effects]:
    """An event that returns no effects."""

    def run() -> Effects:
        found = call(waiting())
        assert not isinstance(found, Effects)
        return NO_EFFECTS

    return run


EVENTS: dict[str, list[Callable[[], Effects]]] = {
    "on_verification": [nothing(lambda one: one.on_verification(8, 0, 0, False, 5))],
    "on_produce": [lambda: leader().on_produce([batch()], 1, "t"), repeated_batch],
    "on_marker": [
        lambda: marked(in_transaction()),
        lambda: marked(leader()),
        lambda: marked(in_transaction(), epoch=0),
    ],
    "on_appended": [lambda: append(leader(followers=False), batch()), persisted, lambda: append(leader(), batch())],
    "on_flushed": [flushed],
    "on_append_failed": [lambda: leader().on_append_failed("t", KafkaStorageError("broken"))],
    "on_offline": [lambda: waiting().on_offline(KafkaStorageError("broken"))],
    "on_expired": [lambda: waiting().on_expired(5000)],
    "on_fetch": [lambda: waiting().on_fetch(2, 1, 0, 1001), expanding],
    "on_tick": [lambda: shrinking(waiting()), joining_replica_stays_behind],
    "on_isr_accepted": [on_accepted, accepted_before_another_joins],
    "on_isr_refused": [on_refused],
    "on_order": [lambda: waiting().on_order(5, (1, 2, 3), (1,), 8, 1200)],
    "on_live_brokers": [alive_after_it_caught_up, dead_before_it_joined],
    "on_resigned": [lambda: waiting().on_resigned()],
    "on_log_start": [nothing(lambda one: one.on_log_start(1))],
}
"""Event → ways to make it, which together show every effect that it can have."""

CHECKS: dict[tuple[str, str], Callable[[], Effects]] = {
    ("on_produce", "epoch"): lambda: refused(
        mark(in_transaction()).on_produce([batch(0, 1)], -1, "t"), InvalidProducerEpoch
    ),
    ("on_produce", "min ISR"): lambda: refused(leader(min_isr=3).on_produce([batch()], -1, "t"), NotEnoughReplicas),
    ("on_produce", "sequences"): lambda: refused(
        mark(in_transaction()).on_produce([batch(1, 5)], -1, "t"), OutOfOrderSequenceNumber
    ),
    ("on_produce", "guard"): lambda: refused(
        leader().on_produce([batch(transactional=True)], -1, "t", 99), InvalidTxnState
    ),
    ("on_marker", "min ISR"): lambda: refused(marked(leader(min_isr=3)), NotEnoughReplicas),
    ("on_marker", "producer's epoch"): lambda: refused(marked(in_transaction(), epoch=0), InvalidProducerEpoch),
    ("on_marker", "coordinator's epoch"): lambda: refused(
        marked(mark(in_transaction()), coordinator_epoch=2), TransactionCoordinatorFenced
    ),
}


def names(effects: Effects) -> set[str]:
    """The fields that are set."""
    return {one.name for one in fields(Effects) if getattr(effects, one.name) != getattr(NO_EFFECTS, one.name)}


def test_every_event_is_drawn() -> None:
    assert list(TABLE) == list(EVENTS)
    assert set(TABLE) == {name for name in vars(Leader) if name.startswith("on_")}


@pytest.mark.parametrize("event", TABLE)
def test_an_event_has_the_effects_that_its_row_names(event: str) -> None:
    wanted = set(re.findall(r"\w+", re.sub(r"\(.*?\)", "", TABLE[event][1]))) & {one.name for one in fields(Effects)}
    found = set().union(*(names(make()) for make in EVENTS[event]))
    assert found == wanted


@pytest.mark.parametrize(("event", "check"), CHECKS)
def test_a_check_of_a_row_refuses(event: str, check: str) -> None:
    assert names(CHECKS[event, check]()) == {"answer"}


@pytest.mark.parametrize("event", ["on_produce", "on_marker"])
def test_every_check_of_a_row_is_tried(event: str) -> None:
    drawn_checks = TABLE[event][0].replace("producer's and", "producer's epoch,").split(", ")
    assert drawn_checks == [check for at, check in CHECKS if at == event]
