"""Incremental fetch sessions (KIP-227), event by event."""

import pytest
from drawn import drawn

from logkernel.broker import fetch_sessions as module
from logkernel.broker.fetch_sessions import EVICTION_AGE_MS, MAX_EPOCH, FetchSessions
from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.partition.news import News
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData


class Fetch:
    """A fetch that is parked."""

    def __init__(self):
        self.heard_of = []

    def heard(self, partition):
        self.heard_of.append(partition.key[2])


def request(session_id=0, epoch=0, partitions=(), forget=(), isolation=0):
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        isolation_level=isolation,
        topics=[FetchTopic("t", [FetchPartition(partition=p, fetch_offset=o) for p, o in partitions])],
        forgotten_topics_data=[ForgottenTopic("t", list(forget))],
    )


def row(records=None, *, watermark=5, stable=None, start=0, error=0):
    stable = watermark if stable is None else stable
    return PartitionData(
        error_code=error, high_watermark=watermark, last_stable_offset=stable, log_start_offset=start, records=records
    )


def keys(context):
    return [partition.key[2] for partition in context.to_read()]


def answer(context, news, data):
    """Answer `context` from `data`, a row by partition; what was told."""
    rows = []
    for partition in context.to_read():
        partition.follow(news[partition.key[2]])
        rows.append((partition, data(partition.key[2])))
    return [partition.key[2] for partition, _ in context.answered(rows)]


@pytest.fixture
def sessions():
    return FetchSessions(10, 1)


@pytest.fixture
def news():
    return [News() for _ in range(4)]


def begin(sessions, news, count=3):
    """A session of `count` partitions that are caught up at 5; its id."""
    context = sessions.open(request(0, 0, [(p, 5) for p in range(count)]), False, 0)
    assert answer(context, news, lambda p: row()) == list(range(count))
    return context.session_id


OPENS = {
    ("0", "-1"): ("none", False, [0], 0),
    ("0", "0"): ("new", False, [0], 1),
    ("n", "0"): ("new", False, [0], 1),
    ("n", "-1"): ("none", False, [0], 0),
    ("n", "e > 0"): ("the same", True, [0], 1),
}
"""(session id, epoch) → the answer's id, whether it is incremental, what is read, how many sessions there are then."""
OPEN_TABLE = drawn(module.__doc__, "session id", "epoch", "meaning")


@pytest.mark.parametrize(("session_id", "epoch", "_"), OPEN_TABLE)
def test_a_request_is_taken_as_drawn(sessions, news, session_id, epoch, _):
    before = begin(sessions, news) if session_id == "n" else 0
    context = sessions.open(request(before, 1 if epoch == "e > 0" else int(epoch), [(0, 5)]), False, 0)
    kind = "none" if not context.session_id else "the same" if context.session_id == before else "new"
    assert (kind, context.incremental, keys(context), len(sessions)) == OPENS[session_id, epoch]


STATE_TABLE = drawn(module.__doc__, "a partition is", "when", "a fetch reads it")


@pytest.mark.parametrize(("state", "_", "is_read"), STATE_TABLE)
def test_a_fetch_reads_a_partition_as_drawn(sessions, news, state, _, is_read):
    session_id = begin(sessions, news, 1)
    if state == "pending":
        news[0].tell()
    context = sessions.open(request(session_id, 1), False, 0)
    assert keys(context) == ([0] if is_read == "yes" else [])
    assert len(news[0]) == (0 if state == "pending" else 1), "it listens exactly while it is caught up"


def test_every_row_is_drawn_and_tried():
    assert [row[:2] for row in OPEN_TABLE] == list(OPENS)
    assert [row[0] for row in STATE_TABLE] == ["pending", "caught up"]


def test_incremental_adds_changes_and_forgets(sessions):
    first = sessions.open(request(0, 0, [(0, 0), (1, 0)]), False, 0)
    assert first.session_id > 0
    assert not first.incremental
    second = sessions.open(request(first.session_id, 1, [(2, 7), (0, 9)], forget=[1]), False, 0)
    assert second.incremental
    assert {one.key[2]: one.request.fetch_offset for one in second.to_read()} == {0: 9, 2: 7}


