"""Incremental fetch sessions (KIP-227), event by event."""

import pytest

from logkernel.broker.fetch_sessions import EVICTION_AGE_MS, MAX_EPOCH, FetchSessions
from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.requests.data import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData


def request(session_id=0, epoch=0, partitions=(), forget=()):
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic("t", [FetchPartition(partition=p, fetch_offset=o) for p, o in partitions])],
        forgotten_topics_data=[ForgottenTopic("t", list(forget))],
    )


def keys(context):
    return [wanted.key[2] for wanted in context.wanted]


def test_a_sessionless_fetch_keeps_no_session():
    sessions = FetchSessions(10, 1)
    context = sessions.open(request(0, -1, [(0, 5)]), False, 0)
    assert (context.session_id, context.incremental, keys(context)) == (0, False, [0])
    assert len(sessions) == 0


def test_incremental_adds_changes_and_forgets():
    sessions = FetchSessions(10, 1)
    first = sessions.open(request(0, 0, [(0, 0), (1, 0)]), False, 0)
    assert first.session_id > 0
    assert not first.incremental
    second = sessions.open(request(first.session_id, 1, [(2, 7), (0, 9)], forget=[1]), False, 0)
    assert second.incremental
    assert {wanted.key[2]: wanted.request.fetch_offset for wanted in second.wanted} == {0: 9, 2: 7}


def test_epochs_must_follow():
    sessions = FetchSessions(10, 1)
    session_id = sessions.open(request(0, 0, [(0, 0)]), False, 0).session_id
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.open(request(session_id, 2), False, 0)
    with pytest.raises(FetchSessionIdNotFound):
        sessions.open(request(session_id + 1, 1), False, 0)
    with pytest.raises(FetchSessionTopicIdError):
        sessions.open(request(session_id, 1), True, 0)


def test_epoch_wraps_to_one():
    sessions = FetchSessions(10, 1)
    context = sessions.open(request(0, 0, [(0, 0)]), False, 0)
    context.session.epoch = MAX_EPOCH
    sessions.open(request(context.session_id, MAX_EPOCH), False, 0)
    sessions.open(request(context.session_id, 1), False, 0)


def test_final_epoch_closes_the_session():
    sessions = FetchSessions(10, 1)
    session_id = sessions.open(request(0, 0, [(0, 0)]), False, 0).session_id
    assert sessions.open(request(session_id, -1, [(0, 0)]), False, 0).session_id == 0
    assert len(sessions) == 0


def test_full_cache_refuses_young_and_evicts_old():
    sessions = FetchSessions(1, 1)
    sessions.open(request(0, 0, [(0, 0)]), False, 0)
    assert sessions.open(request(0, 0, [(0, 0)]), False, 10).session_id == 0
    assert sessions.open(request(0, 0, [(0, 0)]), False, EVICTION_AGE_MS).session_id > 0
    assert len(sessions) == 1


def test_only_news_is_told_and_an_error_is_told_again():
    sessions = FetchSessions(10, 1)
    wanted = sessions.open(request(0, 0, [(0, 0)]), False, 0).wanted[0]
    data = PartitionData(high_watermark=5, last_stable_offset=5, log_start_offset=0)
    assert wanted.news(data)
    wanted.told(data)
    assert not wanted.news(data)
    failed = PartitionData(error_code=3, high_watermark=-1)
    assert wanted.news(failed)
    wanted.told(failed)
    assert wanted.news(data)


def test_served_partitions_go_last():
    sessions = FetchSessions(10, 1)
    context = sessions.open(request(0, 0, [(0, 0), (1, 0), (2, 0)]), False, 0)
    context.session.served([context.wanted[0].key])
    again = sessions.open(request(context.session_id, 1), False, 0)
    assert keys(again) == [1, 2, 0]
