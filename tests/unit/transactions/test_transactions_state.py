"""One transactional id: the table of its transitions, and who is heard when."""

from __future__ import annotations

import pytest

from logkernel.errors import ConfigError, ProducerFenced
from logkernel.plugins.services.transactions.declared import SETTINGS
from logkernel.plugins.services.transactions.settings import NAMES, TransactionSettings
from logkernel.plugins.services.transactions.state import (
    DONE,
    NO_TIMEOUT_MS,
    TRANSITIONS,
    Event,
    State,
    Transaction,
)
from logkernel.vocabulary import TopicPartition

FENCED, INVALID_STATE, WRONG_ID, CONCURRENT = 90, 48, 49, 51
GO_ON = None
ONE = [TopicPartition("orders", 0)]


def test_what_the_table_does_not_have_is_a_fault() -> None:
    for state in State:
        for event in Event:
            if (state, event) not in TRANSITIONS:
                with pytest.raises(RuntimeError, match=event.value.replace("(", r"\(").replace(")", r"\)")):
                    TRANSITIONS[state, event]
    assert {state for state, _ in TRANSITIONS} == set(State) - {State.DEAD}
    assert set(TRANSITIONS.values()) == set(State)


def test_what_is_decided_is_never_decided_otherwise() -> None:
    for state in (State.PREPARE_COMMIT, State.PREPARE_ABORT):
        assert [event for at, event in TRANSITIONS if at is state] == [Event.MARKED]


def begun(epoch: int = 5) -> Transaction:
    return Transaction(State.EMPTY, 9, epoch, 60_000).add(ONE, 1_000, 0)


def ended(committed: bool, version: int, complete: bool) -> Transaction:
    prepared = begun().end(committed, 2_000, version, -1)
    return prepared.complete(3_000) if complete else prepared


EMPTY = Transaction(State.EMPTY, 9, 5, 60_000)

JUDGED = [
    # v1: the epoch stays, so a retry looks like the first call
    (EMPTY, 0, (9, 5), INVALID_STATE, INVALID_STATE),
    (begun(), 0, (9, 5), GO_ON, GO_ON),
    (begun(), 0, (9, 4), FENCED, FENCED),
    (begun(), 0, (9, 6), FENCED, FENCED),
    (begun(), 0, (8, 5), WRONG_ID, WRONG_ID),
    (ended(True, 0, False), 0, (9, 5), CONCURRENT, CONCURRENT),
    (ended(True, 0, False), 0, (9, 4), FENCED, FENCED),
    (ended(True, 0, True), 0, (9, 5), DONE, INVALID_STATE),
    (ended(False, 0, True), 0, (9, 5), INVALID_STATE, DONE),
    # v2: the epoch before is a retry, the present one is the next transaction
    (EMPTY, 2, (9, 5), INVALID_STATE, GO_ON),
    (EMPTY, 2, (9, 4), FENCED, FENCED),
    (begun(), 2, (9, 5), GO_ON, GO_ON),
    (begun(), 2, (9, 4), FENCED, FENCED),
    (ended(True, 2, False), 2, (9, 5), CONCURRENT, CONCURRENT),
    (ended(True, 2, False), 2, (9, 6), CONCURRENT, CONCURRENT),
    (ended(True, 2, False), 2, (9, 4), FENCED, FENCED),
    (ended(True, 2, True), 2, (9, 5), DONE, INVALID_STATE),
    (ended(True, 2, True), 2, (9, 6), INVALID_STATE, GO_ON),
    (ended(True, 2, True), 2, (9, 4), FENCED, FENCED),
    (ended(False, 2, True), 2, (9, 5), INVALID_STATE, DONE),
    (ended(False, 2, True), 2, (9, 6), INVALID_STATE, GO_ON),
    # what v1 ended left its epoch alone: the one before belongs to somebody who was fenced
    (ended(True, 0, True), 2, (9, 4), FENCED, FENCED),
    # aborted without its producer: with v2 he goes on as if he had done it, else nobody has the epoch before
    (begun().fence(2_000, 2, -1).complete(3_000), 2, (9, 5), INVALID_STATE, DONE),
    (begun().fence(2_000, 2, -1).complete(3_000), 2, (9, 6), INVALID_STATE, GO_ON),
    (begun().fence(2_000, 2, -1).complete(3_000), 2, (9, 4), FENCED, FENCED),
    (begun().fence(2_000, 0, -1).complete(3_000), 0, (9, 5), FENCED, FENCED),
]