def test_epochs_must_follow(sessions):
    session_id = sessions.open(request(0, 0, [(0, 0)]), False, 0).session_id
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.open(request(session_id, 2), False, 0)
    with pytest.raises(FetchSessionIdNotFound):
        sessions.open(request(session_id + 1, 1), False, 0)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.open(request(session_id, 1), True, 0)


def test_epoch_wraps_to_one(sessions):
    context = sessions.open(request(0, 0, [(0, 0)]), False, 0)
    context.session.epoch = MAX_EPOCH
    sessions.open(request(context.session_id, MAX_EPOCH), False, 0)
    sessions.open(request(context.session_id, 1), False, 0)


def test_final_epoch_closes_the_session(sessions, news):
    session_id = begin(sessions, news)
    assert sessions.open(request(session_id, -1, [(0, 0)]), False, 0).session_id == 0
    assert len(sessions) == 0
    assert [len(one) for one in news] == [0, 0, 0, 0]


def test_full_cache_refuses_young_and_evicts_old(news):
    sessions = FetchSessions(1, 1)
    begin(sessions, news)
    assert sessions.open(request(0, 0, [(0, 0)]), False, 10).session_id == 0
    assert [len(one) for one in news] == [1, 1, 1, 0]
    assert sessions.open(request(0, 0, [(0, 0)]), False, EVICTION_AGE_MS).session_id > 0
    assert len(sessions) == 1
    assert [len(one) for one in news] == [0, 0, 0, 0], "an evicted session listens to nothing"


def test_only_what_has_news_is_read(sessions, news):
    session_id = begin(sessions, news)
    idle = sessions.open(request(session_id, 1), False, 0)
    assert keys(idle) == []
    assert not idle.is_empty
    news[1].tell()
    assert keys(sessions.open(request(session_id, 2), False, 0)) == [1]


def test_only_changes_are_told(sessions, news):
    session_id = begin(sessions, news)
    news[1].tell()
    news[2].tell()
    context = sessions.open(request(session_id, 1), False, 0)
    assert answer(context, news, lambda p: row(watermark=5 if p == 1 else 6, stable=5)) == [2]


def test_what_is_left_over_is_read_again_without_news(sessions, news):
    session_id = begin(sessions, news)
    news[1].tell()
    for epoch in (1, 2):
        context = sessions.open(request(session_id, epoch), False, 0)
        assert answer(context, news, lambda p: row(b"records", watermark=9)) == [1]
    context = sessions.open(request(session_id, 3, [(1, 9)]), False, 0)
    assert answer(context, news, lambda p: row(watermark=9)) == []
    assert keys(sessions.open(request(session_id, 4), False, 0)) == []


def test_an_offset_below_the_end_without_records_stays_pending(sessions, news):
    """`max_bytes` was used up before it was its turn."""
    session_id = begin(sessions, news)
    news[0].tell()
    context = sessions.open(request(session_id, 1), False, 0)
    assert answer(context, news, lambda p: row(watermark=9)) == [0]
    assert keys(sessions.open(request(session_id, 2), False, 0)) == [0]


def test_an_offset_above_the_watermark_stays_pending_until_it_is_refused(sessions, news):
    """Nothing is read, so nothing is refused, where `max_bytes` is used up."""
    session_id = begin(sessions, news)
    context = sessions.open(request(session_id, 1, [(0, 7)]), False, 0)
    assert answer(context, news, lambda p: row()) == []
    assert keys(sessions.open(request(session_id, 2), False, 0)) == [0]


def test_an_error_is_told_until_it_is_over_and_then_what_there_is(sessions, news):
    session_id = begin(sessions, news)
    news[0].tell()
    for epoch in (1, 2):
        context = sessions.open(request(session_id, epoch), False, 0)
        assert answer(context, news, lambda p: row(error=3, watermark=-1)) == [0]
    context = sessions.open(request(session_id, 3), False, 0)
    assert answer(context, news, lambda p: row()) == [0]
    assert keys(sessions.open(request(session_id, 4), False, 0)) == []


