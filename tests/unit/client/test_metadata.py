"""The table of `client.metadata`."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from logkernel.client.cluster.metadata import Metadata
from logkernel.client.settings.producer import load_producer
from logkernel.errors import InvalidTopicException, LeaderNotAvailable, RebootstrapRequired, UnknownTopicOrPartition
from logkernel.requests.cluster import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

BROKERS = [MetadataResponseBroker(1, "h", 11), MetadataResponseBroker(2, "h", 12)]


def metadata(**settings: Any) -> Metadata:
    return Metadata(load_producer({"bootstrap_servers": "h:1", **settings}), [("h", 1)], Random(1))


def answer(leader: int = 1, epoch: int = 3, error: int = 0, topic_id: int = 5) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)] if not error else []
    return MetadataResponse(BROKERS, [MetadataResponseTopic(error, "t", parts, topic_id=UUID(int=topic_id))], 2)


def known(made: Metadata, response: MetadataResponse, now_ms: int = 0) -> None:
    made.want("t", now_ms)
    made.ask(now_ms)
    made.on_response(response, now_ms)


def test_what_an_answer_teaches() -> None:
    made = metadata()
    assert made.due(0)
    known(made, answer())
    assert made.leader("t", 0) == 1
    assert made.leader("t", 1) == -1
    assert made.leader("u", 0) == -1
    assert made.names[UUID(int=5)] == "t"
    assert made.controller_id == 2
    assert not made.due(1)
    assert made.due_ms() == 300_000


def test_an_older_epoch_is_not_believed() -> None:
    made = metadata()
    known(made, answer(leader=1, epoch=3))
    known(made, answer(leader=2, epoch=2))
    assert made.leader("t", 0) == 1
    known(made, answer(leader=2, epoch=4))
    assert made.leader("t", 0) == 2
    known(made, answer(leader=1, epoch=0, topic_id=6))
    assert made.leader("t", 0) == 1, "another topic of the same name counts anew"


def test_a_leader_named_in_passing() -> None:
    made = metadata()
    known(made, answer(leader=1, epoch=3))
    made.set_leader("t", 0, 2, 3)
    assert made.leader("t", 0) == 1
    made.set_leader("t", 0, 2, 4)
    assert made.leader("t", 0) == 2


@pytest.mark.parametrize(
    ("response", "again"),
    [
        (answer(), False),
        (answer(leader=-1), True),
        (answer(error=LeaderNotAvailable.code), True),
        (answer(error=UnknownTopicOrPartition.code), True),
        (answer(error=InvalidTopicException.code), False),
        (MetadataResponse(BROKERS, []), True),
        (MetadataResponse(), True),
    ],
)
def test_when_it_asks_again(response: MetadataResponse, again: bool) -> None:
    made = metadata()
    known(made, response)
    assert not made.due(0)
    assert made.due(500) is again


def test_a_topic_wanted_meanwhile_is_asked_for_at_once() -> None:
    made = metadata()
    made.want("t", 0)
    made.ask(0)
    made.want("new", 1)
    made.on_response(answer(), 2)
    assert made.due(2)
    assert [topic.name for topic in made.ask(2).topics or ()] == ["new", "t"]


def test_failures_are_spaced_out() -> None:
    made = metadata(retry_backoff_ms=100, retry_backoff_max_ms=400)
    made.ask(0)
    assert made.due_ms() is None
    made.on_failure(0)
    first = made.due_ms()
    assert first is not None
    assert 80 <= first <= 120


def test_a_broker_may_ask_to_begin_again() -> None:
    made = metadata()
    known(made, answer())
    made.ask(5)
    made.on_response(MetadataResponse(error_code=RebootstrapRequired.code), 5)
    assert made.brokers == {-1: ("h", 1)}
    assert made.leader("t", 0) == -1
    assert len(made.topics["t"].leaders) == 1, "the number of partitions stays known"