@pytest.mark.parametrize(("txn", "version", "speaker", "commit", "abort"), JUDGED)
def test_who_may_end(
    txn: Transaction, version: int, speaker: tuple[int, int], commit: int | None, abort: int | None
) -> None:
    assert txn.judge_end(*speaker, True, version >= 2) == commit
    assert txn.judge_end(*speaker, False, version >= 2) == abort


def test_who_may_end_when_the_epochs_are_used_up() -> None:
    prepared = begun(32_766).end(True, 2_000, 2, 70)
    assert prepared.judge_end(9, 32_766, True, True) == CONCURRENT
    assert prepared.judge_end(70, 0, False, True) == CONCURRENT, "the owner goes on already"
    assert prepared.judge_end(71, 0, False, True) == WRONG_ID
    done = prepared.complete(3_000)
    assert done.judge_end(9, 32_766, True, True) == DONE
    assert done.judge_end(9, 32_765, True, True) == WRONG_ID
    assert done.judge_end(70, 0, False, True) is GO_ON
    assert done.add(ONE, 4_000, 2).judge_end(9, 32_766, True, True) == WRONG_ID


def test_who_may_add() -> None:
    assert [begun().judge(*who) for who in ((9, 5), (9, 4), (9, 6), (8, 5))] == [0, FENCED, FENCED, WRONG_ID]
    assert ended(True, 2, False).judge(9, 6) == CONCURRENT
    assert ended(True, 2, True).judge(9, 6) == 0


def test_the_same_epoch_again_is_for_its_owner_alone() -> None:
    once = EMPTY.init(1_000, 1_000, 5)
    assert (once.epoch, once.last_epoch) == (6, 5)
    again = once.init(1_000, 2_000, 5)
    assert (again.epoch, again.last_epoch) == (6, 5)
    assert once.init(1_000, 2_000, 6).epoch == 7
    stranger = once.init(1_000, 2_000, None)
    assert (stranger.epoch, stranger.last_epoch) == (7, -1)
    for epoch in (5, 6, 8, -1):
        with pytest.raises(ProducerFenced):
            stranger.init(1_000, 3_000, epoch)


def test_timeouts_and_expiry_count_from_their_own_events() -> None:
    txn = begun()
    assert not txn.has_timed_out(61_000)
    assert txn.has_timed_out(61_001)
    assert not EMPTY.has_timed_out(10**15)
    forever = Transaction(State.EMPTY, 9, 5, NO_TIMEOUT_MS).add(ONE, 1_000, 0)
    assert not forever.has_timed_out(10**15)
    done = ended(True, 0, True)
    assert [done.has_expired(now, 500) for now in (3_499, 3_500)] == [False, True]
    assert not txn.has_expired(10**15, 500)
    assert not ended(True, 0, False).has_expired(10**15, 500)


def test_settings_by_kafkas_names_with_its_defaults() -> None:
    rows = {row.name: row.default for row in SETTINGS}
    assert TransactionSettings.read({name: rows[name] for name in NAMES.values()}) == TransactionSettings()
    found = TransactionSettings.read({"transaction.max.timeout.ms": "5", "unrelated": object()})
    assert found.max_timeout_ms == 5
    assert set(NAMES) == set(TransactionSettings.__slots__) - {"__weakref__"}
    for value in ("x", 0, object()):
        with pytest.raises(ConfigError, match=r"transaction\.max\.timeout\.ms"):
            TransactionSettings.read({"transaction.max.timeout.ms": value})
