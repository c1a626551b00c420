"""What every coordination that several brokers share keeps to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from logkernel.contracts import MetadataChange, SharedCoordination
from logkernel.errors import DuplicateBrokerRegistration, KafkaStorageError, StaleControllerEpoch

from .shared_coordinations import FACT, Events, InProcess, Shared, over_zookeeper, renewed
from .test_coordination import ListLog, open_memory

ORDERS = MetadataChange("config", "topic:orders", {"retention.ms": "1"})
LATER = MetadataChange("config", "topic:orders", {"retention.ms": "2"})
GONE = MetadataChange("config", "topic:orders", None)
ROW = [[1], [1], 1, 0, 0]
TOPIC = MetadataChange(
    "topic", "t", {"id": "7d7d6d32-6a7d-4fb8-a4ec-3fe6f1f2a1b1", "internal": False, "partitions": [ROW]}
)


def heard(change: MetadataChange) -> tuple[object, ...]:
    return (change.kind, change.key, change.value)


def shared_local(log: ListLog | None = None) -> InProcess:
    from logkernel.plugins.transport import local

    found = local.logkernel_coordination("local", lambda: log or ListLog())
    assert found is not None
    return InProcess(found)


@pytest.fixture(params=["local", "memory", "zookeeper"])
def shared(request: pytest.FixtureRequest) -> Iterator[Shared]:
    if request.param == "local":
        yield shared_local()
    elif request.param == "memory":
        yield InProcess(open_memory())
    else:
        with over_zookeeper(request.getfixturevalue("zookeeper_server")) as made:
            yield made


def listening(shared: Shared) -> tuple[SharedCoordination, Events]:
    session = shared.session()
    events = Events(session)
    session.poll()
    events.heard.clear()
    return session, events


def elected(session: SharedCoordination, node_id: int) -> int:
    term = session.campaign(node_id)
    assert term is not None
    list(session.changes())
    return term


def test_a_session_is_a_shared_coordination(shared: Shared) -> None:
    assert isinstance(shared.session(), SharedCoordination)


def test_all_hear_of_a_commit_and_none_of_an_older_value_after_a_newer(shared: Shared) -> None:
    (one, at_one), (two, at_two) = listening(shared), listening(shared)
    one.commit([ORDERS])
    for events in (at_one, at_two):
        events.until(lambda events=events: events.has(heard(ORDERS)), "the first commit")
    two.commit([LATER])
    one.commit([GONE])
    for events in (at_one, at_two):
        events.until(lambda events=events: events.has(heard(GONE)), "the last commit")
        assert events.last("config", "topic:orders") is None
    assert at_two.rings >= 2


def test_a_new_session_finds_what_was_kept(shared: Shared) -> None:
    one, _ = listening(shared)
    one.commit([ORDERS])
    epoch = one.announce(1, FACT)
    two = shared.session()
    kept = [each for each in two.changes() if each.kind in ("config", "broker")]
    assert sorted(kept, key=lambda each: each.kind) == [MetadataChange("broker", "1", FACT), ORDERS]
    assert list(two.changes({"config"})) == [ORDERS]
    assert two.broker_epochs() == {1: epoch}


def test_partitions_of_a_topic_are_counted_as_they_are_stored(shared: Shared) -> None:
    (one, _), (two, _) = listening(shared), listening(shared)
    assert two.partition_count("t") is None
    term = elected(one, 1)
    one.commit_as_controller([TOPIC], term)
    assert two.partition_count("t") == 1
    assert TOPIC.value is not None
    grown = MetadataChange("topic", "t", {**TOPIC.value, "partitions": [ROW, ROW, ROW]})
    one.commit_as_controller([grown], term)
    assert two.partition_count("t") == 3
    one.commit_as_controller([MetadataChange("topic", "t", None)], term)
    assert two.partition_count("t") is None


def test_a_broker_is_there_as_long_as_its_session(shared: Shared) -> None:
    (one, _), (two, at_two) = listening(shared), listening(shared)
    elected(two, 2)
    first = one.announce(1, FACT)
    at_two.until_heard(("broker", "1", FACT))
    with pytest.raises(DuplicateBrokerRegistration, match=r"broker 1.*another node\.id"):
        two.announce(1, FACT)
    one.close()
    at_two.until_heard(("broker", "1", None))
    assert two.broker_epochs() == {}
    assert listening(shared)[0].announce(1, FACT) > first


def test_a_broker_that_announces_itself_again_has_a_new_epoch(shared: Shared) -> None:
    one, _ = listening(shared)
    first = one.announce(1, FACT)
    assert one.announce(1, FACT) > first


def test_one_is_controller_and_terms_grow(shared: Shared) -> None:
    (one, _), (two, at_two) = listening(shared), listening(shared)
    term = elected(one, 1)
    assert two.campaign(2) is None
    at_two.until_heard(("controller", 1, term))
    one.close()
    at_two.until_heard(("controller", None, term))
    assert elected(two, 2) > term


def test_who_asks_is_told_of_the_controller(shared: Shared) -> None:
    one, two = shared.session(), shared.session()
    assert two.read_controller()[0] is None
    term = elected(one, 1)
    assert two.read_controller() == one.read_controller() == (1, term)
    one.resign()
    assert two.read_controller() == (None, term)


def test_who_was_deposed_commits_nothing(shared: Shared) -> None:
    (one, _), (two, at_two) = listening(shared), listening(shared)
    term = elected(one, 1)
    one.commit_as_controller([TOPIC], term)
    one.resign()
    later = elected(two, 2)
    changed = MetadataChange("partition", "t:0", {"row": [[1], [1], -1, 1, 1]})
    for session in (one, two):
        with pytest.raises(StaleControllerEpoch):
            session.commit_as_controller([changed], term)
    with pytest.raises(StaleControllerEpoch):
        one.replace([])
    two.commit_as_controller([changed, ORDERS], later)
    at_two.until_heard(heard(ORDERS))


def test_a_session_that_expired_is_told_and_refused(shared: Shared) -> None:
    (one, at_one), (two, at_two) = listening(shared), listening(shared)
    one.announce(1, FACT)
    term = elected(one, 1)
    at_two.until_heard(("controller", 1, term))
    shared.expire(one)
    at_one.until_heard(("session", "lost"))
    with pytest.raises(KafkaStorageError, match="begin a new one"):
        one.commit([ORDERS])
    with pytest.raises(KafkaStorageError):
        one.commit_as_controller([TOPIC], term)
    at_two.until_heard(("controller", None, term))
    assert two.broker_epochs() == {}


def test_a_lost_session_is_followed_by_a_new_one(shared: Shared) -> None:
    one, at_one = listening(shared)
    first = one.announce(1, FACT)
    shared.expire(one)
    at_one.until_heard(("session", "lost"))
    shared.heal(one)
    again = renewed(one)
    try:
        assert again.announce(1, FACT) > first
    finally:
        again.close()


def test_a_session_that_is_unsure_commits_nothing_until_it_is_back(shared: Shared) -> None:
    (one, at_one), (two, _) = listening(shared), listening(shared)
    shared.cut(one)
    at_one.until_heard(("session", "unsure"))
    with pytest.raises(KafkaStorageError, match="try again"):
        one.commit([ORDERS])
    two.commit([ORDERS])
    shared.heal(one)
    told = at_one.until_heard(("session", "back"))
    assert any(heard(ORDERS) in row for row in told[:-1])
    assert told[-1] == ("session", "back")
    one.commit([LATER])


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_commit_without_an_answer_leaves_the_session_unsure(shared: Shared, stored: bool) -> None:
    one, at_one = listening(shared)
    shared.lose_answer(one, stored=stored)
    with pytest.raises(KafkaStorageError, match="try again"):
        one.commit([ORDERS])
    with pytest.raises(KafkaStorageError, match="try again"):
        one.commit([ORDERS])
    at_one.until_heard(("session", "unsure"))
    shared.heal(one)
    at_one.until_heard(("session", "back"))
    assert (ORDERS in one.changes()) == stored


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_a_controller_without_an_answer_loads_what_was_stored(shared: Shared, stored: bool) -> None:
    one, at_one = listening(shared)
    term = elected(one, 1)
    one.commit_as_controller([TOPIC], term)
    shared.lose_answer(one, stored=stored)
    new = [[1], [1], -1, 1, 1]
    with pytest.raises(KafkaStorageError, match="try again"):
        one.commit_as_controller([MetadataChange("partition", "t:0", {"row": new})], term)
    at_one.until_heard(("session", "unsure"))
    shared.heal(one)
    at_one.until_heard(("session", "back"))
    assert not at_one.has(("controller", None, term))
    assert row_of(one) == (new if stored else ROW)
    later = [[1], [1], 1, row_of(one)[3] + 1, row_of(one)[4] + 1]
    one.commit_as_controller([MetadataChange("partition", "t:0", {"row": later})], term)
    assert row_of(one) == later


def row_of(session: SharedCoordination) -> list[int]:
    """The row of partition t:0."""
    found: list[int] = []
    for change in session.changes():
        if change.kind == "topic" and change.value is not None:
            (found,) = change.value["partitions"]
        elif change.kind == "partition" and change.value is not None:
            found = change.value["row"]
    return found


def test_a_term_outlives_the_process() -> None:
    log = ListLog()
    first = shared_local(log)
    one = first.session()
    term, epoch = one.campaign(1), one.announce(1, FACT)
    assert term is not None
    one.replace([ORDERS, MetadataChange("broker", "1", FACT)])
    first.store.close()
    log.closed = False
    two = shared_local(log).session()
    kept = list(two.changes())
    assert ORDERS in kept
    assert not [each for each in kept if each.kind == "broker"]
    later = two.campaign(2)
    assert later is not None
    assert later > term
    assert two.announce(1, FACT) > epoch
