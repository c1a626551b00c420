"""The follower: what it fetches, appends and cuts, and which answers it drops."""

import pytest
from drawn import drawn

from logkernel.partition import follower as module
from logkernel.partition.effects import Effects
from logkernel.partition.follower import TRANSITIONS, Event, FetchPosition, Follower, State
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import BatchFacts


def batch(base: int, last: int, epoch: int = 3) -> BatchFacts:
    return BatchFacts(0, 100, base, last, epoch, 2, 0, 0, 0, -1, -1, -1, last - base + 1)


def epochs(*starts: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache(SimulatedDisk(), "/epochs")
    for epoch, start in starts:
        cache.assign(epoch, start)
    return cache


def follower(log_start: int = 0, log_end: int = 10, *starts: tuple[int, int]) -> Follower:
    return Follower(
        leader=2, leader_epoch=3, log_start=log_start, log_end=log_end, high_watermark=5,
        epochs=epochs(*(starts or ((1, 0), (3, 6)))),
    )  # fmt: skip


def error(one: Follower) -> None:
    one.on_error(one.next_fetch(0), 100, 50)


MAKE = {State.FETCHING: lambda: None, State.DELAYED: error}
MOVES = {
    Event.ERROR: error,
    Event.DUE: lambda one: one.next_fetch(150),
    Event.LEADER: lambda one: one.on_leader(4, 9),
    Event.OFFLINE: lambda one: one.on_offline(),
}


@pytest.mark.parametrize(("state", "event"), TRANSITIONS)
def test_an_event_moves_a_follower_as_its_table_says(state: State, event: Event) -> None:
    one = follower()
    if state is State.DELAYED:
        error(one)
    MOVES[event](one)
    assert one.state is TRANSITIONS[state, event]


def test_the_table_that_is_drawn_is_the_table_that_runs() -> None:
    rows = drawn(module.__doc__, "state", "event", "next", "why")
    assert {(State[before], Event(event)): State[after] for before, event, after, _ in rows} == TRANSITIONS


def cut(one: Follower) -> set[str]:
    """What the follower does about a leader whose log differs."""
    trimmed = follower(5, 10)
    return named(one.on_diverging(one.next_fetch(0), 1, 4)) | named(trimmed.on_diverging(trimmed.next_fetch(0), 1, 4))


def out_of_range(*ends: int) -> set[str]:
    one = follower(2, 10)
    return named(one.on_out_of_range(one.next_fetch(0), *ends))


def named(effects: Effects) -> set[str]:
    """The effects that are set."""
    return {name for name in ("truncate", "restart", "append") if getattr(effects, name) is not None}


EFFECTS = {
    "on_records": lambda one: named(one.on_records(one.next_fetch(0), [batch(10, 12)])),
    "on_appended": lambda one: one.on_appended([batch(10, 12)]),
    "on_progress": lambda one: one.on_progress(one.next_fetch(0), 7, 0),
    "on_diverging": cut,
    "on_out_of_range": lambda one: out_of_range(0, 5) | out_of_range(20, 30),
    "on_truncated": lambda one: one.on_truncated(4),
    "on_restarted": lambda one: one.on_restarted(20),
    "on_error": error,
    "on_leader": lambda one: one.on_leader(4, 9) and None,
    "on_log_start": lambda one: one.on_log_start(1),
    "on_offline": lambda one: one.on_offline(),
}
EVENTS = {event: effects for event, _, effects in drawn(module.__doc__, "event", "checks", "effects")}


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_has_the_effects_that_its_row_names(event: str) -> None:
    effects = set() if EVENTS[event].startswith("(") else set(EVENTS[event].split(" | "))
    assert (EFFECTS[event](follower()) or set()) == effects


def test_every_event_is_drawn() -> None:
    assert list(EVENTS) == list(EFFECTS)
    assert set(EVENTS) == {name for name in vars(Follower) if name.startswith("on_")}


def test_it_fetches_from_its_log_end_with_the_epoch_of_its_last_record() -> None:
    assert follower().next_fetch(0) == FetchPosition(10, 3, 3, 0)


def test_it_fetches_from_nobody_while_nobody_leads_and_while_it_pauses() -> None:
    one = follower()
    one.on_leader(-1, 4)
    assert one.next_fetch(0) is None
    one = follower()
    error(one)
    assert one.next_fetch(149) is None
    assert one.next_deadline() == 150
    assert one.next_fetch(150) is not None


def test_records_are_appended_and_the_watermark_follows_the_leaders() -> None:
    one = follower()
    asked = one.next_fetch(0)
    effects = one.on_records(asked, [batch(10, 12), batch(13, 13)])
    one.on_appended(effects.append)
    assert one.log_end == 14
    assert one.on_progress(asked, 12, 2) == 2
    assert (one.high_watermark, one.log_start) == (12, 2)
    one.on_progress(asked, 99, 2)
    assert one.high_watermark == 14


def test_an_answer_to_an_older_fetch_or_of_an_older_leader_is_dropped() -> None:
    one = follower()
    asked = one.next_fetch(0)
    one.on_appended([batch(10, 10)])
    assert one.on_records(asked, [batch(10, 10)]).append is None
    assert one.on_diverging(asked, 1, 4).truncate is None
    one = follower()
    asked = one.next_fetch(0)
    one.on_leader(5, 4)
    assert one.on_records(asked, [batch(10, 10)]).append is None
    assert one.on_progress(asked, 10, 1) is None


def test_an_empty_log_begins_with_the_batch_that_holds_the_leaders_log_start() -> None:
    one = follower(12, 12)
    assert one.on_records(one.next_fetch(0), [batch(10, 13), batch(14, 14)]).append == [batch(10, 13), batch(14, 14)]


def test_a_leaders_batch_that_holds_the_log_end_says_that_the_logs_differ() -> None:
    """World seed 40891: the batch was dropped, and what came after it was appended behind a hole. The leader cannot say
    that they differ where its log starts in that batch."""
    one = follower()
    effects = one.on_records(one.next_fetch(0), [batch(8, 12), batch(13, 13)])
    assert (effects.truncate, effects.append) == (8, None)
    one = follower(9)
    assert one.on_records(one.next_fetch(0), [batch(8, 12), batch(13, 13)]).truncate == 9


@pytest.mark.parametrize(
    ("epoch", "end", "cut"),
    [(1, 4, 4), (1, 8, 6), (2, 8, 6), (3, 7, 7), (3, 99, 10)],
    ids=["the leader's end", "own end of that epoch", "own end of the epoch below", "same epoch", "never longer"],
)
def test_it_cuts_to_the_smaller_end_of_the_epoch_that_both_know(epoch: int, end: int, cut: int) -> None:
    one = follower()
    assert one.on_diverging(one.next_fetch(0), epoch, end).truncate == cut
    one.on_truncated(cut)
    assert one.log_end == cut
    assert one.high_watermark == min(5, cut)


@pytest.mark.parametrize("log_end", [6, 10], ids=["empty", "with records"])
def test_a_log_that_starts_behind_what_both_know_is_fetched_anew(log_end: int) -> None:
    """It cut to its own log start, and asked the same again for ever: the leader had lost its log in a power cut. Nor
    may it start where the leader's epoch ends: it joined the ISR without what the leader held below (seed 10141)."""
    one = follower(6, log_end, (1, 4))
    effects = one.on_diverging(one.next_fetch(0), 1, 2)
    assert (effects.truncate, effects.restart) == (None, 0)


def test_out_of_range_cuts_to_the_leaders_end_or_starts_anew_at_its_start() -> None:
    one = follower()
    assert one.on_out_of_range(one.next_fetch(0), 0, 8).truncate == 8
    effects = one.on_out_of_range(one.next_fetch(0), 20, 30)
    assert (effects.truncate, effects.restart) == (None, 20)
    one.on_restarted(20)
    assert (one.log_start, one.high_watermark, one.log_end) == (20, 20, 20)


def test_an_older_order_changes_nothing() -> None:
    one = follower()
    assert not one.on_leader(9, 2)
    assert (one.leader, one.leader_epoch) == (2, 3)