def test_another_isolation_level_reads_everything_again(sessions, news):
    session_id = begin(sessions, news)
    assert keys(sessions.open(request(session_id, 1, isolation=1), False, 0)) == [0, 1, 2]


def test_a_reader_of_committed_records_is_caught_up_at_the_stable_offset(sessions, news):
    context = sessions.open(request(0, 0, [(0, 5), (1, 5)], isolation=1), False, 0)
    answer(context, news, lambda p: row(watermark=9, stable=5 + p))
    assert keys(sessions.open(request(context.session_id, 1, isolation=1), False, 0)) == [1]


def test_served_partitions_go_last(sessions, news):
    session_id = sessions.open(request(0, 0, [(0, 0), (1, 0), (2, 0)]), False, 0).session_id
    context = sessions.open(request(session_id, 1), False, 0)
    answer(context, news, lambda p: row(b"records" if p == 0 else None))
    assert keys(sessions.open(request(session_id, 2), False, 0)) == [1, 2, 0]


def test_forgotten_partitions_are_not_listened_to(sessions, news):
    session_id = begin(sessions, news)
    sessions.open(request(session_id, 1, forget=[1]), False, 0)
    assert [len(one) for one in news] == [1, 0, 1, 0]
    news[1].tell()
    assert keys(sessions.open(request(session_id, 2), False, 0)) == []


def test_a_parked_fetch_hears_of_all_its_partitions_once(sessions, news):
    session_id = begin(sessions, news)
    news[0].tell()
    context, fetch = sessions.open(request(session_id, 1), False, 0), Fetch()
    context.park(fetch)
    for told in (0, 0, 2):
        news[told].tell()
    assert fetch.heard_of == [0, 2]
    assert keys(context) == [0, 2]


def test_a_parked_fetch_of_a_closed_session_hears_until_it_is_answered(sessions, news):
    session_id = begin(sessions, news)
    context, fetch = sessions.open(request(session_id, 1), False, 0), Fetch()
    context.park(fetch)
    sessions.open(request(session_id, -1), False, 0)
    news[2].tell()
    assert fetch.heard_of == [2]
    rows = [(partition, row(b"records")) for partition in context.to_read()]
    assert [partition.key[2] for partition, _ in context.answered(rows)] == [2]
    assert [len(one) for one in news] == [0, 0, 0, 0]


def test_a_fetch_without_a_session_listens_only_while_it_is_parked(sessions, news):
    context, fetch = sessions.open(request(0, -1, [(0, 5), (1, 5)]), False, 0), Fetch()
    for partition in context.to_read():
        partition.follow(news[partition.key[2]])
    context.park(fetch)
    assert [len(one) for one in news] == [1, 1, 0, 0]
    news[1].tell()
    assert fetch.heard_of == [1]
    assert keys(context) == [0, 1], "its answer holds everything"
    assert len(context.answered([(one, row()) for one in context.to_read()])) == 2
    assert [len(one) for one in news] == [0, 0, 0, 0]


def test_a_partition_that_was_made_again_is_listened_to_at_its_new_place(sessions, news):
    session_id = begin(sessions, news, 1)
    news[0].tell()
    made_again = [News()]
    context = sessions.open(request(session_id, 1), False, 0)
    answer(context, made_again, lambda p: row())
    assert (len(news[0]), len(made_again[0])) == (0, 1)


def test_sessions_of_followers_that_came_back_end_and_no_others(sessions):
    opened = {}
    for replica in (-1, 2, 3):
        asked = request(epoch=0, partitions=[(0, 5)])
        asked.replica_id = replica
        opened[replica] = sessions.open(asked, False, 0).session_id
    sessions.forget_followers({3, 4})
    for replica in (-1, 2):
        assert sessions.open(request(opened[replica], 1), False, 0).incremental
    with pytest.raises(FetchSessionIdNotFound):
        sessions.open(request(opened[3], 1), False, 0)
